// PlainRun: the automaton as it is, followed without remembering anything. For documents that lead to much that is new.
//
// A state that is made for one element and never met again costs many times what it saves. So here the set of active
// states of each open element is a list on a stack, as in YFilter. Scopes are not told apart (flat_automaton.hpp), so
// that an element is followed once, however many branch points there are above it. Which twigs hold is found out when
// the document ends (twig_join.hpp).
//
// Looping states are not asked at every element below. The names that they wait for lead to them: each has a list of
// the states to be entered. An element's loops are put on these lists when its first child comes, for most elements
// have none.
#pragma once
#include <cstdint>
#include <vector>

#include "flat_automaton.hpp"
#include "results.hpp"
#include "twig_join.hpp"
#include "way.hpp"

namespace xsift::sift {

class PlainRun {
    // A state that names lead on from.
    struct Active {
        uint64_t names;                // as in FlatState
        Target star;
        int32_t name;
        Target target;
    };

    struct Level {
        size_t active;                 // where the active states of an open element begin,
        size_t conditional;            // those that conditions lead on from,
        size_t loops;                  // the loops that became active with it,
        size_t wide, stars, lists;     // and, if it has children, where they stand
        uint64_t subjects;             // of its conditions
        uint64_t path;                 // a hash of the names of the open elements
        bool has_children;
    };

    const TwigIndex* index;
    Results& results;
    FlatAutomaton flat;
    TwigJoin join;
    std::vector<Active> active;        // of all open elements, outermost first; likewise:
    std::vector<int32_t> conditional;  // in flat.conditions
    std::vector<int32_t> loops;
    std::vector<Level> levels;         // the document's first
    std::vector<uint8_t> is_looping;   // by loop: it is in `loops`
    // Where loops that are active lead to:
    std::vector<std::vector<Target>> waiting;  // by name that they wait for
    std::vector<int32_t> lists;        // the lists of `waiting` that were added to, in turn
    std::vector<int32_t> wide;         // loops that wait for many names
    std::vector<Target> stars;         // whatever the name
    std::vector<PlainElement> elements;
    std::vector<Note> accepted;        // acceptances, where they came,
    std::vector<Note> loops_begun;     // and loops, where they began
    int32_t innermost = 0;             // the innermost open element
    struct Asked {
        int32_t first, end;
    };
    std::vector<Asked> asked;          // transitions to be looked through, in flat.transitions
    std::vector<Target> reached;       // by the name at hand
    std::vector<int32_t> held;         // the conditions at hand, each once
    std::vector<uint64_t> held_at;     // by condition: when it held last
    uint64_t held_round = 0;
    static constexpr size_t AHEAD = 8; // states that are asked for in advance

    // Paths that were met, in this document and before: two that share a place forget each other.
    static constexpr size_t PATHS = size_t(1) << 15;
    std::vector<uint32_t> paths;
    int64_t entered_before = 0;        // states, in documents before this one

   public:
    PlainWork work;                    // in this document

    PlainRun(const TwigIndex* index, Results& results) : index(index), results(results), join(flat) {}

    int64_t evaluated() const { return join.evaluated; }
    int64_t entered() const { return entered_before + work.entered; }  // states since ever

    // The index is another one.
    void assign() {
        flat.assign(*index);
        join.assign(index);
        is_looping.assign(flat.loops.size(), 0);
        waiting.assign(flat.waiting_names, {});
        lists.clear();
        wide.clear();
        stars.clear();
        loops.clear();
        levels.clear();
        if (paths.empty()) paths.assign(PATHS, 0);
        // What loops from the root on does so in every document.
        const int32_t first = flat.states[0].loop;
        if (first != NONE) {
            is_looping[first] = 1;
            open_loop(first);
        }
        levels.push_back(Level{0, 0, 0, wide.size(), stars.size(), lists.size(), 0, 0, false});
    }

    void begin() {
        while (levels.size() > 1) close();  // it broke off, or was decided before its end
        close_loops(levels[0]);
        levels[0].has_children = false;
        active.clear();
        conditional.clear();
        accepted.clear();
        loops_begun.clear();
        elements.assign(1, PlainElement{0, 0});
        innermost = 0;
        entered_before += work.entered;
        work = PlainWork();
        enter(0);
    }

    // Whether nothing can match in or below the innermost element.
    bool leads_nowhere() const {
        return active.size() == levels.back().active && conditional.size() == levels.back().conditional && loops.empty() &&
               stars.empty() && wide.empty() && lists.empty();
    }

    uint64_t subjects() const { return levels.back().subjects; }
    size_t depth() const { return levels.size() - 1; }
    size_t notes() const { return elements.size() + accepted.size() + loops_begun.size(); }

    void start_tag(int32_t symbol) {
        if (!levels.back().has_children) open_loops();
        find_reached(symbol);
        const uint64_t path = mix64(levels.back().path * 31 + uint32_t(symbol) + 1);
        look_for_path(path);
        levels.push_back(Level{active.size(), conditional.size(), loops.size(), 0, 0, 0, 0, path, false});
        elements.push_back(PlainElement{innermost, 0});
        innermost = int32_t(elements.size()) - 1;
        work.entered += int64_t(reached.size());
        active.reserve(active.size() + reached.size());
        for (size_t i = 0; i < reached.size(); ++i) {
            if (i + AHEAD < reached.size() && reached[i + AHEAD].is_state())
                __builtin_prefetch(&flat.states[reached[i + AHEAD].number()]);
            arrive(reached[i]);
        }
    }

    void end_tag() {
        if (levels.size() < 2) return;
        elements[innermost].last = int32_t(elements.size()) - 1;
        innermost = elements[innermost].parent;
        close();
    }

    // Conditions that hold for the innermost element, as codes. What is behind one may ask for others.
    void take_conditions(const int32_t* codes, size_t number) {
        if (conditional.size() == levels.back().conditional) return;
        ++held_round;
        held.clear();
        for (size_t i = 0; i < number; ++i) hold(-codes[i] - 1);
        for (size_t i = levels.back().conditional; i < conditional.size(); ++i) {
            const FlatConditions at = flat.conditions[conditional[i]];
            if (size_t(at.end - at.first) > held.size()) look_up(at);
            else look_through(at);
        }
    }

    // Marks the twigs that hold.
    void end_document() {
        while (levels.size() > 1) end_tag();
        if (!accepted.empty()) join.decide(elements, accepted, loops_begun, results);
    }

    size_t bytes() const {
        size_t total = flat.bytes() + join.bytes() + is_looping.capacity() + paths.capacity() * 4 +
                       elements.capacity() * sizeof(PlainElement) + active.capacity() * sizeof(Active) +
                       (accepted.capacity() + loops_begun.capacity()) * sizeof(Note) + held_at.capacity() * 8 +
                       waiting.capacity() * sizeof(std::vector<Target>);
        for (const std::vector<Target>& list : waiting) total += list.capacity() * 4;
        return total;
    }

   private:
    // Finds the states that a name leads to. Those that have to be looked up are asked for first.
    void find_reached(int32_t symbol) {
        const uint64_t wanted = symbol ? wide_name_bit(symbol) : 0;
        reached.clear();
        asked.clear();
        for (size_t i = levels.back().active; i < active.size(); ++i) {
            const Active& at = active[i];
            if (at.star.exists()) reached.push_back(at.star);
            if (!(at.names & wanted)) continue;
            if (at.name == symbol) reached.push_back(at.target);
            else if (at.name < NONE) ask(at.target.number(), at.target.number() - at.name);
        }
        for (const int32_t loop : wide)
            if (flat.loops[loop].names & wanted) ask(flat.loops[loop].first, flat.loops[loop].end);
        reached.insert(reached.end(), stars.begin(), stars.end());
        if (size_t(symbol) < flat.waiting_of.size() && flat.waiting_of[symbol] != NONE) {
            const std::vector<Target>& list = waiting[flat.waiting_of[symbol]];
            reached.insert(reached.end(), list.begin(), list.end());
        }
        for (const Asked& at : asked) {
            const Target target = flat.among(at.first, at.end, symbol);
            if (target.exists()) reached.push_back(target);
        }
    }

    void ask(int32_t first, int32_t end) {
        __builtin_prefetch(flat.transitions.data() + first);
        asked.push_back(Asked{first, end});
    }

    void arrive(Target target) {
        if (target.is_state()) enter(target.number());
        else accept(target);
    }

    void accept(Target target) {
        if (target.is_key()) results.mark(target.accepted());
        else accepted.push_back(Note{target.accepted(), innermost});
    }

    // No state is entered twice at an element, since only one other leads to it.
    void enter(int32_t number) {
        const FlatState& at = flat.states[number];
        if (at.accepts.exists()) accept(at.accepts);
        if (at.names || at.star.exists()) active.push_back(Active{at.names, at.star, at.name, at.target});
        if (at.loop != NONE) begin_loop(at.loop);
        if (at.conditions != NONE) {
            conditional.push_back(at.conditions);
            levels.back().subjects |= flat.conditions[at.conditions].subjects;
        }
    }

    void begin_loop(int32_t loop) {
        if (flat.loops[loop].is_noted) loops_begun.push_back(Note{loop, innermost});
        if (is_looping[loop]) return;
        is_looping[loop] = 1;
        loops.push_back(loop);
    }

    // The innermost element gets its first child.
    void open_loops() {
        Level& level = levels.back();
        level.has_children = true;
        level.wide = wide.size();
        level.stars = stars.size();
        level.lists = lists.size();
        for (size_t i = level.loops; i < loops.size(); ++i) open_loop(loops[i]);
    }

    void open_loop(int32_t number) {
        const FlatLoop& loop = flat.loops[number];
        if (loop.star.exists()) stars.push_back(loop.star);
        if (loop.is_wide) return wide.push_back(number);
        for (int32_t i = loop.first; i < loop.end; ++i) {
            waiting[flat.transitions[i].symbol].push_back(flat.transitions[i].target);
            lists.push_back(flat.transitions[i].symbol);
        }
    }

    // The innermost element ends.
    void close() {
        const Level level = levels.back();
        close_loops(level);
        active.resize(level.active);
        conditional.resize(level.conditional);
        levels.pop_back();
    }

    void close_loops(const Level& level) {
        if (level.has_children) {
            wide.resize(level.wide);
            stars.resize(level.stars);
            for (; lists.size() > level.lists; lists.pop_back()) waiting[lists.back()].pop_back();
        }
        for (; loops.size() > level.loops; loops.pop_back()) is_looping[loops.back()] = 0;
    }

    // Conditions.

    void hold(int32_t condition) {
        if (size_t(condition) >= held_at.size()) held_at.resize(size_t(condition) + 1, 0);
        if (held_at[condition] == held_round) return;
        held_at[condition] = held_round;
        held.push_back(condition);
    }

    void look_up(const FlatConditions& at) {
        for (const int32_t condition : held) {
            const Target target = flat.among(at.first, at.end, condition);
            if (target.exists()) arrive(target);
        }
    }

    void look_through(const FlatConditions& at) {
        for (int32_t i = at.first; i < at.end; ++i) {
            const Transition& condition = flat.transitions[i];
            if (size_t(condition.symbol) < held_at.size() && held_at[condition.symbol] == held_round) arrive(condition.target);
        }
    }

    void look_for_path(uint64_t path) {
        ++work.elements;
        uint32_t& place = paths[path & (PATHS - 1)];
        if (place == uint32_t(path >> 32)) return;
        place = uint32_t(path >> 32);
        ++work.new_paths;
    }
};

}  // namespace xsift::sift
