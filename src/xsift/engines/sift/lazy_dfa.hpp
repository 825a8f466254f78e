// LazyDfa: the automaton, determinised as documents ask for it.
//
// A set of active states of the automaton, once computed, is a state of its own: the next element with the same path of
// names costs one look-up. Documents of one kind visit few such sets, though there could be exponentially many; so they
// are made on demand, and kept in a cache that its owner bounds: when it is full everything is forgotten and made
// again.
//
// The naive subset construction lists the whole set in each state. Nine tenths of these lists are looping states: a
// `//` that is active once is active for everything below, so that each state repeats what the one above it has. And
// what `//p` accepts is listed again in every state that a `p` leads to. Hence two things are shared here:
//
//     Loops   the looping states that one element made active, with a link to those that were active before it. A state
//             names the last of such a chain, and all elements below share it.
//     Part    a set of states of the automaton that some state contains. Where the loops of one link lead to on a name is
//             one part, made once for all states below, and listed with what the links above it lead to; what is left of a
//             state, its own part, follows from the parts of the state above.
//
// So a state is a short list of parts and the loops that are active below it. The automaton is a tree, and one of its
// states is reached from one other only; therefore the parts of a state have nothing in common, and the states of a
// chain of loops are all different.
//
// Parts, loops and states are each kept once: recursive documents lead back to what is there. Two sets are equal when
// their members are, in whatever order they were found: the hash is a sum over the members, and equality is checked
// member by member. What states accept is kept once too, as a *yield*: different states often accept the same.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "automaton.hpp"
#include "flat_map.hpp"
#include "parts.hpp"
#include "release.hpp"
#include "trigger_blocks.hpp"
#include "twig_index.hpp"

namespace xsift::sift {

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
    uint32_t block;           // in `triggers`, if it is of edges; NO_BLOCK: not made yet
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
    int32_t members;          // states of the automaton in it that lead on or accept
    int32_t scope;            // the state at the scopes of its branching steps; UNKNOWN until it is asked for
    int32_t otherwise;        // where names that do not lead on lead; likewise
};

class LazyDfa {
   public:
    enum : int32_t { DEAD = 0, UNKNOWN = -2 };
    static constexpr int64_t MOST_BYTES = int64_t(4) << 30;  // so that places in pools and blocks have 32 bits

    const TwigIndex* const index;
    Parts parts;
    TriggerBlocks triggers;
    std::vector<DfaState> states;       // DEAD: nothing is active
    int32_t first = DEAD;               // the state of a document of which nothing is read yet; DEAD if there are no patterns
    std::vector<Loops> loops;
    std::vector<Yield> yields;
    std::vector<int32_t> part_lists;
    int64_t states_made = 0;

    LazyDfa(const TwigIndex* index, const TriggerTable& table) : index(index), triggers(parts, table) { parts.index = index; }

    // Forgets all states but DEAD and the first.
    void restart() {
        parts.restart();
        triggers.restart();
        release(states, loops, yields, part_lists, move_lists);
        transitions.clear();
        loop_moves.clear();
        states_by_hash.clear();
        loops_by_hash.clear();
        yields_by_hash.clear();
        part_list.clear();
        intern_state(NONE);
        parts.begin_set();
        parts.put(0);
        first = state_of_set();
    }

    // Makes the block of a yield of edges: what they trigger.
    void make_block(Yield& yield) {
        yield.block = triggers.add(part_lists.data() + yield.parts, part_lists.data() + yield.parts_end);
    }

    // Nodes have other triggers now.
    void forget_blocks() {
        triggers.restart();
        for (Yield& yield : yields) yield.block = Parts::NO_BLOCK;
        for (Accepts& part : parts.accepts_of) part.block = Parts::NO_BLOCK;
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
        parts.begin_set();
        for (int32_t i = states[state].parts; i < states[state].parts_end; ++i)
            if (parts[part_lists[i]].loops > parts[part_lists[i]].conditional) parts.pass(part_lists[i], condition, codes);
        return state_of_set();
    }

    // The state that stands for some states of the automaton, all different.
    int32_t state_of(const int32_t* members, size_t number) {
        parts.begin_set();
        for (size_t i = 0; i < number; ++i) parts.put(members[i]);
        return state_of_set();
    }

    // The state at the scopes of a state's branching steps.
    int32_t scope_of(int32_t state) {
        if (states[state].scope != UNKNOWN) return states[state].scope;
        parts.begin_set();
        for (int32_t i = states[state].parts; i < states[state].parts_end; ++i) {
            const Part& part = parts[part_lists[i]];
            for (int64_t j = part.marked; j < part.accepts; ++j) parts.put(index->automaton.target(parts.pool[j], SCOPE));
        }
        const int32_t target = state_of_set();
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
        parts.begin_set();
        int64_t members = 0;
        each_member(one, [&](int32_t state) { parts.stamp(state), ++members; },
                    [&](int32_t code) { parts.stamp_code(code), ++members; });
        bool same = true;
        each_member(other, [&](int32_t state) { same &= parts.is_stamped(state), --members; },
                    [&](int32_t code) { same &= parts.is_stamped_code(code), --members; });
        if (!same || members) return false;
        if (one.loops == other.loops) return true;
        if (one.loops == NONE || other.loops == NONE || loops[one.loops].total != loops[other.loops].total) return false;
        parts.begin_set();
        stamp_loops(one.loops);
        return are_stamped(other.loops);
    }

    // A yield of edges that subs completed, given as codes.
    int32_t yield_of(const std::vector<int32_t>& codes) {
        parts.begin_set();
        for (const int32_t code : codes) parts.put_code(code);
        accepting.assign(1, parts.intern());
        return intern_yield();
    }

    size_t bytes() const {
        return parts.bytes() + triggers.bytes() + states.capacity() * sizeof(DfaState) + loops.capacity() * sizeof(Loops) +
               yields.capacity() * sizeof(Yield) + part_lists.capacity() * sizeof(int32_t) +
               move_lists.capacity() * sizeof(Extent) + transitions.bytes() + loop_moves.bytes() + states_by_hash.bytes() +
               loops_by_hash.bytes() + yields_by_hash.bytes();
    }

   private:
    struct Extent {
        int32_t begin, end;             // in `part_lists`
    };
    FlatMap<int32_t> transitions;       // pack(state, name) -> state
    FlatMap<int32_t> loop_moves;        // pack(loops, name) -> number in `move_lists`
    std::vector<Extent> move_lists;     // the parts that some loops, and all above them, lead to
    std::vector<int32_t> chain;
    FlatMap<int32_t> states_by_hash, loops_by_hash, yields_by_hash;
    std::vector<int32_t> part_list;     // the parts of the state being made
    std::vector<int32_t> accepting;     // those of them that accept something

    int32_t make(int32_t state, int32_t symbol) {
        parts.begin_set();
        for (int32_t i = states[state].parts; i < states[state].parts_end; ++i) {
            const Part& part = parts[part_lists[i]];
            parts.follow(parts.pool.data() + part.live, part.conditional - part.live, symbol);
        }
        const int32_t own = parts.intern();
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
            parts.begin_set();
            parts.follow(parts.pool.data() + at.begin, at.end - at.begin, symbol);
            const int32_t part = parts.intern();
            if (part != Parts::EMPTY) {
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

    // Calls use(state) for the states of the automaton that a state lists, in whatever lists, and use_code(code) for what it
    // accepts.
    template <class Use, class UseCode>
    void each_member(const DfaState& state, Use&& use, UseCode&& use_code) const {
        for (int32_t i = state.parts; i < state.parts_end; ++i) {
            const Part& part = parts[part_lists[i]];
            for (int64_t j = part.live; j < part.accepts; ++j) use(parts.pool[j]);
            for (int64_t j = part.accepts; j < part.end; ++j) use_code(parts.pool[j]);
        }
    }

    // What is active below a state with the parts in `part_list`, where `above` is active already.
    int32_t loops_below(int32_t above) {
        bool some = false;
        for (const int32_t part : part_list) some |= parts[part].marked > parts[part].loops;
        if (!some) return above;
        parts.begin_set();
        stamp_loops(above);
        for (const int32_t part : part_list)
            for (int64_t j = parts[part].loops; j < parts[part].marked; ++j)
                if (!parts.is_stamped(parts.pool[j])) parts.new_loops.push_back(parts.pool[j]);
        return parts.new_loops.empty() ? above : intern_loops(above);
    }

    void stamp_loops(int32_t link) {
        for (; link != NONE; link = loops[link].above)
            for (int64_t j = loops[link].begin; j < loops[link].end; ++j) parts.stamp(parts.pool[j]);
    }

    // The loops of `new_loops` below those `above`, which are stamped: known ones, or new ones. In recursive documents the
    // same loops become active in many an order: what counts is which there are in all.
    int32_t intern_loops(int32_t above) {
        const std::vector<int32_t>& new_loops = parts.new_loops;
        const int64_t total = int64_t(new_loops.size()) + (above != NONE ? loops[above].total : 0);
        uint64_t hash = above != NONE ? loops[above].hash : 0;
        for (const int32_t member : new_loops) {
            hash += mix64(uint64_t(member) + 1);
            parts.stamp(member);
        }
        const int32_t first = loops_by_hash.get(hash >> 1, NONE);
        for (int32_t link = first; link >= 0; link = loops[link].same_hash)
            if (loops[link].hash == hash && loops[link].total == total && are_stamped(link)) return link;
        const int64_t begin = int64_t(parts.pool.size());
        parts.append(new_loops);
        uint32_t names = above != NONE ? loops[above].names : 0;
        for (const int32_t member : new_loops) names |= index->automaton.states[member].leads_on();
        loops.push_back(Loops{begin, int64_t(parts.pool.size()), total, hash, first, above, names});
        loops_by_hash.put(hash >> 1, int32_t(loops.size()) - 1);
        return int32_t(loops.size()) - 1;
    }

    bool are_stamped(int32_t link) const {
        for (; link != NONE; link = loops[link].above)
            for (int64_t j = loops[link].begin; j < loops[link].end; ++j)
                if (!parts.is_stamped(parts.pool[j])) return false;
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

    // The state that stands for the set that was just made.
    int32_t state_of_set() {
        part_list.assign(1, parts.intern());
        return intern_state(loops_below(NONE));
    }

    // The state with the parts in `part_list` and these loops: one that is known, or a new one.
    int32_t intern_state(int32_t link) {
        part_list.erase(std::remove(part_list.begin(), part_list.end(), int32_t(Parts::EMPTY)), part_list.end());
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
        made.members = 0;
        made.parts = int32_t(part_lists.size());
        part_lists.insert(part_lists.end(), part_list.begin(), part_list.end());
        made.parts_end = int32_t(part_lists.size());
        accepting.clear();
        for (const int32_t number : part_list) {
            const Part& part = parts[number];
            if (part.end > part.accepts) accepting.push_back(number);
            made.members += int32_t(part.conditional - part.live + part.end - part.accepts);
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
        yields.push_back(Yield{begin, int32_t(part_lists.size()), hash, 0, first, Parts::NO_BLOCK});
        yields_by_hash.put(hash, int32_t(yields.size()) - 1);
        return int32_t(yields.size()) - 1;
    }
};

}  // namespace xsift::sift
