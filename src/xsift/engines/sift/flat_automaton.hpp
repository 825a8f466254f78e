// FlatAutomaton: the automaton laid out for a run that remembers nothing (plain_run.hpp).
//
// Such a run comes to very many states, and what it asks of each lies together here: one line of memory. Of most states one
// name leads on, which is written where it is asked for. A looping state waits for few names as a rule: the run lists it under
// each of them as long as it is active. If it waits for many, it is asked at every element instead.
#pragma once
#include <cstdint>
#include <vector>

#include "lazy_dfa.hpp"
#include "twig_index.hpp"

namespace xsift::sift {

// A name as one of 64 bits.
inline uint64_t wide_name_bit(int32_t symbol) { return uint64_t(1) << (symbol & 63); }

struct FlatState {
    uint64_t names;       // that lead on, as bits
    int32_t star;         // as in NfaState
    int32_t name;         // the only name that leads on; NONE: there are several,
    int32_t target;       // and where to; else its own number
    int32_t accepts;      // as in NfaState
    int32_t loop;         // the number of the loop behind it, or NONE
    int32_t more;         // in `more`; NONE
};

// What few states have.
struct FlatMore {
    uint64_t subjects;                 // of the conditions that lead on
    int32_t state;
    int32_t scope;                     // or NONE
    int32_t conditions, conditions_end;  // in `conditions`
};

struct Transition {
    int32_t symbol, target;
};

struct FlatLoop {
    uint64_t names;       // that lead on, as bits
    int32_t state;        // the looping state
    int32_t star;         // of it
    int32_t first, end;   // in `waits`: what it waits for
    bool is_wide;         // it waits for many names: those are not listed
    bool is_noted;        // it is in a scope: where it began is needed to find out which twigs hold
};

// What an edge says when it is met.
struct FlatEdge {
    int32_t triggers, triggers_end;    // in `triggers`: the nodes to be looked at
};

struct NodeTrigger {
    int32_t other, third;  // edges that must hold besides; the number after the last edge stands for none
    int32_t node;
    int32_t more;          // whether there are yet more
};

class FlatAutomaton {
   public:
    std::vector<FlatState> states;
    std::vector<FlatMore> more;
    std::vector<FlatLoop> loops;
    std::vector<Transition> conditions;
    std::vector<Transition> waits;     // the numbers of names in `waiting_names`, not symbols
    std::vector<int32_t> waiting_of;   // by symbol: the number of the name, or NONE
    int32_t waiting_names = 0;
    std::vector<FlatEdge> edges;
    std::vector<NodeTrigger> triggers;

    // Lays an index out anew.
    void assign(const TwigIndex& index) {
        *this = FlatAutomaton();
        lay_out_states(index.automaton);
        lay_out_transitions(index.automaton);
        lay_out_loops(index.automaton);
        lay_out_edges(index);
    }

    size_t bytes() const {
        return states.capacity() * sizeof(FlatState) + more.capacity() * sizeof(FlatMore) +
               loops.capacity() * sizeof(FlatLoop) + (conditions.capacity() + waits.capacity()) * sizeof(Transition) +
               waiting_of.capacity() * 4 + edges.capacity() * sizeof(FlatEdge) + triggers.capacity() * sizeof(NodeTrigger);
    }

   private:
    static constexpr int32_t MANY_NAMES = 16;

    void lay_out_states(const Automaton& automaton) {
        states.reserve(automaton.states.size());
        for (size_t i = 0; i < automaton.states.size(); ++i) {
            const NfaState& at = automaton.states[i];
            int32_t loop = NONE;
            if (at.descendant >= 0) {
                loop = int32_t(loops.size());
                loops.push_back(FlatLoop{0, at.descendant, automaton.states[at.descendant].star, 0, 0, false,
                                         is_in_scope(automaton, int32_t(i))});
            }
            states.push_back(FlatState{0, at.star, NONE, int32_t(i), at.accepts, loop, NONE});
        }
    }

    static bool is_in_scope(const Automaton& automaton, int32_t state) {
        for (; state != NONE; state = automaton.states[state].parent)
            if (automaton.states[state].symbol == SCOPE) return true;
        return false;
    }

    FlatMore& more_of(int32_t state) {
        if (states[state].more == NONE) {
            states[state].more = int32_t(more.size());
            more.push_back(FlatMore{0, state, NONE, 0, 0});
        }
        return more[states[state].more];
    }

    void lay_out_transitions(const Automaton& automaton) {
        std::vector<Transition> by_state;  // of conditions: the state, and the state behind
        automaton.transitions.all([&](uint64_t key, int32_t target) {
            const int32_t state = int32_t(key >> 32), symbol = int32_t(uint32_t(key));
            if (symbol == SCOPE) {
                more_of(state).scope = target;
            } else if (automaton.states[target].flags & NfaState::STAYS) {
                by_state.push_back(Transition{state, target});
            } else {
                FlatState& from = states[state];
                const bool first = from.names == 0;
                from.names |= wide_name_bit(symbol);
                from.name = first ? symbol : NONE;
                from.target = first ? target : state;
            }
            return true;
        });
        std::sort(by_state.begin(), by_state.end(), [](const Transition& a, const Transition& b) {
            return pack(a.symbol, a.target) < pack(b.symbol, b.target);
        });
        for (const Transition& at : by_state) {
            FlatMore& from = more_of(at.symbol);
            if (from.conditions == from.conditions_end) {
                from.conditions = from.conditions_end = int32_t(conditions.size());
                from.subjects = automaton.subjects.get(uint32_t(at.symbol), 0);
            }
            conditions.push_back(Transition{automaton.states[at.target].symbol, at.target});
            ++from.conditions_end;
        }
    }

    void lay_out_loops(const Automaton& automaton) {
        std::vector<int32_t> loop_at(automaton.states.size(), NONE);
        for (size_t i = 0; i < loops.size(); ++i) loop_at[loops[i].state] = int32_t(i);
        std::vector<int32_t> number(loops.size(), 0);
        automaton.transitions.all([&](uint64_t key, int32_t) {
            const int32_t loop = loop_at[int32_t(key >> 32)];
            if (loop != NONE) ++number[loop];
            return true;
        });
        int32_t place = 0;
        for (size_t i = 0; i < loops.size(); ++i) {
            loops[i].names = states[loops[i].state].names;
            loops[i].is_wide = number[i] > MANY_NAMES;
            loops[i].first = loops[i].end = place;
            if (!loops[i].is_wide) place += number[i];
        }
        waits.resize(place);
        automaton.transitions.all([&](uint64_t key, int32_t target) {
            const int32_t loop = loop_at[int32_t(key >> 32)];
            if (loop != NONE && !loops[loop].is_wide)
                waits[loops[loop].end++] = Transition{waiting_number(int32_t(uint32_t(key))), target};
            return true;
        });
    }

    int32_t waiting_number(int32_t symbol) {
        if (size_t(symbol) >= waiting_of.size()) waiting_of.resize(size_t(symbol) + 1, NONE);
        if (waiting_of[symbol] == NONE) waiting_of[symbol] = waiting_names++;
        return waiting_of[symbol];
    }

    void lay_out_edges(const TwigIndex& index) {
        const int32_t none = int32_t(index.edges.size());
        edges.reserve(index.edges.size());
        for (const Edge& edge : index.edges) {
            const int32_t begin = int32_t(triggers.size());
            for (int32_t number = edge.first; number != NONE; number = index.nodes[number].next) {
                const Node& node = index.nodes[number];
                triggers.push_back(NodeTrigger{node.other == NONE ? none : node.other, node.third == NONE ? none : node.third,
                                               number, node.more});
            }
            edges.push_back(FlatEdge{begin, int32_t(triggers.size())});
        }
    }
};

}  // namespace xsift::sift
