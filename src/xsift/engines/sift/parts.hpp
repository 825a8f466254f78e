// Parts: sets of states of the automaton, each kept once.
//
// A set is made state by state, and then looked for by its hash, which is a sum over its members: two sets are equal
// when their members are, in whatever order they were found. What is equal is checked member by member, with the help
// of stamps.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "automaton.hpp"
#include "flat_map.hpp"
#include "release.hpp"
#include "twig_index.hpp"

namespace xsift::sift {

struct Part {
    // Where in `pool` its lists begin, one after the other:
    int64_t live;             // states that a name or `*` leads on from
    int64_t conditional;      // states that a condition leads on from
    int64_t loops;            // the looping states of the `//` that follow its states
    int64_t marked;           // states with branching steps
    int64_t accepts;          // what its states accept: all keys, or all edges
    int64_t end;
    uint64_t hash;            // the sum of its members' hashes: of several parts it is that of the union
    uint64_t subjects;        // of the conditions that lead on, as bits
    uint32_t names;           // that lead on from `live`, as bits
    int32_t same_hash;        // another part with the same hash, or NONE
    int32_t asked;            // times that it was asked what a condition leads to
    int32_t listed;           // number of its list of conditions (listed_conditions()), or NONE
};

// A condition that leads on from a state of a part.
struct PartCondition {
    int32_t condition;
    int32_t target;           // a state of the automaton; NONE: a leaf, of which there is no more to know than
    int32_t code;             // what it accepts
};

// What a part accepts, apart from the rest: this is what is looked at for every document.
struct Accepts {
    uint64_t seen_at;         // the document, or for edges the decision, that looked at it last
    uint32_t begin, end;      // in `pool`
    uint32_t block;           // its own in the TriggerBlocks; NO_BLOCK: it has none
};

class Parts {
   public:
    enum : int32_t { EMPTY = 0 };
    static constexpr uint32_t NO_BLOCK = ~uint32_t(0);

    const TwigIndex* index = nullptr;
    std::vector<Part> parts;
    std::vector<Accepts> accepts_of;    // by part
    std::vector<int32_t> pool;          // the members of all parts; others may keep lists of states here, too
    std::vector<int32_t> new_loops;     // of the set being made: the looping states behind its members

    // Forgets all parts but the empty one.
    void restart() {
        release(parts, accepts_of, pool, part_conditions, condition_lists);
        by_hash.clear();
        keys = index->pattern_node.size();
        seen_at.resize(index->automaton.states.size(), 0);
        accepted_at.resize(keys + index->edges.size(), 0);
        parts.push_back(Part{0, 0, 0, 0, 0, 0, 0, 0, 0, NONE, 0, NONE});
        accepts_of.push_back(Accepts{0, 0, 0, NO_BLOCK});
    }

    const Part& operator[](int32_t number) const { return parts[number]; }

    size_t bytes() const {
        return parts.capacity() * sizeof(Part) + accepts_of.capacity() * sizeof(Accepts) + pool.capacity() * sizeof(int32_t) +
               part_conditions.capacity() * sizeof(PartCondition) + condition_lists.capacity() * sizeof(Extent) +
               by_hash.bytes();
    }
    size_t stamp_bytes() const {
        return (seen_at.capacity() + accepted_at.capacity()) * sizeof(uint32_t) + children.capacity() * sizeof(Child) +
               children_of.capacity() * sizeof(int32_t);
    }
    // The index has changed: what is known of it beside the cache is forgotten.
    void forget_index() {
        children.clear();
        children_of.clear();
        has_children = false;
    }

    // A set, and stamps on states: a state is stamped if that happened since begin_set().

    void begin_set() {
        live.clear();
        conditional.clear();
        new_loops.clear();
        marked.clear();
        accepts.clear();
        set_hash = 0;
        if (++set_number == 0) {  // wrapped: old numbers must not look like new ones
            std::fill(seen_at.begin(), seen_at.end(), 0);
            std::fill(accepted_at.begin(), accepted_at.end(), 0);
            set_number = 1;
        }
    }

    void stamp(int32_t state) { seen_at[state] = set_number; }
    bool is_stamped(int32_t state) const { return seen_at[state] == set_number; }
    void stamp_code(int32_t code) { accepted(code) = set_number; }
    bool is_stamped_code(int32_t code) { return accepted(code) == set_number; }

    void put(int32_t state) {
        const NfaState& at = index->automaton.states[state];
        set_hash += mix64(uint64_t(state) + 1);
        if (at.accepts != NOTHING) accepts.push_back(at.accepts);
        if (at.marks) marked.push_back(state);
        if (at.descendant >= 0) new_loops.push_back(at.descendant);
        if (at.flags & NfaState::NAMED) live.push_back(state);
        if (at.flags & NfaState::CONDITIONAL) conditional.push_back(state);
    }

    // Puts what is accepted without a state, an edge as a code, into the set.
    void put_code(int32_t code) {
        accepts.push_back(code);
        set_hash += mix64(uint64_t(uint32_t(code)) << 32);
    }

    // Puts what a name leads to from some members into the set. States and transitions lie anywhere in memory: each is
    // asked for some time before it is looked at.
    void follow(const int32_t* members, int64_t number, int32_t symbol) {
        const NfaState* const states = index->automaton.states.data();
        const uint16_t wanted = symbol ? name_bit(symbol) : 0;
        asked.clear();
        reached.clear();
        for (int64_t i = 0; i < number; ++i) {
            if (i + AHEAD < number) __builtin_prefetch(&states[members[i + AHEAD]]);
            const NfaState& at = states[members[i]];
            if (at.names & wanted) {
                index->automaton.transitions.prefetch(pack(members[i], symbol));
                asked.push_back(members[i]);
            }
            if (at.star >= 0) {
                __builtin_prefetch(&states[at.star]);
                reached.push_back(at.star);
            }
        }
        for (const int32_t member : asked) {
            const int32_t target = index->automaton.target(member, symbol);
            if (target < 0) continue;
            __builtin_prefetch(&states[target]);
            reached.push_back(target);
        }
        for (const int32_t target : reached) put(target);
    }

    // Puts what a condition leads to from a part into the set; of leaves, what they accept into `codes`.
    void pass(int32_t number, int32_t condition, std::vector<int32_t>& codes) {
        if (parts[number].listed == NONE && ++parts[number].asked <= OFTEN) {
            const NfaState* const states = index->automaton.states.data();
            const uint16_t wanted = name_bit(condition);
            for (int64_t i = parts[number].conditional; i < parts[number].loops; ++i) {
                if (i + AHEAD < parts[number].loops) __builtin_prefetch(&states[pool[i + AHEAD]]);
                if (!(states[pool[i]].names & wanted)) continue;
                const int32_t target = index->automaton.target(pool[i], condition);
                if (target >= 0 && states[target].flags & NfaState::STAYS) put_behind(target, codes);  // as it is listed, too
            }
            return;
        }
        const ConditionList list = listed_conditions(number);
        const PartCondition* at = std::lower_bound(list.begin, list.end, condition, [](const PartCondition& a, int32_t b) {
            return a.condition < b;
        });
        for (; at != list.end && at->condition == condition; ++at) {
            if (at->target == NONE) codes.push_back(at->code);
            else put(at->target);
        }
    }

    // All conditions that lead on from a part, ascending.
    struct ConditionList {
        const PartCondition* begin;
        const PartCondition* end;     // both valid until the next call
    };
    ConditionList listed_conditions(int32_t number) {
        if (parts[number].listed == NONE) list_conditions(number);
        const Extent at = condition_lists[parts[number].listed];
        return ConditionList{part_conditions.data() + at.begin, part_conditions.data() + at.end};
    }

    // The part whose set was just made: one that is known, or a new one.
    int32_t intern() {
        if (live.empty() && conditional.empty() && new_loops.empty() && marked.empty() && accepts.empty())
            return EMPTY;
        const uint64_t key = set_hash >> 1;  // FlatMap has one key that it cannot take
        const int32_t first = by_hash.get(key, NONE);
        if (first >= 0) stamp_set();
        for (int32_t part = first; part >= 0; part = parts[part].same_hash)
            if (is_current_set(parts[part])) return part;
        Part made;
        made.hash = set_hash;
        made.subjects = 0;
        made.names = 0;
        for (const int32_t state : live) made.names |= index->automaton.states[state].leads_on();
        for (const int32_t state : conditional) made.subjects |= index->automaton.subjects.get(uint32_t(state), 0);
        made.same_hash = first;
        made.asked = 0;
        made.listed = NONE;
        made.live = int64_t(pool.size());
        append(live);
        made.conditional = int64_t(pool.size());
        append(conditional);
        made.loops = int64_t(pool.size());
        append(new_loops);
        made.marked = int64_t(pool.size());
        append(marked);
        made.accepts = int64_t(pool.size());
        append(accepts);
        made.end = int64_t(pool.size());
        parts.push_back(made);
        accepts_of.push_back(Accepts{0, uint32_t(made.accepts), uint32_t(made.end), NO_BLOCK});
        const int32_t part = int32_t(parts.size()) - 1;
        by_hash.put(key, part);
        return part;
    }

    void append(const std::vector<int32_t>& members) { pool.insert(pool.end(), members.begin(), members.end()); }

   private:
    struct Extent {
        int64_t begin, end;             // in `part_conditions`
    };
    struct Child {
        int32_t state, condition, target;
    };
    static constexpr int32_t OFTEN = 8; // a part that was asked so often gets a list of its conditions
    static constexpr int AHEAD = 8;     // members that are asked for in advance: they lie anywhere in memory

    FlatMap<int32_t> by_hash;
    std::vector<PartCondition> part_conditions;
    std::vector<Extent> condition_lists;
    std::vector<Child> children;        // the states behind conditions, by the state that they stand behind
    std::vector<int32_t> children_of;   // by state: where its children begin, which is where those of the one before end
    bool has_children = false;
    std::vector<PartCondition> found_conditions;
    std::vector<uint32_t> seen_at;      // by state of the automaton: the last set that it was stamped in
    std::vector<uint32_t> accepted_at;  // by key, then by edge: the same
    size_t keys = 0;
    uint32_t set_number = 0;
    // The set being made.
    uint64_t set_hash = 0;
    std::vector<int32_t> live, conditional, marked, accepts;
    std::vector<int32_t> asked, reached;

    uint32_t& accepted(int32_t code) { return accepted_at[is_key(code) ? size_t(code) : keys + edge_of_code(code)]; }

    void put_behind(int32_t target, std::vector<int32_t>& codes) {
        if (index->automaton.states[target].is_leaf()) codes.push_back(index->automaton.states[target].accepts);
        else put(target);
    }

    void list_conditions(int32_t number) {
        if (!has_children) find_children();
        found_conditions.clear();
        for (int64_t i = parts[number].conditional; i < parts[number].loops; ++i) {
            const int32_t state = pool[i];
            for (int32_t k = children_of[state]; k < children_of[state + 1]; ++k) {
                const NfaState& behind = index->automaton.states[children[k].target];
                found_conditions.push_back(behind.is_leaf() ? PartCondition{children[k].condition, NONE, behind.accepts}
                                                            : PartCondition{children[k].condition, children[k].target, NOTHING});
            }
        }
        std::sort(found_conditions.begin(), found_conditions.end(),
                  [](const PartCondition& a, const PartCondition& b) { return a.condition < b.condition; });
        const int64_t begin = int64_t(part_conditions.size());
        part_conditions.insert(part_conditions.end(), found_conditions.begin(), found_conditions.end());
        parts[number].listed = int32_t(condition_lists.size());
        condition_lists.push_back(Extent{begin, int64_t(part_conditions.size())});
    }

    // The automaton finds a state behind a condition, but has no list of them: here it is made, once for an index.
    void find_children() {
        has_children = true;
        std::vector<Child> unsorted;
        children_of.assign(index->automaton.states.size() + 2, 0);
        index->automaton.transitions.all([&](uint64_t key, int32_t target) {
            const NfaState& at = index->automaton.states[target];
            if (!(at.flags & NfaState::STAYS) || at.symbol == SCOPE) return true;
            unsorted.push_back(Child{int32_t(key >> 32), at.symbol, target});
            ++children_of[unsorted.back().state + 2];
            return true;
        });
        std::partial_sum(children_of.begin(), children_of.end(), children_of.begin());
        children.resize(unsorted.size());
        for (const Child& child : unsorted) children[children_of[child.state + 1]++] = child;
    }

    // Marks the members of the set that was just made, to compare others with it.
    void stamp_set() {
        for (const auto* list : {&live, &conditional, &new_loops, &marked})
            for (const int32_t member : *list) seen_at[member] = set_number;
        for (const int32_t code : accepts) accepted(code) = set_number;
    }

    // Whether a part has the members of the set that was just made. Only a leaf is told by what it accepts.
    bool is_current_set(const Part& other) {
        if (other.conditional - other.live != int64_t(live.size()) ||
            other.loops - other.conditional != int64_t(conditional.size()) ||
            other.marked - other.loops != int64_t(new_loops.size()) ||
            other.accepts - other.marked != int64_t(marked.size()) ||
            other.end - other.accepts != int64_t(accepts.size()))
            return false;
        for (int64_t i = other.live; i < other.accepts; ++i)
            if (seen_at[pool[i]] != set_number) return false;
        for (int64_t i = other.accepts; i < other.end; ++i)
            if (accepted(pool[i]) != set_number) return false;
        return true;
    }
};

}  // namespace xsift::sift
