// FlatAutomaton: the automaton laid out for a run that makes no states (plain_run.hpp).
//
// Such a run comes to very many states, and its time is that of fetching them. So:
//
//     Scopes are left out. Where the same names lead from the root there is one state, in whatever scopes they are: it is active
//     where all of these are. What it accepts is then a list of keys and edges.
//     What is asked of a state lies together in half a line of memory, and is fetched only if there is something to ask: most
//     states just accept something, which is written where others lead to them. If only one name leads on from a state, that is
//     written in the state itself.
//     A looping state waits for few names as a rule: the run lists it under each of them as long as it is active. If it waits
//     for many, it is asked at every element instead.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "trigger_table.hpp"
#include "twig_index.hpp"

namespace xsift::sift {

// A name as one of 64 bits.
inline uint64_t wide_name_bit(int32_t symbol) { return uint64_t(1) << (symbol & 63); }

// The first of some things, ascending by a number, whose number is not less than another. It is searched for without a
// branch, which could not be predicted.
template <class T, class NumberOf>
const T* first_from(const T* at, const T* end, int32_t number, NumberOf&& number_of) {
    if (at == end) return end;
    for (int64_t left = end - at; left > 1;) {
        const int64_t half = left / 2;
        at += half & -int64_t(number_of(at[half - 1]) < number);  // compilers make a branch of what looks like one
        left -= half;
    }
    return at + (number_of(*at) < number);
}

// Where a transition leads: to a state, or to nothing but what that accepts.
class Target {
    int32_t value;                     // a state times 2, and 1 if it is inner; or ~ of a key times 2, of an acceptance times 2 and 1;
                                       // NOWHERE
    static constexpr int32_t NOWHERE = INT32_MIN;
    explicit Target(int32_t value) : value(value) {}

   public:
    Target() : value(NOWHERE) {}
    static Target state(int32_t number, bool is_inner = false) { return Target(2 * number + is_inner); }
    static Target key(int32_t key) { return Target(~(2 * key)); }
    static Target acceptance(int32_t number) { return Target(~(2 * number + 1)); }
    bool exists() const { return value != NOWHERE; }
    bool is_state() const { return value >= 0; }
    bool is_inner() const { return value >= 0 && value & 1; }  // a state that matters to elements below alone
    bool is_key() const { return !(~value & 1); }
    int32_t number() const { return value >> 1; }        // of the state,
    int32_t accepted() const { return ~value >> 1; }     // or of the key, or acceptance
};

struct Transition {
    int32_t symbol;
    Target target;
};

struct FlatState {
    uint64_t names;       // that lead on, as bits
    Target star;          // where all of them, and others, lead besides
    int32_t name;         // the only name that leads on; if there are several, - of their number; or NONE
    Target target;        // where to; or, as its number, where in `transitions` they are
    Target accepts;       // a key or an acceptance
    int32_t loop;         // the number of the loop behind it, or NONE
    int32_t conditions;   // in `conditions`; NONE
};

struct FlatConditions {
    uint64_t subjects;
    int32_t first, end;   // in `transitions`, ascending
};

// A state that a condition leads on from.
struct Asking {
    int32_t conditions;   // of the state, in FlatAutomaton::conditions
    Target target;
};

struct FlatLoop {
    uint64_t names;       // that lead on, as bits
    Target star;
    int32_t name;         // the only name that it waits for, as a number of `waiting_names`; else - of how many names there are
    Target target;        // where that leads; or, as its number, where in `transitions` they are, ascending: if there are few,
                          // the symbols are numbers of `waiting_names`
    bool is_wide;         // it waits for many names
    bool is_noted;        // it is in a scope: where it began is needed to find out which twigs hold
    bool is_open;         // it is among the loops of open elements

    int32_t first() const { return target.number(); }
    int32_t end() const { return target.number() - name; }
};

// One of the things that an acceptance stands for.
struct Accepted {
    int32_t code;          // of a key, or of an edge,
    int32_t first, end;    // which is the trigger of these, in the table of triggers
};

// A part of the way up from where an edge was met to its scope: so many parents, then all elements above where a loop began.
struct Climb {
    int32_t parents;
    int32_t loop;          // or NONE: the scope is reached
};

// An edge. What is known of it in a document lies beside what is asked for to find it out: half a line of memory.
struct FlatEdge {
    int32_t acceptance;    // NONE if a sub completes it,
    int32_t sub;           // and this is the node; else NONE
    int32_t climbs, climbs_end;  // in `climbs`
    uint32_t document;     // that the rest is about
    int32_t glance;        // a branch point that it is below; NONE; UNSEEN
    int32_t begin, end;    // all of these, in the pool of TwigJoin; NONE: not known

    static constexpr int32_t UNSEEN = -2;
};

class FlatAutomaton {
   public:
    std::vector<FlatState> states;
    std::vector<FlatConditions> conditions;
    int32_t last_condition = NONE;       // no greater one is asked for
    std::vector<Asking> asking;          // by the name that leads there (0: `*`) and the condition, ascending
    FlatMap<int32_t> asking_of;          // pack(name, condition) -> where those are, in `askings`
    std::vector<int32_t> askings;
    std::vector<FlatLoop> loops;
    std::vector<Transition> transitions;
    std::vector<int32_t> waiting_of;     // by symbol: the number of a name that loops wait for, or NONE
    int32_t waiting_names = 0;
    std::vector<Accepted> accepted;
    std::vector<int32_t> acceptances;    // where in `accepted` those of each acceptance begin
    // For the twig join:
    std::vector<FlatEdge> edges;
    std::vector<Climb> climbs;

    // Lays an index out anew.
    void assign(const TwigIndex& index) {
        *this = FlatAutomaton();
        Layout(*this, index).lay_out();
    }

    // Nodes have other triggers now.
    void take_triggers(const TriggerTable& table) {
        for (Accepted& at : accepted) {
            if (is_key(at.code)) continue;
            at.first = table.begin_of(edge_of_code(at.code));
            at.end = table.begin_of(edge_of_code(at.code) + 1);
        }
    }

    // Where a symbol leads, if there is at most one such transition.
    static Target among(const Transition* first, const Transition* end, int32_t symbol) {
        const Transition* const at = first_from(first, end, symbol, [](const Transition& it) { return it.symbol; });
        return at != end && at->symbol == symbol ? at->target : Target();
    }

    size_t bytes() const {
        return states.capacity() * sizeof(FlatState) + conditions.capacity() * sizeof(FlatConditions) +
               loops.capacity() * sizeof(FlatLoop) + transitions.capacity() * sizeof(Transition) +
               asking.capacity() * sizeof(Asking) + asking_of.bytes() +
               (askings.capacity() + waiting_of.capacity() + acceptances.capacity()) * sizeof(int32_t) +
               accepted.capacity() * sizeof(Accepted) + edges.capacity() * sizeof(FlatEdge) +
               climbs.capacity() * sizeof(Climb);
    }

   private:
    // What is needed only while it is laid out.
    class Layout {
        static constexpr int32_t MANY_NAMES = 16;
        static constexpr size_t AHEAD = 8;     // states that are asked for in advance
        enum : int32_t { STAR = -3, LOOP = -4 };  // as SCOPE: the "symbols" that lead to the states of `*` and `//`

        struct Move {
            int32_t from, is_condition, symbol, to;  // states
        };

        FlatAutomaton& flat;
        const TwigIndex& index;
        const Automaton& automaton;
        std::vector<Move> moves;               // of the automaton, then of the flat one
        bool has_scopes = false;
        std::vector<int32_t> first_of;         // by state: where in `moves` its own begin
        std::vector<int32_t> state_of;         // by state of the automaton: the flat one
        // By flat state:
        std::vector<int32_t> star, loop;
        std::vector<uint8_t> is_scoped;
        std::vector<uint64_t> subjects;
        std::vector<int32_t> name_of;          // of the element that it is active at; 0: any
        struct Code {
            int32_t state, code;
        };
        std::vector<Code> codes;               // what flat states accept

       public:
        Layout(FlatAutomaton& flat, const TwigIndex& index) : flat(flat), index(index), automaton(index.automaton) {}

        void lay_out() {
            list_moves();
            if (has_scopes) merge_states();
            else take_states();
            list_acceptances();
            lay_out_transitions();
            for (size_t i = 0; i < star.size(); ++i) lay_out_state(int32_t(i));
            lay_out_asking();
            for (size_t i = 0; i < index.edges.size(); ++i) {
                flat.edges[i].sub = index.edges[i].sub;
                flat.edges[i].climbs = int32_t(flat.climbs.size());
                lay_out_climbs(index.edges[i]);
                flat.edges[i].climbs_end = int32_t(flat.climbs.size());
            }
        }

       private:
        bool stays(int32_t state) const { return automaton.states[state].flags & NfaState::STAYS; }

        // The transitions of the automaton, by state; of each, names come first, ascending.
        void list_moves() {
            std::vector<Move> unordered;
            unordered.reserve(automaton.transitions.size());
            first_of.assign(automaton.states.size() + 2, 0);
            automaton.transitions.all([&](uint64_t key, int32_t target) {
                unordered.push_back(Move{int32_t(key >> 32), stays(target), int32_t(uint32_t(key)), target});
                has_scopes |= unordered.back().symbol == SCOPE;
                ++first_of[size_t(key >> 32) + 2];
                return true;
            });
            for (size_t i = 2; i < first_of.size(); ++i) first_of[i] += first_of[i - 1];
            moves.resize(unordered.size());
            for (const Move& move : unordered) moves[first_of[move.from + 1]++] = move;
            first_of.pop_back();
            for (size_t i = 0; i + 1 < first_of.size(); ++i) {
                if (first_of[i + 1] - first_of[i] < 2) continue;
                std::sort(moves.begin() + first_of[i], moves.begin() + first_of[i + 1], [](const Move& a, const Move& b) {
                    return pack(a.is_condition, a.symbol) < pack(b.is_condition, b.symbol);
                });
            }
        }

        int32_t new_state(int32_t name) {
            name_of.push_back(name);
            star.push_back(NONE);
            loop.push_back(NONE);
            is_scoped.push_back(0);
            subjects.push_back(0);
            return int32_t(star.size()) - 1;
        }

        // Where there are no scopes, nothing is to be merged: all states stay what and where they are.
        void take_states() {
            const size_t number = automaton.states.size();
            star.resize(number);
            loop.resize(number);
            is_scoped.resize(number);
            subjects.resize(number);
            name_of.assign(number, 0);
            for (size_t i = 0; i < number; ++i) {
                const NfaState& state = automaton.states[i];
                star[i] = state.star;
                loop[i] = state.descendant;
                if (state.accepts != NOTHING) codes.push_back(Code{int32_t(i), state.accepts});
                if (state.flags & NfaState::CONDITIONAL) subjects[i] = automaton.subjects.get(uint32_t(i), 0);
            }
            for (const Move& move : moves) name_of[move.to] = move.is_condition ? UNNAMED : move.symbol;
            for (size_t i = 0; i < number; ++i) find_name(int32_t(i));
        }

        // The name of a state behind conditions is that of the one before them.
        void find_name(int32_t state) {
            behind.clear();
            for (; name_of[state] == UNNAMED; state = automaton.states[state].parent) {
                name_of[state] = 0;            // states that nothing leads to may lead to each other in a circle
                behind.push_back(state);
            }
            for (const int32_t it : behind) name_of[it] = name_of[state];
        }
        static constexpr int32_t UNNAMED = -1;
        std::vector<int32_t> behind;

        // A state of the automaton that a flat one stands for.
        struct Member {
            int32_t state;
            bool is_scoped;
        };
        // A step from one of them.
        struct Leaving {
            uint64_t symbol;                   // pack(is it a condition, symbol); STAR and LOOP come last
            Member to;
        };

        // Goes through the automaton from its first state, and gives each state its flat one. `moves` become those of the latter.
        void merge_states() {
            std::vector<Member> members{{0, false}};  // of all flat states, one after the other
            std::vector<size_t> first_member{0, 1};
            std::vector<Move> merged;
            merged.reserve(moves.size());
            std::vector<Member> here;
            std::vector<Leaving> leaving;
            std::vector<int32_t> first_moves;
            state_of.assign(automaton.states.size(), NONE);
            new_state(0);
            for (int32_t flat_state = 0; size_t(flat_state) < star.size(); ++flat_state) {
                if (first_member[flat_state] + AHEAD < members.size())
                    __builtin_prefetch(&automaton.states[members[first_member[flat_state] + AHEAD].state]);
                here.assign(members.begin() + first_member[flat_state], members.begin() + first_member[flat_state + 1]);
                leaving.clear();
                for (size_t i = 0; i < here.size(); ++i) leave(here[i], flat_state, here, leaving);
                if (here.size() > 1)
                    std::sort(leaving.begin(), leaving.end(),
                              [](const Leaving& a, const Leaving& b) { return a.symbol < b.symbol; });
                first_moves.push_back(int32_t(merged.size()));
                for (size_t i = 0; i < leaving.size();) {
                    const uint64_t symbol = leaving[i].symbol;
                    arrive(flat_state, symbol, merged);
                    for (; i < leaving.size() && leaving[i].symbol == symbol; ++i) members.push_back(leaving[i].to);
                    first_member.push_back(members.size());
                }
            }
            first_moves.push_back(int32_t(merged.size()));
            moves.swap(merged);
            first_of.swap(first_moves);
        }

        // Notes what a state of the automaton accepts, and what leads on from it. Its scope belongs to the same flat state.
        void leave(Member member, int32_t flat_state, std::vector<Member>& here, std::vector<Leaving>& leaving) {
            const NfaState& state = automaton.states[member.state];
            state_of[member.state] = flat_state;
            if (state.accepts != NOTHING) codes.push_back(Code{flat_state, state.accepts});
            if (state.flags & NfaState::CONDITIONAL) subjects[flat_state] |= automaton.subjects.get(uint32_t(member.state), 0);
            is_scoped[flat_state] |= member.is_scoped;
            for (int32_t i = first_of[member.state]; i < first_of[member.state + 1]; ++i) {
                const Move& move = moves[i];
                if (move.symbol == SCOPE) here.push_back(Member{move.to, true});
                else leaving.push_back(Leaving{pack(move.is_condition, move.symbol), Member{move.to, member.is_scoped}});
            }
            if (state.star >= 0) leaving.push_back(Leaving{pack(2, STAR), Member{state.star, member.is_scoped}});
            if (state.descendant >= 0) leaving.push_back(Leaving{pack(2, LOOP), Member{state.descendant, member.is_scoped}});
        }

        // Makes the flat state behind another.
        void arrive(int32_t from, uint64_t leaving, std::vector<Move>& merged) {
            const int32_t symbol = int32_t(uint32_t(leaving)), is_condition = int32_t(leaving >> 32) == 1;
            const int32_t to = new_state(is_condition ? name_of[from] : std::max(symbol, 0));
            if (symbol == STAR) star[from] = to;
            else if (symbol == LOOP) loop[from] = to;
            else merged.push_back(Move{from, is_condition, symbol, to});
        }

        // A key that is all that a state accepts stands for itself. For all else there is an acceptance.
        void list_acceptances() {
            std::sort(codes.begin(), codes.end(),
                      [](const Code& a, const Code& b) { return a.state != b.state ? a.state < b.state : a.code < b.code; });
            accepted_by.assign(star.size(), Target());
            flat.edges.assign(index.edges.size(), FlatEdge{NONE, NONE, 0, 0, 0, NONE, NONE, NONE});
            for (size_t i = 0, end; i < codes.size(); i = end) {
                end = i + 1;
                while (end < codes.size() && codes[end].state == codes[i].state) ++end;
                if (end == i + 1 && is_key(codes[i].code)) {
                    accepted_by[codes[i].state] = Target::key(codes[i].code);
                    continue;
                }
                const int32_t number = int32_t(flat.acceptances.size());
                accepted_by[codes[i].state] = Target::acceptance(number);
                flat.acceptances.push_back(int32_t(flat.accepted.size()));
                for (size_t j = i; j < end; ++j) {
                    flat.accepted.push_back(Accepted{codes[j].code, 0, 0});
                    if (!is_key(codes[j].code)) flat.edges[edge_of_code(codes[j].code)].acceptance = number;
                }
            }
            flat.acceptances.push_back(int32_t(flat.accepted.size()));
        }
        std::vector<Target> accepted_by;       // by flat state

        Target target_of(int32_t state) const {
            if (state == NONE) return Target();
            const bool accepts = accepted_by[state].exists(), has_moves = first_of[state] < first_of[state + 1];
            if (accepts && !has_moves && star[state] == NONE && loop[state] == NONE) return accepted_by[state];
            const bool asks = has_moves && moves[first_of[state + 1] - 1].is_condition;
            const bool is_noted = loop[state] != NONE && is_scoped[state];  // that it begins is noted at the element itself
            return Target::state(state, !accepts && !asks && !is_noted);
        }

        void lay_out_transitions() {
            flat.transitions.reserve(moves.size());
            for (const Move& move : moves) flat.transitions.push_back(Transition{move.symbol, target_of(move.to)});
            flat.states.reserve(star.size());
        }

        uint64_t names_between(int32_t first, int32_t end) const {
            uint64_t names = 0;
            for (; first < end; ++first) names |= wide_name_bit(moves[first].symbol);
            return names;
        }

        void lay_out_state(int32_t number) {
            const int32_t first = first_of[number], end = first_of[number + 1];
            int32_t names = first;
            while (names < end && !moves[names].is_condition) ++names;
            FlatState made{names_between(first, names), target_of(star[number]), NONE, Target(), accepted_by[number], NONE, NONE};
            if (names - first == 1) {
                made.name = moves[first].symbol;
                made.target = flat.transitions[first].target;
            } else if (names > first) {
                made.name = first - names;
                made.target = Target::state(first);
            }
            if (names < end) {
                made.conditions = int32_t(flat.conditions.size());
                flat.conditions.push_back(FlatConditions{subjects[number], names, end});
                flat.last_condition = std::max(flat.last_condition, moves[end - 1].symbol);
            }
            if (loop[number] != NONE) {
                made.loop = int32_t(flat.loops.size());
                lay_out_loop(loop[number], is_scoped[number]);
            }
            flat.states.push_back(made);
        }

        void lay_out_asking() {
            struct Named {
                uint64_t key;
                Asking asking;
            };
            std::vector<Named> all;
            for (size_t i = 0; i < star.size(); ++i) {
                if (flat.states[i].conditions == NONE) continue;
                const FlatConditions& at = flat.conditions[flat.states[i].conditions];
                for (int32_t j = at.first; j < at.end; ++j)
                    all.push_back(Named{pack(name_of[i], flat.transitions[j].symbol),
                                        Asking{flat.states[i].conditions, flat.transitions[j].target}});
            }
            std::stable_sort(all.begin(), all.end(), [](const Named& a, const Named& b) { return a.key < b.key; });
            flat.asking.reserve(all.size());
            for (size_t i = 0; i < all.size(); ++i) {
                if (i == 0 || all[i].key != all[i - 1].key) {
                    flat.asking_of.put(all[i].key, int32_t(flat.askings.size()));
                    flat.askings.push_back(int32_t(i));
                }
                flat.asking.push_back(all[i].asking);
            }
            flat.askings.push_back(int32_t(all.size()));
        }

        void lay_out_loop(int32_t looping, bool is_noted) {
            const int32_t first = first_of[looping], end = first_of[looping + 1];
            const bool is_wide = end - first > MANY_NAMES;
            if (!is_wide)
                for (int32_t i = first; i < end; ++i) flat.transitions[i].symbol = waiting_number(moves[i].symbol);
            FlatLoop made{names_between(first, end), target_of(star[looping]), first - end, Target::state(first),
                          is_wide, is_noted, false};
            if (end - first == 1) {
                made.name = flat.transitions[first].symbol;
                made.target = flat.transitions[first].target;
            }
            flat.loops.push_back(made);
        }

        int32_t waiting_number(int32_t symbol) {
            if (size_t(symbol) >= flat.waiting_of.size()) flat.waiting_of.resize(size_t(symbol) + 1, NONE);
            if (flat.waiting_of[symbol] == NONE) flat.waiting_of[symbol] = flat.waiting_names++;
            return flat.waiting_of[symbol];
        }

        void lay_out_climbs(const Edge& edge) {
            if (edge.uses == 0 || (edge.state == NONE && edge.sub == NONE)) return;  // it is free, or counts children in order
            int32_t state = edge.state != NONE ? edge.state : index.nodes[edge.sub].state, parents = 0;
            while (automaton.states[state].symbol != SCOPE) {
                const int32_t before = automaton.states[state].parent;
                if (automaton.states[before].flags & NfaState::LOOPS) {
                    state = automaton.states[before].parent;
                    flat.climbs.push_back(Climb{parents, flat.states[state_of[state]].loop});
                    parents = 0;
                } else {
                    parents += !stays(state);
                    state = before;
                }
            }
            if (parents) flat.climbs.push_back(Climb{parents, NONE});
        }
    };
};

}  // namespace xsift::sift
