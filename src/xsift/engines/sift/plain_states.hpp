// PlainStates: the states of open elements in a plain run (plain_run.hpp), on stacks.
//
// There are two of each stack: for states that names alone lead to, and for those behind conditions. Those of the former
// that stand in known paths (known_paths.hpp) are not on it; those of the latter are not as long as the situation of their
// element is known (plain_situations.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_automaton.hpp"
#include "known_paths.hpp"
#include "results.hpp"
#include "situations.hpp"
#include "twig_join.hpp"
#include "waiting_loops.hpp"
#include "way.hpp"

namespace xsift::sift {

class PlainStates {
   protected:
    struct Level {
        uint64_t subjects;             // of its conditions
        uint64_t path;                 // a hash of the names of the open elements, if its path is not known
        uint32_t active;               // where on the stacks the active states of an open element begin,
        uint32_t loops;                // the loops that became active with it,
        uint32_t conditional;          // and the states that conditions lead on from, if its path is not known
        uint32_t beyond_active, beyond_loops;  // likewise, for those behind conditions
        WaitingLoops::Mark waiting, beyond_waiting;  // before its loops
        int32_t known;                 // its path; NONE
        int32_t lead;                  // that by which the paths below are known; NONE
        bool is_on_stack;              // else its active states are those of its path,
        bool has_loops;                // and so are its loops, which are not on the stack yet
        bool is_open;                  // its loops are waiting
        bool is_barren;                // names lead nowhere from it, nor from what is below, but for what is behind conditions
        bool leads_beyond;             // states behind conditions wait for a child
        int32_t situation;             // all that is behind conditions; UNKNOWN
        uint64_t steps;                // a hash of the steps that led to it
    };

    // Of all open elements, outermost first: states that names lead on from, and loops.
    struct States {
        std::vector<Active> active;
        std::vector<int32_t> loops;
        WaitingLoops waiting;

        explicit States(const FlatAutomaton& flat) : waiting(flat) {}
    };

    Results& results;
    FlatAutomaton flat;
    KnownPaths known;
    States before{flat};               // all conditions: of open elements that have theirs here
    States beyond{flat};               // behind some
    std::vector<Target> inner;         // states behind conditions at the innermost real element, to be entered if it has a child
    std::vector<int32_t> conditional;  // states of open elements that conditions lead on from, in flat.conditions
    std::vector<Level> levels;         // the document's first
    size_t real = 0;                   // so many outermost ones have their place on the stacks of `beyond`
    size_t ready = 0;                  // so many have open loops
    struct Step {
        size_t level;
        int32_t by;                    // as in Situation
    };
    std::vector<Step> put_off;         // steps of open elements whose situation was known, so that no state was entered
    enum { FOLLOWING, KEEPING, CATCHING_UP } mode = FOLLOWING;
    std::vector<int32_t> kept_keys;    // that were accepted in the step that is to be kept
    PlainNotes taken;
    uint64_t document = 0;             // its number
    int32_t innermost = 0;             // the innermost open element
    std::vector<Target> reached;       // by the name or the condition at hand
    std::vector<Asked> asked;          // where it is to be looked up
    static constexpr size_t AHEAD = 8; // states that are asked for in advance

   public:
    PlainWork work;                    // in this document

   protected:
    PlainStates(Results& results, int64_t known_bytes) : results(results), known(known_bytes) {}

    // The index is another one.
    void assign(const TwigIndex& index) {
        flat.assign(index);
        known.clear();
        for (States* states : {&before, &beyond}) {
            states->waiting.assign();
            states->loops.clear();
        }
        levels.clear();
        // What loops from the root on does so in every document.
        const int32_t first = flat.states[0].loop;
        if (first != NONE) {
            flat.loops[first].is_open = true;
            before.waiting.add(first);
        }
        levels.push_back(document_level());
    }

    // A document begins.
    void begin() {
        while (levels.size() > 1) close();  // it broke off, or was decided before its end
        close_loops(levels[0]);
        before.active.clear();
        beyond.active.clear();
        inner.clear();
        conditional.clear();
        put_off.clear();
        mode = FOLLOWING;  // memory may have run out in the middle of a step
        levels[0] = document_level();
        real = 1;
        ready = 0;
        taken.clear();
        innermost = 0;
        ++document;
        work = PlainWork();
        enter(before, 0);
    }

    size_t bytes() const {
        return flat.bytes() + known.bytes() + taken.bytes() +
               (before.active.capacity() + beyond.active.capacity()) * sizeof(Active) + before.waiting.bytes() +
               beyond.waiting.bytes();
    }

    Level document_level() const {
        const WaitingLoops::Mark waiting = before.waiting.mark();
        return Level{0, 0, 0, 0, 0, 0, 0, waiting, beyond.waiting.mark(), KnownPaths::FIRST, KnownPaths::FIRST,
                     true, true, false, false, false, Situations::NOTHING, Situations::FIRST_HASH};
    }

    // A level for an element that starts.
    Level& open_level(uint64_t subjects, uint64_t path, int32_t number, int32_t lead, bool is_known, bool is_barren) {
        levels.push_back(Level{subjects, path, uint32_t(before.active.size()), uint32_t(before.loops.size()),
                               uint32_t(conditional.size()), uint32_t(beyond.active.size()), uint32_t(beyond.loops.size()),
                               before.waiting.mark(), beyond.waiting.mark(), number, lead, !is_known, !is_known, false, is_barren,
                               false, Situations::NOTHING, Situations::FIRST_HASH});
        if (real == levels.size() - 1 && put_off.empty() && inner.empty()) real = levels.size();
        taken.elements.push_back(PlainElement{innermost, 0});
        innermost = int32_t(taken.elements.size()) - 1;
        return levels.back();
    }

    // Whether states behind conditions wait for a child of the innermost element.
    bool is_beyond(const Level& level) const {
        return beyond.active.size() > level.beyond_active || !beyond.waiting.is_empty() || !inner.empty();
    }

    // States behind conditions of the parent of an element, and above, are followed to it.
    void enter_beyond(int32_t symbol, size_t level) {
        reached.clear();
        asked.clear();
        find_in(beyond.active.data() + levels[level - 1].beyond_active, beyond.active.data() + levels[level].beyond_active,
                beyond.waiting, symbol);
        enter_reached(beyond);
    }

    void enter_reached(States& states) {
        work.entered += int64_t(reached.size());
        arrive_at_reached(states);
    }

    void arrive_at_reached(States& states) {
        if (&states == &beyond) put_off_inner();
        arrive_at(states, reached);
    }

    // States that matter to elements below alone are not entered before there are any: of leaves, they never are.
    void put_off_inner() {
        inner.reserve(inner.size() + reached.size());
        size_t left = 0;
        for (const Target target : reached) {
            if (target.is_inner()) inner.push_back(target);
            else reached[left++] = target;
        }
        reached.resize(left);
    }

    // The innermost element has a child.
    void enter_inner() {
        if (inner.empty()) return;
        arrive_at(beyond, inner);
        inner.clear();
    }

    [[gnu::flatten]] void arrive_at(States& states, const std::vector<Target>& targets) {
        states.active.reserve(states.active.size() + targets.size());
        for (size_t i = 0; i < targets.size(); ++i) {
            if (i + 2 * AHEAD < targets.size() && targets[i + 2 * AHEAD].is_state())
                __builtin_prefetch(&flat.states[targets[i + 2 * AHEAD].number()]);
            if (i + AHEAD < targets.size() && targets[i + AHEAD].is_state()) {
                const int32_t loop = flat.states[targets[i + AHEAD].number()].loop;
                if (loop != NONE) __builtin_prefetch(&flat.loops[loop], 1);
            }
            arrive(states, targets[i]);
        }
    }

    // Finds those among some states, and among loops. Those that have to be looked up are asked for first.
    void find_in(const Active* at, const Active* end, const WaitingLoops& waiting, int32_t symbol) {
        const uint64_t wanted = symbol ? wide_name_bit(symbol) : 0;
        for (; at != end; ++at) {
            if (at->star.exists()) reached.push_back(at->star);
            if (!(at->names & wanted)) continue;
            if (at->name == symbol) reached.push_back(at->target);
            else if (at->name < NONE) ask(at->target.number(), at->target.number() - at->name);
        }
        waiting.find(symbol, wanted, reached, asked);
        for (const Asked& it : asked) {
            const Target target =
                FlatAutomaton::among(flat.transitions.data() + it.first, flat.transitions.data() + it.end, symbol);
            if (target.exists()) reached.push_back(target);
        }
    }

    void ask(int32_t first, int32_t end) {
        __builtin_prefetch(flat.transitions.data() + first);
        asked.push_back(Asked{first, end});
    }

    void arrive(States& states, Target target) {
        if (target.is_state()) enter(states, target.number());
        else accept(target);
    }

    void accept(Target target) {
        if (mode == CATCHING_UP) return;  // it was, when the step was put off
        if (!target.is_key()) return taken.accepted.push_back(Note{target.accepted(), innermost});
        results.mark(target.accepted());
        if (mode == KEEPING) kept_keys.push_back(target.accepted());
    }

    // No state is entered twice at an element, since only one other leads to it.
    void enter(States& states, int32_t number) {
        const FlatState& at = flat.states[number];
        if (at.accepts.exists()) accept(at.accepts);
        if (at.names || at.star.exists()) states.active.push_back(Active{at.names, at.star, at.name, at.target});
        if (at.loop != NONE) begin_loop(states, at.loop);
        if (at.conditions != NONE) {
            conditional.push_back(at.conditions);
            if (mode != CATCHING_UP) levels.back().subjects |= flat.conditions[at.conditions].subjects;
        }
    }

    void begin_loop(States& states, int32_t loop) {
        FlatLoop& at = flat.loops[loop];
        if (at.is_noted && mode != CATCHING_UP) taken.loops_begun.push_back(Note{loop, innermost});
        if (at.is_open) return;
        at.is_open = true;
        states.loops.push_back(loop);
        if (&states == &beyond) beyond.waiting.add(loop);
    }

    // The innermost element ends.
    void close() {
        const Level& level = levels.back();
        while (!put_off.empty() && put_off.back().level == levels.size() - 1) put_off.pop_back();
        close_loops(level);
        before.active.resize(level.active);
        if (real == levels.size()) {
            beyond.active.resize(level.beyond_active);
            inner.clear();
            conditional.resize(level.conditional);
            --real;
        }
        levels.pop_back();
        ready = std::min(ready, levels.size());
    }

    void close_loops(const Level& level) {
        if (level.is_open) before.waiting.take_away(level.waiting);
        if (level.has_loops) leave_loops(before, level.loops);
        if (real < levels.size() || beyond.loops.size() == level.beyond_loops) return;
        beyond.waiting.take_away(level.beyond_waiting);
        leave_loops(beyond, level.beyond_loops);
    }

    void leave_loops(States& states, size_t since) {
        for (; states.loops.size() > since; states.loops.pop_back()) flat.loops[states.loops.back()].is_open = false;
    }
};

}  // namespace xsift::sift
