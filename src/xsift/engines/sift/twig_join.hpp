// TwigJoin: which twigs hold in a document, given where the edges of all of them were met.
//
// A plain run (plain_run.hpp) does not ask below which branch point it is. So what it knows of an edge is where in the
// document it was met. A twig can only hold if all its edges were, which few have: those are looked at more closely,
// when the document ends (YFilter's way).
//
// From the elements where an edge was met it is gone up the automaton, state by state, to the scope: by a name or `*`
// from each element to its parent; by `//` to all elements above it where the state before the `//` was active, which
// the run noted. What comes out are the branch points below which the edge is. A node holds for those that its edges
// have in common; if it is a sub, it is the edge of another scope, from there on. That is exact: a state of the
// automaton has only one state before it, and it was active at whatever element the way up comes to.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_automaton.hpp"
#include "known_paths.hpp"
#include "plain_notes.hpp"
#include "results.hpp"
#include "surroundings.hpp"

namespace xsift::sift {

class TwigJoin {
    const TwigIndex* index = nullptr;
    FlatAutomaton& flat;
    TriggerTable& table;
    const KnownPaths& paths;
    const PlainNotes* taken = nullptr;

    // Lists of elements, by acceptance and by loop.
    struct Listed {
        int32_t element;               // or ~ of a known path: all elements that have it
        int32_t previous;
    };
    std::vector<Listed> listed;        // has room for all
    size_t listed_end = 0;             // so many there are
    struct Lists {
        struct Last {
            uint32_t document;         // that it is about
            int32_t last;              // in `listed`
        };
        std::vector<Last> by_number;
        std::vector<int32_t> distinct; // those that there are

        void resize(size_t number) {
            by_number.assign(number, Last{0, NONE});
            distinct.clear();
        }
    };
    Lists accepted, begun;
    uint32_t document = 0;             // the one at hand; 0 is none

    std::vector<uint64_t> met;         // bits by edge; then one that is always set
    struct Met {
        int32_t edge;
        int32_t first, end;            // what it triggers, in the table
    };
    std::vector<Met> triggering;       // edges that the run met which trigger something
    std::vector<int32_t> met_subs;     // edges that subs complete, likewise
    std::vector<uint8_t> is_candidate; // by node, if such an edge triggers it
    struct Candidate {
        int32_t edge;                  // that triggered it
        NodeTrigger at;
    };
    std::vector<Candidate> candidates; // nodes whose edges were all met

    // Sets of elements, ascending, in `pool`.
    struct Set {
        int32_t begin, end;
        int32_t size() const { return end - begin; }
        bool is_empty() const { return begin == end; }
    };
    std::vector<int32_t> pool;
    std::vector<int32_t> pooled;       // the edges whose elements are there
    const size_t most_pooled;          // with more they are found again when they are asked for
    std::vector<int32_t> climbing, above, began, common;
    Surroundings surroundings;         // of loops that were climbed

    uint64_t is_met(int32_t edge) const { return met[uint32_t(edge) >> 6] >> (edge & 63) & 1; }
    bool is_none(int32_t edge) const { return size_t(edge) == flat.edges.size(); }

    void meet(int32_t edge) { met[uint32_t(edge) >> 6] |= uint64_t(1) << (edge & 63); }

    // What is known of an edge in this document.
    FlatEdge& about(int32_t number) {
        FlatEdge& edge = flat.edges[number];
        if (edge.document != document) {
            edge.document = document;
            edge.glance = FlatEdge::UNSEEN;
            edge.begin = NONE;
        }
        return edge;
    }

    // Candidates.

    void list(Lists& lists, int32_t number, int32_t element) {
        Lists::Last& at = lists.by_number[number];
        if (at.document != document) {
            at = Lists::Last{document, NONE};
            lists.distinct.push_back(number);
        }
        listed[listed_end] = Listed{element, at.last};
        at.last = int32_t(listed_end++);
    }

    int32_t last_of(const Lists& lists, int32_t number) const {
        return lists.by_number[number].document == document ? lists.by_number[number].last : NONE;
    }

    void list_notes(Lists& lists, const std::vector<Note>& notes, Span (KnownPath::*of_path)() const) {
        size_t number = notes.size();
        for (const int32_t path : taken->visited) number += size_t((paths.paths[path].*of_path)().size());
        if (listed.size() < listed_end + number) listed.resize(listed_end + number);
        for (const Note& note : notes) list(lists, note.number, note.element);
        for (const int32_t path : taken->visited) {
            const Span span = (paths.paths[path].*of_path)();
            const int32_t* const number = paths.numbers.data();
            for (int32_t i = span.begin; i < span.end; ++i) {
                if (i + int32_t(AHEAD) < span.end) __builtin_prefetch(&lists.by_number[number[i + AHEAD]], WRITING);
                list(lists, number[i], ~path);
            }
        }
    }

    // Calls use(element) for the elements of a list.
    template <class Use>
    void each_listed(const Lists& lists, int32_t number, Use&& use) const {
        for (int32_t i = last_of(lists, number); i >= 0; i = listed[i].previous) {
            if (listed[i].element >= 0) use(listed[i].element);
            else each_visit(~listed[i].element, use);
        }
    }

    template <class Use>
    void each_visit(int32_t path, Use&& use) const {
        for (int32_t i = paths.paths[path].visits; i >= 0; i = taken->visits[i].previous) use(taken->visits[i].element);
    }

    // Meets the edges of what was accepted, each of which is accepted in one way only, and marks the keys.
    void take_accepted(Results& results) {
        for (size_t i = 0; i < accepted.distinct.size(); ++i) {
            if (i + AHEAD < accepted.distinct.size()) __builtin_prefetch(&flat.acceptances[accepted.distinct[i + AHEAD]]);
            if (i + AHEAD / 2 < accepted.distinct.size())
                __builtin_prefetch(flat.accepted.data() + flat.acceptances[accepted.distinct[i + AHEAD / 2]]);
            const int32_t number = accepted.distinct[i];
            for (int32_t j = flat.acceptances[number]; j < flat.acceptances[number + 1]; ++j) take(flat.accepted[j], results);
        }
    }

    void take(const Accepted& it, Results& results) {
        if (is_key(it.code)) return results.mark(it.code);
        meet(edge_of_code(it.code));
        if (table.is_counting()) table.count(edge_of_code(it.code));
        if (it.first != it.end) triggering.push_back(Met{edge_of_code(it.code), it.first, it.end});
    }

    bool all_met(int32_t number) const {
        const Node& node = index->nodes[number];
        for (int32_t i = 0; i < node.edge_count; ++i)
            if (!is_met(index->edge_pool[node.edges + i])) return false;
        return true;
    }

    bool is_to_be_looked_at(const NodeTrigger& at) const {
        return is_met(at.other) & is_met(at.third) && (!at.has_more() || all_met(at.number()));
    }

    // Looks at the nodes that edges trigger. A node with subs has the edge of one as its trigger, but maybe not of the one that is
    // found last: so nodes of such edges are looked at until there is nothing new. The rounds are as many as subs are nested.
    void find_candidates() {
        const NodeTrigger* const triggers = table.data();
        for (size_t i = 0; i < triggering.size(); ++i) {
            if (i + AHEAD < triggering.size()) __builtin_prefetch(triggers + triggering[i + AHEAD].first);
            for (int32_t j = triggering[i].first; j < triggering[i].end; ++j)
                if (is_to_be_looked_at(triggers[j])) candidates.push_back(Candidate{triggering[i].edge, triggers[j]});
        }
        for (size_t looked_at = 0, subs = 0;; subs = met_subs.size()) {
            for (; looked_at < candidates.size(); ++looked_at) {
                const int32_t target = candidates[looked_at].at.target;
                if (is_key(target) || is_met(edge_of_code(target))) continue;
                meet(edge_of_code(target));
                met_subs.push_back(edge_of_code(target));
                if (table.is_counting()) table.count(edge_of_code(target));
            }
            if (subs == met_subs.size()) return;
            for (size_t i = 0; i < met_subs.size(); ++i) {
                if (i + 2 * AHEAD < met_subs.size()) table.ask_where(met_subs[i + 2 * AHEAD]);
                if (i + AHEAD < met_subs.size()) table.ask_for(met_subs[i + AHEAD]);
                look(met_subs[i]);
            }
        }
    }

    void look(int32_t edge) {
        table.each(edge, [&](const NodeTrigger& at) {
            if (!is_to_be_looked_at(at) || is_candidate[at.number()]) return;
            is_candidate[at.number()] = 1;
            candidates.push_back(Candidate{edge, at});
        });
    }

    // The way up.

    // Makes a list ascending. It mostly is, or is descending.
    static void put_in_order(std::vector<int32_t>& list) {
        if (list.size() > 1 && list.front() > list.back()) std::reverse(list.begin(), list.end());
        if (!std::is_sorted(list.begin(), list.end())) std::sort(list.begin(), list.end());
    }

    // Replaces the elements of `climbing`, ascending, by their parents, so many times. Those of different elements may be the
    // same, and are no longer in order.
    void climb(int32_t times) {
        const PlainElement* const at = taken->elements.data();
        for (int32_t& element : climbing)
            for (int32_t i = 0; i < times; ++i) element = at[element].parent;
        put_in_order(climbing);
        climbing.erase(std::unique(climbing.begin(), climbing.end()), climbing.end());
    }

    // Replaces them by all elements above them where a loop began.
    void climb_loop(int32_t loop) {
        above.clear();
        if (surroundings.knows(loop, document)) surroundings.append_all(loop, climbing, above);
        else climb_new(loop);
        climbing.swap(above);
    }

    void climb_new(int32_t loop) {
        size_t number = 0;
        each_listed(begun, loop, [&](int32_t element) {
            ++number;
            const auto below = std::upper_bound(climbing.begin(), climbing.end(), element);
            if (below != climbing.end() && *below <= taken->elements[element].last) above.push_back(element);
        });
        put_in_order(above);
        if (number > MANY_BEGUN) find_surroundings(loop);
    }

    // Puts the elements where a loop began in order: few are looked through sooner.
    void find_surroundings(int32_t loop) {
        began.clear();
        each_listed(begun, loop, [&](int32_t element) { began.push_back(element); });
        put_in_order(began);
        surroundings.add(loop, document, began, taken->elements);
    }

    // Puts the elements where an edge was met into `climbing`: of a sub, those that it holds for.
    void start_climbing(int32_t edge) {
        if (flat.edges[edge].acceptance == NONE) {
            intersect(flat.edges[edge].sub);
            climbing = common;
            return;
        }
        climbing.clear();
        each_listed(accepted, flat.edges[edge].acceptance, [&](int32_t element) { climbing.push_back(element); });
        put_in_order(climbing);  // what conditions on text lead to is met when elements end
    }

    // Finds the branch points below which an edge is.
    void reach(int32_t number) {
        start_climbing(number);
        FlatEdge& edge = flat.edges[number];
        for (int32_t i = edge.climbs; i < edge.climbs_end && !climbing.empty(); ++i) {
            if (flat.climbs[i].parents) climb(flat.climbs[i].parents);
            if (flat.climbs[i].loop != NONE) climb_loop(flat.climbs[i].loop);
        }
        edge.begin = int32_t(pool.size());
        pool.insert(pool.end(), climbing.begin(), climbing.end());
        edge.end = int32_t(pool.size());
        pooled.push_back(number);
    }

    // Gives room for more: a document may have thousands of elements below each of thousands of edges.
    void empty_pool() {
        for (const int32_t edge : pooled) flat.edges[edge].begin = NONE;
        pooled.clear();
        pool.clear();
    }

    Set reached_by(int32_t number) {
        const FlatEdge& edge = about(number);
        if (edge.begin == NONE) reach(number);
        return Set{edge.begin, edge.end};
    }

    bool are_common(Set one, Set other) const {
        const int32_t *i = pool.data() + one.begin, *const end_i = pool.data() + one.end;
        const int32_t *j = pool.data() + other.begin, *const end_j = pool.data() + other.end;
        while (i != end_i && j != end_j) {
            if (*i == *j) return true;
            if (*i < *j) i = first_near(i, end_i, *j);
            else j = first_near(j, end_j, *i);
        }
        return false;
    }

    // The outermost element above another where a loop began; or NONE.
    int32_t outermost_above(int32_t element, int32_t loop) {
        if (surroundings.knows(loop, document)) return surroundings.outermost(loop, element);
        int32_t outermost = element;
        size_t number = 0;
        each_listed(begun, loop, [&](int32_t at) {
            ++number;
            if (at < outermost && element <= taken->elements[at].last) outermost = at;
        });
        if (number > MANY_BEGUN) find_surroundings(loop);
        return outermost < element ? outermost : NONE;
    }

    // The first of some ascending numbers that is not less than another. It is looked for from the beginning, in ever longer
    // steps: a few elements are found among many in a time that hangs on the few.
    static const int32_t* first_near(const int32_t* at, const int32_t* end, int32_t number) {
        for (int i = 0; i < 4; ++i, ++at)
            if (at == end || *at >= number) return at;
        std::ptrdiff_t step = 4;
        for (; step < end - at && at[step] < number; step *= 2) at += step;
        return std::lower_bound(at, std::min(at + step, end), number);
    }

    // A branch point below which an edge is: that of some element, outermost if there are several. NONE if none is seen. For
    // what a sub completes it was found when that was looked at.
    int32_t glance(int32_t number) {
        FlatEdge& edge = about(number);
        if (edge.glance == FlatEdge::UNSEEN) edge.glance = branch_point_above(met_at(edge), edge);
        return edge.glance;
    }

    // Some element where an edge was met.
    int32_t met_at(const FlatEdge& edge) {
        const int32_t element = listed[last_of(accepted, edge.acceptance)].element;
        return element >= 0 ? element : taken->visits[paths.paths[~element].visits].element;
    }

    // The element that a node holds for, if it is the same for all of its edges.
    int32_t glance_at_node(int32_t number) {
        const Node& node = index->nodes[number];
        const int32_t* const edge = index->edge_pool.data() + node.edges;
        const int32_t element = glance(edge[0]);
        for (int32_t i = 1; i < node.edge_count && element != NONE; ++i)
            if (glance(edge[i]) != element) return NONE;
        return element;
    }

    int32_t branch_point_above(int32_t element, const FlatEdge& edge) {
        for (int32_t i = edge.climbs; i < edge.climbs_end && element != NONE; ++i) {
            for (int32_t j = flat.climbs[i].parents; j > 0; --j) element = taken->elements[element].parent;
            if (flat.climbs[i].loop != NONE) element = outermost_above(element, flat.climbs[i].loop);
        }
        return element;
    }

    // The same for a candidate. As often as not there is only one branch point, which is seen at a glance.
    int32_t glance_at(const Candidate& candidate) {
        const NodeTrigger& at = candidate.at;
        if (at.has_more()) return glance_at_node(at.number());
        const int32_t element = glance(candidate.edge);
        if (element == NONE || (!is_none(at.other) && glance(at.other) != element)) return NONE;
        return is_none(at.third) || glance(at.third) == element ? element : NONE;
    }

    // Whether a node holds for some element.
    bool has_witness(const Candidate& candidate) {
        const NodeTrigger& at = candidate.at;
        if (pool.size() > most_pooled) empty_pool();
        if (!at.has_more()) {
            const Set one = reached_by(candidate.edge);
            if (is_none(at.other)) return !one.is_empty();
            const bool are_two = are_common(one, reached_by(at.other));
            if (!are_two || is_none(at.third)) return are_two;
        }
        intersect(at.number());
        return !common.empty();
    }

    // Finds the elements that a node holds for.
    void intersect(int32_t number) {
        const Node& node = index->nodes[number];
        const int32_t* const edge = index->edge_pool.data() + node.edges;
        for (int32_t i = 0; i < node.edge_count; ++i) reached_by(edge[i]);  // which needs `common` itself
        Set smallest = reached_by(edge[0]);
        for (int32_t i = 1; i < node.edge_count; ++i)
            if (reached_by(edge[i]).size() < smallest.size()) smallest = reached_by(edge[i]);
        common.assign(pool.begin() + smallest.begin, pool.begin() + smallest.end);
        for (int32_t i = 0; i < node.edge_count && !common.empty(); ++i) {
            const Set other = reached_by(edge[i]);
            size_t kept = 0;
            const int32_t *at = pool.data() + other.begin, *const end = pool.data() + other.end;
            for (const int32_t element : common) {
                at = first_near(at, end, element);
                if (at == end) break;
                if (*at == element) common[kept++] = element;
            }
            common.resize(kept);
        }
    }

    // A sub comes before the nodes that it is a branch of.
    void look_at_candidates(Results& results) {
        for (size_t i = 0; i < candidates.size(); ++i) {
            if (i + AHEAD < candidates.size()) {
                __builtin_prefetch(&flat.edges[candidates[i + AHEAD].edge]);
                __builtin_prefetch(flat.edges.data() + candidates[i + AHEAD].at.other);
                __builtin_prefetch(flat.edges.data() + candidates[i + AHEAD].at.third);
            }
            const int32_t target = candidates[i].at.target, element = glance_at(candidates[i]);
            if (is_key(target)) {
                if (element != NONE || has_witness(candidates[i])) results.mark(target);
            } else {
                FlatEdge& edge = about(edge_of_code(target));
                edge.glance = branch_point_above(element, edge);
            }
        }
    }

    void forget() {
        std::fill(met.begin(), met.end(), 0);
        met[flat.edges.size() >> 6] |= uint64_t(1) << (flat.edges.size() & 63);
        if (!met_subs.empty())
            for (const Candidate& candidate : candidates) is_candidate[candidate.at.number()] = 0;
        accepted.distinct.clear();
        begun.distinct.clear();
        triggering.clear();
        met_subs.clear();
        candidates.clear();
        listed_end = 0;
        pooled.clear();
        pool.clear();
        surroundings.clear();
        if (++document == 0) forget_all();
    }

    // So many documents were joined that their numbers begin anew.
    void forget_all() {
        document = 1;
        accepted.resize(accepted.by_number.size());
        begun.resize(begun.by_number.size());
        surroundings.resize(begun.by_number.size());
        for (FlatEdge& edge : flat.edges) edge.document = 0;
    }

   public:
    static constexpr int WRITING = 1;
    static constexpr size_t MANY_BEGUN = 16;
    static constexpr size_t AHEAD = 8;  // things that are asked for in advance: they lie anywhere in memory
    static constexpr int64_t MOST_BYTES = int64_t(1) << 30;  // so that places in the pool have 32 bits
    static constexpr int64_t CANDIDATE = 4;  // one is as much work as so many states that are entered
    int64_t evaluated = 0;              // candidates since ever
    int64_t work = 0;                   // in the last document, in states that are entered

    // Elements that edges were found below take so many bytes, and more only where they are those of one twig.
    TwigJoin(FlatAutomaton& flat, TriggerTable& table, const KnownPaths& paths, int64_t most_bytes)
        : flat(flat), table(table), paths(paths),
          most_pooled(size_t(std::min(most_bytes, MOST_BYTES)) / sizeof(int32_t)) {}

    void assign(const TwigIndex* of) {
        index = of;
        accepted.resize(flat.acceptances.size());
        begun.resize(flat.loops.size());
        surroundings.resize(flat.loops.size());
        met.assign(index->edges.size() / 64 + 1, 0);
        candidates.clear();
        is_candidate.assign(index->nodes.size(), 0);
        document = 0;
        forget();
    }

    // Marks the keys of acceptances, and of the twigs that hold.
    void decide(const PlainNotes& notes, Results& results) {
        taken = &notes;
        list_notes(accepted, notes.accepted, &KnownPath::acceptances);
        take_accepted(results);
        find_candidates();
        evaluated += int64_t(candidates.size());
        work = int64_t(listed_end + triggering.size()) / 2 + CANDIDATE * int64_t(candidates.size());
        if (!candidates.empty()) list_notes(begun, notes.loops_begun, &KnownPath::noted_loops);
        look_at_candidates(results);
        forget();
    }

    size_t bytes() const {
        return met.capacity() * 8 + is_candidate.capacity() + candidates.capacity() * sizeof(Candidate) +
               (accepted.by_number.capacity() + begun.by_number.capacity()) * sizeof(Lists::Last) + listed.capacity() * sizeof(Listed) + (pool.capacity() + pooled.capacity()) * 4 +
               surroundings.bytes();
    }
};

}  // namespace xsift::sift
