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
#include "results.hpp"

namespace xsift::sift {

struct PlainElement {
    int32_t parent;       // element 0 stands for the document, and is its own parent
    int32_t last;         // the last element below it, or itself: elements are numbered in document order
};

// Something that was noted at an element: an acceptance, or a loop that began.
struct Note {
    int32_t number, element;
};

// An element whose path is known: it has all notes of the path.
struct Visit {
    int32_t element, previous;  // the visit before this one to the same path, or NONE
};

// What a plain run takes down of a document.
struct PlainNotes {
    std::vector<PlainElement> elements;
    std::vector<Note> accepted;        // acceptances, where they came,
    std::vector<Note> loops_begun;     // and loops, where they began: but for those of known paths,
    std::vector<Visit> visits;         // which are noted by element,
    std::vector<int32_t> visited;      // and here each once

    void clear() {
        elements.assign(1, PlainElement{0, 0});
        accepted.clear();
        loops_begun.clear();
        visits.clear();
        visited.clear();
    }
    size_t number() const { return accepted.size() + loops_begun.size() + visits.size(); }  // beside elements
    size_t bytes() const {
        return elements.capacity() * sizeof(PlainElement) + (accepted.capacity() + loops_begun.capacity()) * sizeof(Note) +
               visits.capacity() * sizeof(Visit) + visited.capacity() * 4;
    }
};

class TwigJoin {
    const TwigIndex* index = nullptr;
    const FlatAutomaton& flat;
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
        std::vector<int32_t> last;     // in `listed`, or NONE
        std::vector<int32_t> distinct; // those that there are

        void resize(size_t number) {
            last.assign(number, NONE);
            distinct.clear();
        }
        void clear() {
            for (const int32_t number : distinct) last[number] = NONE;
            distinct.clear();
        }
    };
    Lists accepted, begun;

    std::vector<uint64_t> met;         // bits by edge; then one that is always set
    std::vector<int32_t> met_edges;    // all that are set: first those that the run met, then those of subs
    std::vector<uint8_t> is_candidate; // by node
    std::vector<int32_t> candidates;   // nodes whose edges were all met

    // Sets of elements, ascending, in `pool`.
    struct Set {
        int32_t begin, end;
        bool is_empty() const { return begin == end; }
    };
    static constexpr Set UNKNOWN{NONE, NONE};
    std::vector<int32_t> pool;
    std::vector<Set> reached;          // by edge: branch points below which it is
    std::vector<int32_t> known;        // the edges of which that is known
    std::vector<int32_t> climbing, above, common;

    uint64_t is_met(int32_t edge) const { return met[uint32_t(edge) >> 6] >> (edge & 63) & 1; }

    bool meet(int32_t edge) {
        uint64_t& word = met[uint32_t(edge) >> 6];
        const uint64_t bit = uint64_t(1) << (edge & 63);
        if (word & bit) return false;
        word |= bit;
        met_edges.push_back(edge);
        return true;
    }

    // Candidates.

    void list(Lists& lists, int32_t number, int32_t element) {
        int32_t& last = lists.last[number];
        if (last == NONE) lists.distinct.push_back(number);
        listed[listed_end] = Listed{element, last};
        last = int32_t(listed_end++);
    }

    void list_notes(Lists& lists, const std::vector<Note>& notes, Span (KnownPath::*of_path)() const) {
        size_t number = notes.size();
        for (const int32_t path : taken->visited) number += size_t((paths.paths[path].*of_path)().size());
        if (listed.size() < listed_end + number) listed.resize(listed_end + number);
        for (const Note& note : notes) list(lists, note.number, note.element);
        for (const int32_t path : taken->visited) {
            const Span span = (paths.paths[path].*of_path)();
            for (int32_t i = span.begin; i < span.end; ++i) list(lists, paths.numbers[i], ~path);
        }
    }

    // Calls use(element) for the elements of a list.
    template <class Use>
    void each_listed(const Lists& lists, int32_t number, Use&& use) const {
        for (int32_t i = lists.last[number]; i >= 0; i = listed[i].previous) {
            if (listed[i].element >= 0) use(listed[i].element);
            else each_visit(~listed[i].element, use);
        }
    }

    template <class Use>
    void each_visit(int32_t path, Use&& use) const {
        for (int32_t i = paths.paths[path].visits; i >= 0; i = taken->visits[i].previous) use(taken->visits[i].element);
    }

    // Meets the edges of what was accepted, and marks the keys.
    void take_accepted(Results& results) {
        for (size_t i = 0; i < accepted.distinct.size(); ++i) {
            if (i + AHEAD < accepted.distinct.size()) __builtin_prefetch(&flat.acceptances[accepted.distinct[i + AHEAD]]);
            const int32_t number = accepted.distinct[i];
            for (int32_t j = flat.acceptances[number]; j < flat.acceptances[number + 1]; ++j) {
                if (is_key(flat.accepted[j])) results.mark(flat.accepted[j]);
                else meet(edge_of_code(flat.accepted[j]));
            }
        }
    }

    bool all_met(int32_t number) const {
        const Node& node = index->nodes[number];
        for (int32_t i = 0; i < node.edge_count; ++i)
            if (!is_met(index->edge_pool[node.edges + i])) return false;
        return true;
    }

    // Looks at the nodes that an edge triggers.
    void look(int32_t edge) {
        for (int32_t i = flat.triggers_of[edge]; i < flat.triggers_of[edge + 1]; ++i) {
            const NodeTrigger& trigger = flat.triggers[i];
            if (!(is_met(trigger.other) & is_met(trigger.third))) continue;
            if ((trigger.more && !all_met(trigger.node)) || is_candidate[trigger.node]) continue;
            is_candidate[trigger.node] = 1;
            candidates.push_back(trigger.node);
        }
    }

    // A node with subs has the edge of one as its trigger, but maybe not of the one that is found last: so nodes of such edges are
    // looked at until there is nothing new. The rounds are as many as subs are nested.
    void find_candidates() {
        const size_t paths = met_edges.size();
        for (size_t i = 0; i < paths; ++i) {
            if (i + AHEAD < paths) __builtin_prefetch(&flat.triggers_of[met_edges[i + AHEAD]]);
            if (i + AHEAD / 2 < paths) __builtin_prefetch(flat.triggers.data() + flat.triggers_of[met_edges[i + AHEAD / 2]]);
            look(met_edges[i]);
        }
        for (size_t looked_at = 0; looked_at < candidates.size();) {
            for (; looked_at < candidates.size(); ++looked_at) {
                const int32_t target = index->nodes[candidates[looked_at]].target;
                if (!is_key(target)) meet(edge_of_code(target));
            }
            for (size_t i = paths; i < met_edges.size(); ++i) look(met_edges[i]);
        }
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
        each_listed(begun, loop, [&](int32_t element) {
            const auto below = std::upper_bound(climbing.begin(), climbing.end(), element);
            if (below != climbing.end() && *below <= taken->elements[element].last) above.push_back(element);
        });
        climbing.swap(above);
        put_in_order(climbing);
    }

    // Puts the elements where an edge was met into `climbing`: of a sub, those that it holds for.
    void start_climbing(int32_t edge) {
        if (flat.acceptance_of[edge] == NONE) {
            intersect(index->edges[edge].sub);
            climbing = common;
            return;
        }
        climbing.clear();
        each_listed(accepted, flat.acceptance_of[edge], [&](int32_t element) { climbing.push_back(element); });
        put_in_order(climbing);  // what conditions on text lead to is met when elements end
    }

    // Finds the branch points below which an edge is.
    void reach(int32_t edge) {
        start_climbing(edge);
        for (int32_t i = flat.climbs_of[edge]; i < flat.climbs_of[edge + 1] && !climbing.empty(); ++i) {
            if (flat.climbs[i].parents) climb(flat.climbs[i].parents);
            if (flat.climbs[i].loop != NONE) climb_loop(flat.climbs[i].loop);
        }
        const int32_t begin = int32_t(pool.size());
        pool.insert(pool.end(), climbing.begin(), climbing.end());
        reached[edge] = Set{begin, int32_t(pool.size())};
        known.push_back(edge);
    }

    Set reached_by(int32_t edge) {
        if (reached[edge].begin == NONE) reach(edge);
        return reached[edge];
    }

    bool are_common(Set one, Set other) const {
        const int32_t *i = pool.data() + one.begin, *const end_i = pool.data() + one.end;
        const int32_t *j = pool.data() + other.begin, *const end_j = pool.data() + other.end;
        while (i != end_i && j != end_j) {
            if (*i == *j) return true;
            if (*i < *j) ++i;
            else ++j;
        }
        return false;
    }

    // The outermost element above another where a loop began; or NONE.
    int32_t outermost_above(int32_t element, int32_t loop) const {
        int32_t outermost = element;
        each_listed(begun, loop, [&](int32_t at) {
            if (at < outermost && element <= taken->elements[at].last) outermost = at;
        });
        return outermost < element ? outermost : NONE;
    }

    // A branch point below which an edge is: that of some element, outermost if there are several. NONE if it is one of a sub.
    int32_t glance(int32_t edge) const {
        if (flat.acceptance_of[edge] == NONE) return NONE;
        int32_t element = listed[accepted.last[flat.acceptance_of[edge]]].element;
        if (element < 0) element = taken->visits[paths.paths[~element].visits].element;
        for (int32_t i = flat.climbs_of[edge]; i < flat.climbs_of[edge + 1] && element != NONE; ++i) {
            for (int32_t j = flat.climbs[i].parents; j > 0; --j) element = taken->elements[element].parent;
            if (flat.climbs[i].loop != NONE) element = outermost_above(element, flat.climbs[i].loop);
        }
        return element;
    }

    // Whether the edges of a node are below one branch point at a glance: as often as not there is only one.
    bool is_seen_to_hold(const Node& node, const int32_t* edge) const {
        const int32_t element = glance(edge[0]);
        if (element == NONE) return false;
        for (int32_t i = 1; i < node.edge_count; ++i)
            if (glance(edge[i]) != element) return false;
        return true;
    }

    // Whether a node holds for some element.
    bool has_witness(int32_t number) {
        const Node& node = index->nodes[number];
        const int32_t* const edge = index->edge_pool.data() + node.edges;
        if (is_seen_to_hold(node, edge)) return true;
        for (int32_t i = 0; i < node.edge_count; ++i)
            if (reached_by(edge[i]).is_empty()) return false;
        if (node.edge_count == 1) return true;
        if (node.edge_count == 2) return are_common(reached[edge[0]], reached[edge[1]]);
        intersect(number);
        return !common.empty();
    }

    // Finds the elements that a node holds for.
    void intersect(int32_t number) {
        const Node& node = index->nodes[number];
        const int32_t* const edge = index->edge_pool.data() + node.edges;
        for (int32_t i = 0; i < node.edge_count; ++i) reached_by(edge[i]);  // which needs `common` itself
        const Set first = reached[edge[0]];
        common.assign(pool.begin() + first.begin, pool.begin() + first.end);
        for (int32_t i = 1; i < node.edge_count; ++i) {
            const Set other = reached[edge[i]];
            size_t kept = 0;
            int32_t at = other.begin;
            for (const int32_t element : common) {
                while (at < other.end && pool[at] < element) ++at;
                if (at < other.end && pool[at] == element) common[kept++] = element;
            }
            common.resize(kept);
        }
    }

    void look_at_candidates(Results& results) {
        for (size_t i = 0; i < candidates.size(); ++i) {
            if (i + AHEAD < candidates.size()) {
                __builtin_prefetch(&index->nodes[candidates[i + AHEAD]]);
                __builtin_prefetch(index->edge_pool.data() + index->nodes[candidates[i + AHEAD / 2]].edges);
            }
            const int32_t target = index->nodes[candidates[i]].target;
            if (is_key(target) && has_witness(candidates[i])) results.mark(target);
        }
    }

    void forget() {
        for (const int32_t edge : met_edges) met[uint32_t(edge) >> 6] = 0;
        met[index->edges.size() >> 6] |= uint64_t(1) << (index->edges.size() & 63);
        for (const int32_t node : candidates) is_candidate[node] = 0;
        for (const int32_t edge : known) reached[edge] = UNKNOWN;
        accepted.clear();
        begun.clear();
        met_edges.clear();
        candidates.clear();
        known.clear();
        listed_end = 0;
        pool.clear();
    }

   public:
    static constexpr size_t AHEAD = 8;  // things that are asked for in advance: they lie anywhere in memory
    static constexpr int64_t CANDIDATE = 4;  // one is as much work as so many states that are entered
    int64_t evaluated = 0;              // candidates since ever
    int64_t work = 0;                   // in the last document, in states that are entered

    TwigJoin(const FlatAutomaton& flat, const KnownPaths& paths) : flat(flat), paths(paths) {}

    void assign(const TwigIndex* of) {
        index = of;
        accepted.resize(flat.acceptances.size());
        begun.resize(flat.loops.size());
        met.assign(index->edges.size() / 64 + 1, 0);
        is_candidate.assign(index->nodes.size(), 0);
        reached.assign(index->edges.size(), UNKNOWN);
        met_edges.clear();
        candidates.clear();
        known.clear();
        forget();
    }

    // Marks the keys of acceptances, and of the twigs that hold.
    void decide(const PlainNotes& notes, Results& results) {
        taken = &notes;
        list_notes(accepted, notes.accepted, &KnownPath::acceptances);
        take_accepted(results);
        find_candidates();
        evaluated += int64_t(candidates.size());
        work = int64_t(listed_end + met_edges.size()) / 2 + CANDIDATE * int64_t(candidates.size());
        if (!candidates.empty()) list_notes(begun, notes.loops_begun, &KnownPath::noted_loops);
        look_at_candidates(results);
        forget();
    }

    size_t bytes() const {
        return met.capacity() * 8 + is_candidate.capacity() + (accepted.last.capacity() + begun.last.capacity()) * 4 +
               reached.capacity() * sizeof(Set) + listed.capacity() * sizeof(Listed) + pool.capacity() * 4;
    }
};

}  // namespace xsift::sift
