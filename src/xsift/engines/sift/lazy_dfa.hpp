// LazyDfa: the automaton, determinised as documents ask for it.
//
// A set of active states of the automaton, once computed, is a state of its own: the next element with the same path of names
// costs one look-up. Documents of one kind visit few such sets, though there could be exponentially many; so they are
// made on demand, and kept in a cache that its owner bounds: when it is full everything is forgotten and made again.
//
// The naive subset construction lists the whole set in each state. Nine tenths of these lists are looping states: a `//`
// that is active once is active for everything below, so that each state repeats what the one above it has. And what
// `//p` accepts is listed again in every state that a `p` leads to. Hence two things are shared here:
//
//     Loops   the looping states that one element made active, with a link to those that were active before it. A state
//             names the last of such a chain, and all elements below share it.
//     Part    a set of states of the automaton that some state contains. Where the loops of one link lead to on a name is
//             one part, made once for all states below, and listed with what the links above it lead to; what is left of a
//             state, its own part, follows from the parts of the state above.
//
// So a state is a short list of parts and the loops that are active below it. The automaton is a tree, and one of its
// states is reached from one other only; therefore the parts of a state have nothing in common, and the states of a chain
// of loops are all different.
//
// Parts, loops and states are each kept once: recursive documents lead back to what is there. Two sets are equal when
// their members are, in whatever order they were found: the hash is a sum over the members, and equality is checked member
// by member. What states accept is kept once too, as a *yield*: different states often accept the same.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "automaton.hpp"
#include "flat_map.hpp"
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
    uint32_t block;           // in `blocks`; NO_BLOCK: not made yet. Of edges alone: first those that some node asks for
    uint32_t edges;           // beside its trigger, so many; then what the edges trigger:
    uint32_t triggers;        // so many Triggers,
    uint32_t wide;            // and so many WideTriggers
};

struct Loops {
    // Looping states that became active at the same element, less those that were active above it.
    int64_t begin, end;       // in `pool`
    int64_t total;            // how many there are, those above included,
    uint64_t hash;            // and the sum of their hashes
    int32_t same_hash;
    int32_t above;            // the loops that were active before, or NONE
    uint32_t names;           // that lead on from these or those above
};

struct Yield {
    int32_t parts, parts_end; // in `part_lists`: those that accept something
    uint64_t hash;
    uint64_t seen_at;         // the document that took its keys last, or the branch point that saw its edges last
    int32_t same_hash;
};

struct DfaState {
    uint64_t hash;            // of its parts and loops
    uint64_t subjects;        // of the conditions that lead on, as bits
    uint32_t names;           // that lead on, likewise
    bool branches;            // whether there are branching steps
    int32_t parts, parts_end; // in `part_lists`: no state of the automaton is in two of them; none is empty
    int32_t loops;            // what is active below the element: these and all above; NONE
    int32_t same_hash;
    int32_t yield;            // or NONE if it accepts nothing
    int32_t scope;            // the state at the scopes of its branching steps; UNKNOWN until it is asked for
    int32_t otherwise;        // where names that do not lead on lead; likewise
};

// A node that an edge makes worth a look, with what must hold besides.
struct Trigger {
    int32_t other, third;     // edges; the number after the last edge stands for none
    int32_t target;           // the code of what the node completes
};

// The same for a node that has yet more edges.
struct WideTrigger {
    Trigger trigger;
    int32_t node;
};

class LazyDfa {
   public:
    enum : int32_t { EMPTY_PART = 0, DEAD = 0, UNKNOWN = -2 };
    static constexpr uint32_t NO_BLOCK = ~uint32_t(0);
    static constexpr int64_t MOST_BYTES = int64_t(4) << 30;  // so that places in `pool` and `blocks` have 32 bits

    const TwigIndex* index = nullptr;
    std::vector<DfaState> states;       // DEAD: nothing is active
    int32_t first = DEAD;               // the state of a document of which nothing is read yet; DEAD if there are no patterns
    std::vector<Part> parts;
    std::vector<Accepts> accepts_of;    // by part
    std::vector<Loops> loops;
    std::vector<Yield> yields;
    std::vector<int32_t> pool, part_lists;
    std::vector<int32_t> blocks;
    int64_t states_made = 0;

    // Forgets all states but DEAD and the first.
    void restart() {
        const Automaton& automaton = index->automaton;
        states.clear();
        parts.clear();
        accepts_of.clear();
        loops.clear();
        yields.clear();
        pool.clear();
        part_lists.clear();
        blocks.clear();
        transitions.clear();
        part_conditions.clear();
        condition_lists.clear();
        loop_moves.clear();
        move_lists.clear();
        states_by_hash.clear();
        parts_by_hash.clear();
        loops_by_hash.clear();
        yields_by_hash.clear();
        keys = index->pattern_node.size();
        seen_at.resize(automaton.states.size(), 0);
        accepted_at.resize(keys + index->edges.size(), 0);
        parts.push_back(Part{0, 0, 0, 0, 0, 0, 0, 0, 0, NONE, 0, NONE});
        accepts_of.push_back(Accepts{0, 0, 0, 0, 0, 0, 0});
        part_list.clear();
        intern_state(NONE);
        begin_set();
        put(0);
        part_list.assign(1, intern_part());
        first = intern_state(loops_below(NONE));
    }

    // The state after a start tag.
    int32_t next(int32_t state, int32_t symbol) {
        if (!(states[state].names & names_bit(symbol))) return otherwise(state);
        const int32_t known = transitions.get(pack(state, symbol), NONE);
        return known >= 0 ? known : make(state, symbol);
    }

    // The same after a name that is not among those that lead on: what stays active below.
    int32_t otherwise(int32_t state) {
        if (states[state].otherwise == UNKNOWN) {
            part_list.clear();
            const int32_t target = intern_state(states[state].loops);
            states[state].otherwise = target;
        }
        return states[state].otherwise;
    }

    // What a condition that holds for the element of a state leads to: the state behind it, or DEAD. Of leaves, which only
    // accept, what they accept is appended to `codes` instead.
    int32_t behind_condition(int32_t state, int32_t condition, std::vector<int32_t>& codes) {
        begin_set();
        for (int32_t i = states[state].parts; i < states[state].parts_end; ++i)
            if (parts[part_lists[i]].loops > parts[part_lists[i]].conditional) pass(part_lists[i], condition, codes);
        part_list.assign(1, intern_part());
        return intern_state(loops_below(NONE));
    }

    // The state that stands for some states of the automaton, all different.
    int32_t state_of(const int32_t* members, size_t number) {
        begin_set();
        for (size_t i = 0; i < number; ++i) put(members[i]);
        part_list.assign(1, intern_part());
        return intern_state(loops_below(NONE));
    }

    // All conditions that lead on from a part, ascending.
    struct ConditionList {
        const PartCondition* begin;
        const PartCondition* end;     // both valid until the next call
    };
    ConditionList listed_conditions(int32_t number) {
        if (parts[number].listed == NONE) list_conditions(number);
        const Extent64 at = condition_lists[parts[number].listed];
        return ConditionList{part_conditions.data() + at.begin, part_conditions.data() + at.end};
    }

    // The state at the scopes of a state's branching steps.
    int32_t scope_of(int32_t state) {
        if (states[state].scope != UNKNOWN) return states[state].scope;
        begin_set();
        for (int32_t i = states[state].parts; i < states[state].parts_end; ++i) {
            const Part& part = parts[part_lists[i]];
            for (int64_t j = part.marked; j < part.accepts; ++j) put(index->automaton.target(pool[j], SCOPE));
        }
        part_list.assign(1, intern_part());
        const int32_t target = intern_state(loops_below(NONE));
        states[state].scope = target;
        return target;
    }

    // A hash of the states of the automaton that a state stands for. States that stand for the same may be several, if they
    // were come to in different ways; then their parts differ, but the sum over them does not. It must not: after the cache
    // was emptied the same sets may be made of other parts.
    uint64_t set_hash_of(int32_t state) const {
        const DfaState& at = states[state];
        uint64_t hash = at.loops != NONE ? mix64(loops[at.loops].hash) : 0;
        for (int32_t i = at.parts; i < at.parts_end; ++i) hash += parts[part_lists[i]].hash;
        return hash;
    }

    // Whether two states with the same hash stand for the same.
    bool are_same_set(int32_t a, int32_t b) {
        if (a == b) return true;
        const DfaState &one = states[a], &other = states[b];
        begin_set();
        int64_t members = 0;
        each_member(one, [&](int32_t state) { seen_at[state] = set_number, ++members; },
                    [&](int32_t code) { accepted(code) = set_number, ++members; });
        bool same = true;
        each_member(other, [&](int32_t state) { same &= seen_at[state] == set_number, --members; },
                    [&](int32_t code) { same &= accepted(code) == set_number, --members; });
        if (!same || members) return false;
        if (one.loops == other.loops) return true;
        if (one.loops == NONE || other.loops == NONE || loops[one.loops].total != loops[other.loops].total) return false;
        begin_set();
        for (int32_t link = one.loops; link != NONE; link = loops[link].above)
            for (int64_t j = loops[link].begin; j < loops[link].end; ++j) seen_at[pool[j]] = set_number;
        return are_marked(other.loops);
    }

    // Makes the block of a part.
    void make_block(Accepts& part) {
        made_triggers.clear();
        made_wide.clear();
        part.block = uint32_t(blocks.size());
        for (uint32_t i = part.begin; i < part.end; ++i) {
            const int32_t edge = edge_of_code(pool[i]);
            if (index->edges[edge].uses > index->edges[edge].listed) blocks.push_back(edge);
            append_triggers(edge, made_triggers, made_wide);
        }
        part.edges = uint32_t(blocks.size()) - part.block;
        part.triggers = uint32_t(made_triggers.size());
        part.wide = uint32_t(made_wide.size());
        append_words(made_triggers);
        append_words(made_wide);
    }

    // Appends what an edge triggers.
    void append_triggers(int32_t edge, std::vector<Trigger>& to, std::vector<WideTrigger>& to_wide) const {
        const int32_t none = int32_t(index->edges.size());
        for (int32_t number = index->edges[edge].first; number != NONE;) {
            const Node& node = index->nodes[number];
            const Trigger made{node.other == NONE ? none : node.other, node.third == NONE ? none : node.third, node.target};
            if (node.more) to_wide.push_back(WideTrigger{made, number});
            else to.push_back(made);
            number = node.next;
        }
    }

    // A yield of edges that subs completed, given as codes.
    int32_t yield_of(const std::vector<int32_t>& codes) {
        begin_set();
        for (const int32_t code : codes) {
            accepts.push_back(code);
            set_hash += mix64(uint64_t(uint32_t(code)) << 32);
        }
        accepting.assign(1, intern_part());
        return intern_yield();
    }

    size_t bytes() const {
        return states.capacity() * sizeof(DfaState) + parts.capacity() * sizeof(Part) +
               accepts_of.capacity() * sizeof(Accepts) +
               loops.capacity() * sizeof(Loops) + yields.capacity() * sizeof(Yield) +
               (pool.capacity() + part_lists.capacity()) * sizeof(int32_t) + blocks.capacity() * sizeof(int32_t) +
               transitions.bytes() + loop_moves.bytes() + part_conditions.capacity() * sizeof(PartCondition) +
               condition_lists.capacity() * sizeof(Extent64) +
               move_lists.capacity() * sizeof(Extent) + states_by_hash.bytes() + parts_by_hash.bytes() +
               loops_by_hash.bytes() + yields_by_hash.bytes();
    }
    size_t stamp_bytes() const {
        return (seen_at.capacity() + accepted_at.capacity()) * sizeof(uint32_t) + children.capacity() * sizeof(Child) +
               children_of.bytes();
    }
    // The index has changed: what is known of it beside the cache is forgotten.
    void forget_index() {
        children.clear();
        children_of.clear();
        has_children = false;
    }

   private:
    FlatMap<int32_t> transitions;       // pack(state, name) -> state
    struct Extent {
        int32_t begin, end;             // in `part_lists`
    };
    struct Extent64 {
        int64_t begin, end;             // in `part_conditions`
    };
    std::vector<PartCondition> part_conditions;
    std::vector<Extent64> condition_lists;
    struct Child {
        int32_t state, condition, target;
    };
    std::vector<Child> children;        // the states behind conditions, by the state that they stand behind
    FlatMap<int32_t> children_of;       // state -> where its children begin
    bool has_children = false;
    std::vector<PartCondition> found_conditions;
    static constexpr int32_t OFTEN = 8; // a part that was asked so often gets a list of its conditions
    FlatMap<int32_t> loop_moves;        // pack(loops, name) -> number in `move_lists`
    std::vector<Extent> move_lists;     // the parts that some loops, and all above them, lead to
    std::vector<int32_t> chain;
    FlatMap<int32_t> states_by_hash, parts_by_hash, loops_by_hash, yields_by_hash;
    std::vector<uint32_t> seen_at;      // by state of the automaton: the last set that it was found in
    std::vector<uint32_t> accepted_at;  // by key, then by edge: the same
    size_t keys = 0;
    uint32_t set_number = 0;
    // The set being made.
    uint64_t set_hash = 0;
    std::vector<int32_t> live, conditional, new_loops, marked, accepts;
    std::vector<int32_t> part_list;     // the parts of the state being made
    std::vector<int32_t> accepting;     // those of them that accept something
    std::vector<int32_t> asked, reached;
    std::vector<Trigger> made_triggers;
    std::vector<WideTrigger> made_wide;

    template <class T>
    void append_words(const std::vector<T>& list) {
        const int32_t* const words = reinterpret_cast<const int32_t*>(list.data());
        blocks.insert(blocks.end(), words, words + list.size() * (sizeof(T) / sizeof(int32_t)));
    }

    static constexpr int AHEAD = 8;     // members that are asked for in advance: they lie anywhere in memory

    int32_t make(int32_t state, int32_t symbol) {
        begin_set();
        for (int32_t i = states[state].parts; i < states[state].parts_end; ++i) {
            const Part& part = parts[part_lists[i]];
            follow(pool.data() + part.live, part.conditional - part.live, symbol);
        }
        const int32_t own = intern_part();
        const Extent moves = loop_moves_of(states[state].loops, symbol);
        part_list.assign(1, own);
        part_list.insert(part_list.end(), part_lists.begin() + moves.begin, part_lists.begin() + moves.end);
        const int32_t target = intern_state(loops_below(states[state].loops));
        transitions.put(pack(state, symbol), target);
        return target;
    }

    // The parts that a name leads to from some loops and all above them; those that are not empty.
    Extent loop_moves_of(int32_t link, int32_t symbol) {
        int32_t known = NONE;
        chain.clear();
        for (; link != NONE; link = loops[link].above) {
            known = loop_moves.get(pack(link, symbol), NONE);
            if (known >= 0) break;
            chain.push_back(link);
        }
        Extent moves = known >= 0 ? move_lists[known] : Extent{0, 0};
        for (size_t i = chain.size(); i-- > 0;) {
            const Loops& at = loops[chain[i]];
            begin_set();
            follow(pool.data() + at.begin, at.end - at.begin, symbol);
            const int32_t part = intern_part();
            if (part != EMPTY_PART) {
                const int32_t begin = int32_t(part_lists.size());
                part_lists.push_back(part);
                for (int32_t j = moves.begin; j < moves.end; ++j) part_lists.push_back(int32_t(part_lists[j]));
                moves = Extent{begin, int32_t(part_lists.size())};
            }
            loop_moves.put(pack(chain[i], symbol), int32_t(move_lists.size()));
            move_lists.push_back(moves);
        }
        return moves;
    }

    // Sets of states of the automaton.

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

    // Conditions.

    // Puts what a condition leads to from a part into the set; of leaves, what they accept into `codes`.
    void pass(int32_t number, int32_t condition, std::vector<int32_t>& codes) {
        if (parts[number].listed == NONE && ++parts[number].asked <= OFTEN) {
            const NfaState* const states = index->automaton.states.data();
            const uint16_t wanted = name_bit(condition);
            for (int64_t i = parts[number].conditional; i < parts[number].loops; ++i) {
                if (i + AHEAD < parts[number].loops) __builtin_prefetch(&states[pool[i + AHEAD]]);
                if (!(states[pool[i]].names & wanted)) continue;
                const int32_t target = index->automaton.target(pool[i], condition);
                if (target >= 0) put_behind(target, codes);
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

    void put_behind(int32_t target, std::vector<int32_t>& codes) {
        if (index->automaton.states[target].is_leaf()) codes.push_back(index->automaton.states[target].accepts);
        else put(target);
    }

    void list_conditions(int32_t number) {
        if (!has_children) find_children();
        found_conditions.clear();
        for (int64_t i = parts[number].conditional; i < parts[number].loops; ++i) {
            const int32_t state = pool[i];
            for (size_t k = size_t(children_of.get(uint32_t(state), int32_t(children.size())));
                 k < children.size() && children[k].state == state; ++k) {
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
        condition_lists.push_back(Extent64{begin, int64_t(part_conditions.size())});
    }

    // The automaton finds a state behind a condition, but has no list of them: here it is made, once for an index.
    void find_children() {
        has_children = true;
        index->automaton.transitions.all([this](uint64_t key, int32_t target) {
            const NfaState& at = index->automaton.states[target];
            if ((at.flags & NfaState::STAYS) && at.symbol != SCOPE)
                children.push_back(Child{int32_t(key >> 32), at.symbol, target});
            return true;
        });
        std::sort(children.begin(), children.end(), [](const Child& a, const Child& b) {
            return pack(a.state, a.condition) < pack(b.state, b.condition);
        });
        for (size_t i = 0; i < children.size(); ++i)
            if (i == 0 || children[i].state != children[i - 1].state)
                children_of.put(uint32_t(children[i].state), int32_t(i));
    }

    void put(int32_t state) {
        const NfaState& at = index->automaton.states[state];
        set_hash += mix64(uint64_t(state) + 1);
        if (at.accepts != NOTHING) accepts.push_back(at.accepts);
        if (at.marks) marked.push_back(state);
        if (at.descendant >= 0) new_loops.push_back(at.descendant);
        if (at.flags & NfaState::NAMED) live.push_back(state);
        if (at.flags & NfaState::CONDITIONAL) conditional.push_back(state);
    }

    uint32_t& accepted(int32_t code) { return accepted_at[is_key(code) ? size_t(code) : keys + edge_of_code(code)]; }

    void append(const std::vector<int32_t>& members) { pool.insert(pool.end(), members.begin(), members.end()); }

    // The part whose set was just made: one that is known, or a new one.
    int32_t intern_part() {
        if (live.empty() && conditional.empty() && new_loops.empty() && marked.empty() && accepts.empty())
            return EMPTY_PART;
        const uint64_t key = set_hash >> 1;  // FlatMap has one key that it cannot take
        const int32_t first = parts_by_hash.get(key, NONE);
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
        accepts_of.push_back(Accepts{0, uint32_t(made.accepts), uint32_t(made.end), NO_BLOCK, 0, 0, 0});
        const int32_t part = int32_t(parts.size()) - 1;
        parts_by_hash.put(key, part);
        return part;
    }

    // Calls use(state) for the states of the automaton that a state lists, in whatever lists, and use_code(code) for what it
    // accepts.
    template <class Use, class UseCode>
    void each_member(const DfaState& state, Use&& use, UseCode&& use_code) const {
        for (int32_t i = state.parts; i < state.parts_end; ++i) {
            const Part& part = parts[part_lists[i]];
            for (int64_t j = part.live; j < part.accepts; ++j) use(pool[j]);
            for (int64_t j = part.accepts; j < part.end; ++j) use_code(pool[j]);
        }
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

    // What is active below a state with the parts in `part_list`, where `above` is active already.
    int32_t loops_below(int32_t above) {
        bool some = false;
        for (const int32_t part : part_list) some |= parts[part].marked > parts[part].loops;
        if (!some) return above;
        begin_set();
        for (int32_t link = above; link != NONE; link = loops[link].above)
            for (int64_t j = loops[link].begin; j < loops[link].end; ++j) seen_at[pool[j]] = set_number;
        for (const int32_t part : part_list)
            for (int64_t j = parts[part].loops; j < parts[part].marked; ++j)
                if (seen_at[pool[j]] != set_number) new_loops.push_back(pool[j]);
        return new_loops.empty() ? above : intern_loops(above);
    }

    // The loops of `new_loops` below those `above`, which are marked: known ones, or new ones. In recursive documents the
    // same loops become active in many an order: what counts is which there are in all.
    int32_t intern_loops(int32_t above) {
        int64_t total = int64_t(new_loops.size()) + (above != NONE ? loops[above].total : 0);
        uint64_t hash = above != NONE ? loops[above].hash : 0;
        for (const int32_t member : new_loops) {
            hash += mix64(uint64_t(member) + 1);
            seen_at[member] = set_number;
        }
        const int32_t first = loops_by_hash.get(hash >> 1, NONE);
        for (int32_t link = first; link >= 0; link = loops[link].same_hash)
            if (loops[link].hash == hash && loops[link].total == total && are_marked(link)) return link;
        const int64_t begin = int64_t(pool.size());
        append(new_loops);
        uint32_t names = above != NONE ? loops[above].names : 0;
        for (const int32_t member : new_loops) names |= index->automaton.states[member].leads_on();
        loops.push_back(Loops{begin, int64_t(pool.size()), total, hash, first, above, names});
        loops_by_hash.put(hash >> 1, int32_t(loops.size()) - 1);
        return int32_t(loops.size()) - 1;
    }

    bool are_marked(int32_t link) const {
        for (; link != NONE; link = loops[link].above)
            for (int64_t j = loops[link].begin; j < loops[link].end; ++j)
                if (seen_at[pool[j]] != set_number) return false;
        return true;
    }

    static bool is_list(const std::vector<int32_t>& pool, int64_t begin, int64_t end,
                        const std::vector<int32_t>& members) {
        return end - begin == int64_t(members.size()) &&
               std::equal(members.begin(), members.end(), pool.begin() + begin);
    }

    static uint64_t hash_of(uint64_t seed, const std::vector<int32_t>& members) {
        uint64_t hash = mix64(seed);
        for (const int32_t member : members) hash = mix64(hash + uint64_t(uint32_t(member)));
        return hash >> 1;
    }

    // The state with the parts in `part_list` and these loops: one that is known, or a new one.
    int32_t intern_state(int32_t link) {
        part_list.erase(std::remove(part_list.begin(), part_list.end(), int32_t(EMPTY_PART)), part_list.end());
        const uint64_t hash = hash_of(uint32_t(link), part_list);
        const int32_t first = states_by_hash.get(hash, NONE);
        for (int32_t state = first; state >= 0; state = states[state].same_hash)
            if (states[state].loops == link &&
                is_list(part_lists, states[state].parts, states[state].parts_end, part_list))
                return state;
        DfaState made;
        made.hash = hash;
        made.same_hash = first;
        made.loops = link;
        made.scope = UNKNOWN;
        made.otherwise = UNKNOWN;
        made.subjects = 0;
        made.names = link != NONE ? loops[link].names : 0;
        made.branches = false;
        made.parts = int32_t(part_lists.size());
        part_lists.insert(part_lists.end(), part_list.begin(), part_list.end());
        made.parts_end = int32_t(part_lists.size());
        accepting.clear();
        for (const int32_t number : part_list) {
            const Part& part = parts[number];
            if (part.end > part.accepts) accepting.push_back(number);
            made.names |= part.names;
            made.subjects |= part.subjects;
            made.branches |= part.accepts > part.marked;
        }
        made.yield = accepting.empty() ? NONE : intern_yield();
        states.push_back(made);
        ++states_made;
        states_by_hash.put(hash, int32_t(states.size()) - 1);
        return int32_t(states.size()) - 1;
    }

    int32_t intern_yield() {
        std::sort(accepting.begin(), accepting.end());
        const uint64_t hash = hash_of(1, accepting);
        const int32_t first = yields_by_hash.get(hash, NONE);
        for (int32_t yield = first; yield >= 0; yield = yields[yield].same_hash)
            if (is_list(part_lists, yields[yield].parts, yields[yield].parts_end, accepting)) return yield;
        const int32_t begin = int32_t(part_lists.size());
        part_lists.insert(part_lists.end(), accepting.begin(), accepting.end());
        yields.push_back(Yield{begin, int32_t(part_lists.size()), hash, 0, first});
        yields_by_hash.put(hash, int32_t(yields.size()) - 1);
        return int32_t(yields.size()) - 1;
    }
};

}  // namespace xsift::sift
