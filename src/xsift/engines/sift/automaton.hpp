// Automaton: one non-deterministic automaton for all paths of all patterns, prefixes shared (YFilter's idea).
//
// Three kinds of transition lead on from a state:
//
//     a name, `*`, `//`   to a child element; `//` goes through a state that stays active below
//     a condition         stays at the element: the state behind it is active where the condition holds
//     a scope             stays at the element too: it is where the paths begin that a branching step asks for
//
// So `/a[@x=1]/b` is a path like any other, and the twig `/a[b]/c` is the path /a, with a scope that has the paths b
// and c. The paths of a scope accept *edges* (twig_index.hpp), those from the root accept keys of patterns.
#pragma once
#include <cstdint>

#include "array.hpp"
#include "flat_map.hpp"

namespace xsift::sift {

constexpr int32_t NONE = -1;
constexpr int32_t NOTHING = -1;    // what a state accepts: nothing, a key (0 or more), or an edge:
inline int32_t code_of_edge(int32_t edge) { return -2 - edge; }
inline int32_t edge_of_code(int32_t code) { return -2 - code; }
inline bool is_key(int32_t code) { return code >= 0; }

constexpr int32_t SCOPE = -2;      // the "symbol" that leads to a scope; names and conditions are not negative

inline uint16_t name_bit(int32_t symbol) { return uint16_t(1u << (symbol & 15)); }

// Sets of names that lead on, as bits: one for each name_bit(), and one for names that nobody asks for, which only `*` takes.
constexpr uint32_t ALL_NAMES = 0x1ffff;
inline uint32_t names_bit(int32_t symbol) { return symbol ? name_bit(symbol) : 0x10000; }

struct NfaState {
    enum Flag : uint8_t { LOOPS = 1, NAMED = 2, CONDITIONAL = 4, STAYS = 8 };
    int32_t parent;      // the state that leads here, NONE for the first; the next free state for a free one
    int32_t symbol;      // on which it leads here
    int32_t star;        // where `*` leads, or NONE
    int32_t descendant;  // the looping state of a following `//`, or NONE
    int32_t accepts;     // what ends here
    int32_t marks;       // branching steps of twigs here: then there is a scope
    int32_t children;    // transitions out of here, of all kinds
    uint16_t names;      // one bit (name_bit) a symbol that led on from here at some time: spares most look-ups
    uint8_t flags;       // LOOPS: it stays active below; STAYS: it is about the element of its parent, a condition or a scope
                         // led here. Whether names, and conditions, ever led on from here
    uint8_t unused;      // 0: a state is saved as it lies in memory

    uint32_t leads_on() const { return star >= 0 ? ALL_NAMES : names; }
    bool is_leaf() const { return children == 0 && marks == 0; }
};

class Automaton {
    int32_t new_state(int32_t parent, int32_t symbol, uint8_t flags) {
        const NfaState made{parent, symbol, NONE, NONE, NOTHING, 0, 0, 0, flags, 0};
        int32_t state = free_state;
        if (state >= 0) {
            free_state = states[state].parent;
            *states.edit(state) = made;
        } else {
            state = int32_t(states.size());
            states.push_back(made);
        }
        if (parent >= 0) ++states.edit(parent)->children;
        ++state_count;
        return state;
    }

    int32_t by_symbol(int32_t state, int32_t symbol, uint8_t flag) {
        int32_t target = this->target(state, symbol);
        if (target >= 0) return target;
        target = new_state(state, symbol, flag == NfaState::NAMED ? 0 : NfaState::STAYS);
        transitions.put(pack(state, symbol), target);
        NfaState* from = states.edit(state);
        from->flags |= flag;
        if (flag) from->names |= name_bit(symbol);
        return target;
    }

   public:
    Array<NfaState> states;         // state 0 is where a document begins
    FlatMap<int32_t> transitions;   // pack(state, symbol) -> state, but for `*` and `//`
    FlatMap<uint64_t> subjects;     // state -> the subjects of conditions that led on from it at some time, as bits
    int32_t free_state = NONE;      // head of the list of free states
    int64_t state_count = 0;

    Automaton() { new_state(NONE, 0, 0); }

    int32_t target(int32_t state, int32_t symbol) const { return transitions.get(pack(state, symbol), NONE); }

    // The state after a step to an element.
    int32_t advance(int32_t state, int32_t symbol, bool descendant) {
        if (descendant) {
            int32_t loop = states[state].descendant;
            if (loop < 0) {
                loop = new_state(state, 0, NfaState::LOOPS);
                states.edit(state)->descendant = loop;
            }
            state = loop;
        }
        if (symbol) return by_symbol(state, symbol, NfaState::NAMED);
        int32_t target = states[state].star;
        if (target < 0) {
            target = new_state(state, 0, 0);
            NfaState* from = states.edit(state);
            from->star = target;
            from->flags |= NfaState::NAMED;
        }
        return target;
    }

    // The state behind a condition on the same element. `subject` is the bit of what the condition is on. Which conditions can
    // matter is asked before any is decided: so it is noted for all states of the element that may lead here.
    int32_t pass(int32_t state, int32_t condition, uint64_t subject) {
        for (int32_t at = state;; at = states[at].parent) {
            const uint64_t noted = subjects.get(uint32_t(at), 0);
            if (!(noted & subject)) subjects.put(uint32_t(at), noted | subject);
            if (!(states[at].flags & NfaState::STAYS)) break;
        }
        return by_symbol(state, condition, NfaState::CONDITIONAL);
    }

    // Where the paths begin that branching steps ask for in a state.
    int32_t scope_of(int32_t state) { return by_symbol(state, SCOPE, 0); }

    // Frees a state, and those above it, as far as nothing needs them any more.
    void release(int32_t state) {
        while (state > 0) {
            const NfaState freed = states[state];
            if (freed.children || freed.accepts != NOTHING || freed.marks) return;
            if (freed.flags & NfaState::LOOPS) states.edit(freed.parent)->descendant = NONE;
            else if (freed.symbol == 0) states.edit(freed.parent)->star = NONE;
            else transitions.erase(pack(freed.parent, freed.symbol));
            --states.edit(freed.parent)->children;
            subjects.erase(uint32_t(state));
            states.edit(state)->parent = free_state;
            free_state = state;
            --state_count;
            state = freed.parent;
        }
    }

    size_t bytes() const { return states.bytes() + transitions.bytes() + subjects.bytes(); }
};

}  // namespace xsift::sift
