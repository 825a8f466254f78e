// Decider: which nodes hold for a branch point, given the yields that were met below it.
//
// Edges that hold are bits. First all of them are set, then what they trigger is looked at, and at last they are cleared. What the
// edges of a part trigger stands in one list (LazyDfa::with_triggers), so that memory is read in order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "lazy_dfa.hpp"

namespace xsift::sift {

class Decider {
    LazyDfa& dfa;
    std::vector<uint64_t> bits;        // by edge
    std::vector<int32_t> seen;         // the parts of the yields, each once
    std::vector<int32_t> distinct;     // the edges that were met beside them, likewise
    std::vector<Trigger> found;
    uint64_t number = 0;               // of decisions

    bool holds(int32_t edge) const { return bits[edge >> 6] >> (edge & 63) & 1; }
    void set(int32_t edge) { bits[edge >> 6] |= uint64_t(1) << (edge & 63); }

    bool holds_all(int32_t number) const {
        const Node& node = dfa.index->nodes[number];
        for (int32_t i = node.ordered; i < node.edge_count; ++i)
            if (!holds(dfa.index->edge_pool[node.edges + i])) return false;
        return true;
    }

    void look(const Trigger* trigger, const Trigger* end) {
        for (; trigger != end; ++trigger) {
            if (trigger->other >= 0 && !holds(trigger->other)) continue;
            if (trigger->third >= 0 && !holds(trigger->third)) continue;
            if (trigger->node >= 0 && !holds_all(trigger->node)) continue;
            (is_key(trigger->target) ? keys : edges).push_back(trigger->target);
        }
    }

   public:
    std::vector<int32_t> keys;         // what the nodes that hold complete,
    std::vector<int32_t> edges;        // as codes
    int64_t looked = 0;                // triggers, since ever

    explicit Decider(LazyDfa& dfa) : dfa(dfa) {}

    void restart() { bits.assign((dfa.index->edges.size() + 63) / 64, 0); }
    size_t bytes() const { return bits.capacity() * 8; }

    // Decides; `met` are edges beside those of the yields. Both may have repetitions. What is looked at lies anywhere in memory: each pass
    // asks for what the next one needs.
    void decide(const std::vector<int32_t>& yields, const std::vector<int32_t>& met) {
        const TwigIndex& index = *dfa.index;
        const int32_t* const pool = dfa.pool.data();
        Accepts* const accepts = dfa.accepts_of.data();
        ++number;
        keys.clear();
        edges.clear();
        seen.clear();
        distinct.clear();
        for (const int32_t edge : met) __builtin_prefetch(&index.edges[edge]);
        for (const int32_t yield : yields) {
            for (int32_t i = dfa.yields[yield].parts; i < dfa.yields[yield].parts_end; ++i) {
                __builtin_prefetch(&accepts[dfa.part_lists[i]]);
                seen.push_back(dfa.part_lists[i]);
            }
        }
        size_t kept = 0;
        for (const int32_t part : seen) {
            Accepts& at = accepts[part];
            if (at.seen_at == number) continue;
            at.seen_at = number;
            __builtin_prefetch(pool + at.begin);
            seen[kept++] = part;
        }
        seen.resize(kept);
        for (const int32_t edge : met) {
            if (holds(edge)) continue;
            set(edge);
            distinct.push_back(edge);
            if (index.edges[edge].first != NONE) __builtin_prefetch(&index.nodes[index.edges[edge].first]);
        }
        for (const int32_t part : seen) {
            if (accepts[part].triggers == LazyDfa::NO_TRIGGERS) dfa.make_triggers(accepts[part]);
            __builtin_prefetch(dfa.triggers.data() + accepts[part].triggers);
            for (uint32_t j = accepts[part].begin; j < accepts[part].end; ++j) set(edge_of_code(pool[j]));
        }
        for (const int32_t part : seen) {
            const Accepts& at = accepts[part];
            looked += at.triggers_end - at.triggers;
            look(dfa.triggers.data() + at.triggers, dfa.triggers.data() + at.triggers_end);
        }
        found.clear();
        for (const int32_t edge : distinct) dfa.append_triggers(edge, found);
        looked += int64_t(found.size());
        look(found.data(), found.data() + found.size());
        for (const int32_t part : seen)
            for (uint32_t j = accepts[part].begin; j < accepts[part].end; ++j) bits[edge_of_code(pool[j]) >> 6] = 0;
        for (const int32_t edge : distinct) bits[edge >> 6] = 0;
    }
};

}  // namespace xsift::sift
