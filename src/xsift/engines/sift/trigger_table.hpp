// TriggerTable: by which of its edges each node comes to be looked at.
//
// A node is looked at when its trigger is met. So that should be the edge that is met least. The index has to guess which
// that is (twig_index.hpp). Documents tell: in some of them it is counted how often each edge is met, and the nodes are
// listed anew if that saves enough. Edges are counted in the first documents, and then now and again, for what comes may
// change; what was counted before counts less and less.
#pragma once
#include <cstdint>
#include <vector>

#include "twig_index.hpp"

namespace xsift::sift {

// A node that is to be looked at when an edge is met.
struct NodeTrigger {
    int32_t other, third;  // edges that must hold besides; the number after the last edge stands for none
    int32_t target;        // the code of what the node completes
    int32_t node;          // or ~ of it: then there are yet more edges

    bool has_more() const { return node < 0; }
    int32_t number() const { return has_more() ? ~node : node; }
};

class TriggerTable {
    static constexpr uint64_t FIRST = 8;       // documents that are counted in before nodes are listed anew,
    static constexpr uint64_t ROUND = 64;      // and then again and again;
    static constexpr uint64_t SELDOM = 32;     // later than that one in so many is
    static constexpr uint64_t GAIN = 8;        // as much as one look in so many is to be saved

    const TwigIndex* const index;
    std::vector<int32_t> begins;               // by edge, in `triggers`; empty: they are as the index has them
    std::vector<NodeTrigger> triggers;
    std::vector<uint32_t> met;                 // by edge
    uint64_t documents = 0, counted = 0;
    uint64_t look_at = FIRST;                  // documents counted, when it is looked again if another choice saves enough
    bool counts = false;                       // in this document

   public:
    explicit TriggerTable(const TwigIndex* index) : index(index) {}

    // The index is another one.
    void assign() {
        begins.clear();
        triggers.clear();
        met.assign(index->edges.size(), 0);
        documents = counted = 0;
        look_at = FIRST;
        counts = false;
    }

    // A document begins. Returns whether nodes have other triggers now.
    bool begin_document() {
        if (met.empty()) return false;
        const bool is_due = counted == look_at;
        if (is_due) look_at = counted - counted % ROUND + ROUND;
        const bool is_other = is_due && choose();
        counts = documents < ROUND || documents % SELDOM == 0;
        counted += counts;
        ++documents;
        return is_other;
    }

    bool is_counting() const { return counts; }
    void count(int32_t edge) { ++met[edge]; }

    // Lists the nodes by edge, as the index has them, unless they are listed.
    void lay_out() {
        if (!begins.empty()) return;
        triggers.reserve(index->nodes.size());
        for (size_t edge = 0; edge < index->edges.size(); ++edge) {
            begins.push_back(int32_t(triggers.size()));
            each_of_index(int32_t(edge), [&](const NodeTrigger& at) { triggers.push_back(at); });
        }
        begins.push_back(int32_t(triggers.size()));
    }

    // Where those of an edge begin, if they are listed.
    int32_t begin_of(int32_t edge) const { return begins[edge]; }
    const NodeTrigger* data() const { return triggers.data(); }

    // How many nodes an edge triggers.
    int32_t number_of(int32_t edge) const {
        return begins.empty() ? index->edges[edge].listed : begins[edge + 1] - begins[edge];
    }

    // Calls use(NodeTrigger) for each of them.
    template <class Use>
    void each(int32_t edge, Use&& use) const {
        if (begins.empty()) return each_of_index(edge, use);
        for (int32_t i = begins[edge]; i < begins[edge + 1]; ++i) use(triggers[i]);
    }

    // They lie anywhere in memory, and so does the place that tells where: each can be asked for in advance.
    void ask_where(int32_t edge) const {
        if (!begins.empty()) __builtin_prefetch(&begins[edge]);
        else __builtin_prefetch(&index->edges[edge]);
    }
    void ask_for(int32_t edge) const {
        if (!begins.empty()) __builtin_prefetch(triggers.data() + begins[edge]);
        else if (index->edges[edge].first != NONE) __builtin_prefetch(&index->nodes[index->edges[edge].first]);
    }

    size_t bytes() const {
        return begins.capacity() * sizeof(int32_t) + triggers.capacity() * sizeof(NodeTrigger) + met.capacity() * sizeof(uint32_t);
    }

   private:
    template <class Use>
    void each_of_index(int32_t edge, Use&& use) const {
        const int32_t none = int32_t(index->edges.size());
        for (int32_t number = index->edges[edge].first; number != NONE; number = index->nodes[number].next) {
            const Node& node = index->nodes[number];
            use(NodeTrigger{node.other == NONE ? none : node.other, node.third == NONE ? none : node.third, node.target,
                            node.more ? ~number : number});
        }
    }

    // Of the edges of a node, which has a trigger, the one that was met least. One that a sub completes comes first, if there is
    // any: what else the node needs is known by then.
    int32_t rarest_of(const Node& node, int32_t trigger) const {
        int32_t best = trigger;
        const bool is_sub = index->edges[best].state == NONE;
        for (int32_t i = node.ordered; i < node.edge_count; ++i) {
            const int32_t edge = index->edge_pool[node.edges + i];
            if (met[edge] < met[best] && (!is_sub || index->edges[edge].state == NONE)) best = edge;
        }
        return best;
    }

    NodeTrigger trigger_of(int32_t number, int32_t trigger) const {
        const Node& node = index->nodes[number];
        const int32_t none = int32_t(index->edges.size());
        NodeTrigger made{none, none, node.target, number};
        for (int32_t i = node.ordered; i < node.edge_count; ++i) {
            const int32_t edge = index->edge_pool[node.edges + i];
            if (edge == trigger) continue;
            if (made.other == none) made.other = edge;
            else if (made.third == none) made.third = edge;
            else made.node = ~number;
        }
        return made;
    }

    // Lists nodes by the edge that was met least, if that saves enough.
    bool choose() {
        struct Choice {
            int32_t node, trigger;
        };
        std::vector<Choice> choices;
        choices.reserve(index->nodes.size());
        std::vector<int32_t> ends(index->edges.size() + 1, 0);
        uint64_t looks = 0, fewest = 0;
        for (size_t edge = 0; edge < index->edges.size(); ++edge) {
            each(int32_t(edge), [&](const NodeTrigger& at) {
                const int32_t best = rarest_of(index->nodes[at.number()], int32_t(edge));
                choices.push_back(Choice{at.number(), best});
                ++ends[best + 1];
                looks += met[edge];
                fewest += met[best];
            });
        }
        for (uint32_t& times : met) times /= 2;
        if ((looks - fewest) * GAIN <= looks) return false;
        for (size_t edge = 1; edge < ends.size(); ++edge) ends[edge] += ends[edge - 1];
        begins = ends;
        triggers.resize(choices.size());
        for (const Choice& choice : choices) triggers[ends[choice.trigger]++] = trigger_of(choice.node, choice.trigger);
        return true;
    }
};

}  // namespace xsift::sift
