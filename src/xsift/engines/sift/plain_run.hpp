// PlainRun: the automaton as it is, followed without making states of sets. For documents that lead to much that is new.
//
// A state that is made for one element and never met again costs many times what it saves. So here the set of active
// states of each open element is a list, as in YFilter. Scopes are not told apart (flat_automaton.hpp), so that an
// element is followed once, however many branch points there are above it. Which twigs hold is found out when the
// document ends (twig_join.hpp).
//
// An element whose path of names is known (known_paths.hpp) has its list there. Else it is found from that of its
// parent, on a stack. Looping states are not asked at every element below. The names that they wait for lead to them:
// each has a list of the states to be entered. The loops of open elements are put on these lists when an element is
// met whose path is not known, and not before.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_automaton.hpp"
#include "known_paths.hpp"
#include "results.hpp"
#include "twig_join.hpp"
#include "way.hpp"

namespace xsift::sift {

class PlainRun {
    struct Level {
        uint64_t subjects;             // of its conditions
        uint64_t path;                 // a hash of the names of the open elements, if its path is not known
        uint32_t active;               // where on the stacks the active states of an open element begin,
        uint32_t conditional;          // those that conditions lead on from,
        uint32_t loops;                // the loops that became active with it,
        uint32_t wide, stars, lists;   // and where the lists that these lead to begin
        int32_t known;                 // its path; NONE
        int32_t lead;                  // that by which the paths below are known; NONE
        bool is_on_stack;              // else its active states are those of its path,
        bool has_loops;                // and so are its loops, which are not on the stack yet
        bool is_open;                  // its loops are on those lists
        bool is_barren;                // names lead nowhere from it, nor from what is below
    };

    const TwigIndex* index;
    Results& results;
    FlatAutomaton flat;
    KnownPaths known;
    TwigJoin join;
    std::vector<Active> active;        // of all open elements that have theirs here, outermost first; likewise:
    std::vector<int32_t> conditional;  // in flat.conditions
    std::vector<int32_t> loops;
    std::vector<Level> levels;         // the document's first
    size_t ready = 0;                  // so many outermost ones are open
    size_t idle = 0;                   // elements that are open below them, which nothing leads to
    std::vector<uint8_t> is_looping;   // by loop: it is in `loops`
    // Where loops that are active lead to:
    std::vector<std::vector<Target>> waiting;  // by name that they wait for
    std::vector<int32_t> lists;        // the lists of `waiting` that were added to, in turn
    std::vector<int32_t> wide;         // loops that wait for many names
    std::vector<Target> stars;         // whatever the name
    PlainNotes taken;
    uint64_t document = 0;             // its number
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
    static constexpr int64_t RARELY = 4;  // fewer than one element in so many has a new path
    bool keeps_at_once = false;        // then such paths are kept when they are met first

   public:
    PlainWork work;                    // in this document

    PlainRun(const TwigIndex* index, Results& results, int64_t cache_bytes)
        : index(index), results(results), known(cache_bytes / KNOWN_SHARE), join(flat, known) {}

    int64_t evaluated() const { return join.evaluated; }
    int64_t entered() const { return entered_before + work.entered; }  // states since ever

    // The index is another one.
    void assign() {
        flat.assign(*index);
        join.assign(index);
        known.clear();
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
        levels.push_back(document_level());
    }

    void begin() {
        while (levels.size() > 1) close();  // it broke off, or was decided before its end
        close_loops(levels[0]);
        if (known.is_full()) known.clear();
        active.clear();
        conditional.clear();
        levels[0] = document_level();
        ready = idle = 0;
        taken.clear();
        innermost = 0;
        ++document;
        entered_before += work.entered;
        keeps_at_once = work.new_paths * RARELY < work.elements;
        work = PlainWork();
        enter(0);
    }

    // Whether nothing can match in or below the innermost element.
    bool leads_nowhere() const { return levels.back().is_barren && !levels.back().subjects; }

    uint64_t subjects() const { return idle ? 0 : levels.back().subjects; }
    size_t depth() const { return levels.size() - 1; }
    size_t notes() const { return size_t(work.elements) + taken.number(); }

    void start_tag(int32_t symbol) {
        ++work.elements;
        const Level& above = levels.back();
        if (above.is_barren || idle) {
            ++idle;
            return;
        }
        const int32_t path = above.lead != NONE ? known.find(above.lead, symbol) : NONE;
        if (path != NONE) enter_known(path);
        else enter_unknown(symbol);
    }

    void end_tag() {
        if (idle) {
            --idle;
            return;
        }
        if (levels.size() < 2) return;
        taken.elements[innermost].last = int32_t(taken.elements.size()) - 1;
        innermost = taken.elements[innermost].parent;
        close();
    }

    // Conditions that hold for the innermost element, as codes. What is behind one may ask for others.
    void take_conditions(const int32_t* codes, size_t number) {
        if (idle || !levels.back().subjects) return;
        if (!levels.back().is_on_stack && conditional.size() == levels.back().conditional)
            push(conditional, known.numbers, known.paths[levels.back().known].conditional());
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
        idle = 0;
        while (levels.size() > 1) end_tag();
        if (taken.accepted.empty() && taken.visits.empty()) return;
        join.decide(taken, results);
        work.joined = join.work;
    }

    size_t bytes() const {
        size_t total = flat.bytes() + known.bytes() + join.bytes() + is_looping.capacity() + paths.capacity() * 4 +
                       taken.bytes() + active.capacity() * sizeof(Active) + held_at.capacity() * 8 +
                       waiting.capacity() * sizeof(std::vector<Target>);
        for (const std::vector<Target>& list : waiting) total += list.capacity() * 4;
        return total;
    }

   private:
    static constexpr int64_t KNOWN_SHARE = 4;  // of the bytes that may be cached, one part in so many is for known paths

    Level document_level() const {
        return Level{0, 0, 0, 0, 0, uint32_t(wide.size()), uint32_t(stars.size()), uint32_t(lists.size()),
                     KnownPaths::FIRST, KnownPaths::FIRST, true, true, false, false};
    }

    template <class Item>
    static void push(std::vector<Item>& to, const std::vector<Item>& from, Span span) {
        to.insert(to.end(), from.begin() + span.begin, from.begin() + span.end);
    }

    void add_element() {
        taken.elements.push_back(PlainElement{innermost, 0});
        innermost = int32_t(taken.elements.size()) - 1;
    }

    // An element starts whose path is known.
    void enter_known(int32_t number) {
        KnownPath& path = known.paths[number];
        if (path.is_dead && levels.size() > 1) {
            ++idle;
            return;
        }
        levels.push_back(Level{path.subjects, 0, uint32_t(active.size()), uint32_t(conditional.size()), 0, 0, 0, 0, number,
                               path.lead, false, false, false, path.is_barren});
        add_element();
        if (path.keys_at != path.end && path.seen_at != document) {
            results.mark(known.numbers.data() + path.keys_at, known.numbers.data() + path.end);
            work.known += path.keys().size();
        }
        if (path.noted_loops_at != path.keys_at) note_visit(number, path);
        path.seen_at = document;
    }

    // Notes an element for the join. Where only what is above it counts there, one of several children will do.
    void note_visit(int32_t number, KnownPath& path) {
        work.known += path.acceptances().size();
        if (path.seen_at != document) path.visits = NONE;
        if (path.visits == NONE) {
            taken.visited.push_back(number);
        } else if (path.noted_loops().is_empty()) {
            const int32_t before = taken.visits[path.visits].element;
            if (taken.elements[before].parent == taken.elements[innermost].parent) return;
        }
        taken.visits.push_back(Visit{innermost, path.visits});
        path.visits = int32_t(taken.visits.size()) - 1;
    }

    // An element starts whose path is not.
    void enter_unknown(int32_t symbol) {
        for (; ready < levels.size(); ++ready) open_loops(levels[ready]);
        find_reached(symbol);
        const int32_t above = levels.back().lead;
        const uint64_t path_above = above != NONE ? known.names[above].hash : levels.back().path;
        const uint64_t path = KnownPaths::hash_below(path_above, symbol);
        const bool was_met = look_for_path(path);
        const size_t accepted = taken.accepted.size(), begun = taken.loops_begun.size();
        levels.push_back(Level{0, path, uint32_t(active.size()), uint32_t(conditional.size()), uint32_t(loops.size()), 0, 0, 0,
                               NONE, NONE, true, true, false, false});
        add_element();
        enter_reached();
        Level& level = levels.back();
        const bool leads_on = active.size() > level.active || loops.size() > level.loops;
        level.is_barren = !leads_on && stars.empty() && wide.empty() && lists.empty();
        if (!leads_on) level.path = KnownPaths::rest_hash(path_above);
        work.new_paths += !was_met && !reached.empty();
        if ((was_met || keeps_at_once) && above != NONE && !known.is_full()) {
            level.known = reached.empty() ? known.rest_of(above, level.is_barren) : keep_path(path, accepted, begun);
            known.put(above, symbol, level.known);
            if (!leads_on) known.paths[level.known].lead = known.rest_of(above, level.is_barren);
            level.lead = known.paths[level.known].lead;
        }
    }

    [[gnu::flatten]] void enter_reached() {
        work.entered += int64_t(reached.size());
        active.reserve(active.size() + reached.size());
        for (size_t i = 0; i < reached.size(); ++i) {
            if (i + AHEAD < reached.size() && reached[i + AHEAD].is_state())
                __builtin_prefetch(&flat.states[reached[i + AHEAD].number()]);
            arrive(reached[i]);
        }
    }

    // Keeps what the path of the innermost element led to. What was noted for it begins at these places.
    int32_t keep_path(uint64_t hash, size_t accepted, size_t begun) {
        const Level& level = levels.back();
        std::vector<int32_t>& numbers = known.numbers;
        KnownPath path{};
        path.subjects = level.subjects;
        path.seen_at = document;
        path.visits = path.lead = NONE;
        path.active = Span{int32_t(known.active.size()), int32_t(known.active.size() + active.size() - level.active)};
        known.active.insert(known.active.end(), active.begin() + level.active, active.end());
        path.conditional_at = int32_t(numbers.size());
        numbers.insert(numbers.end(), conditional.begin() + level.conditional, conditional.end());
        path.loops_at = int32_t(numbers.size());
        numbers.insert(numbers.end(), loops.begin() + level.loops, loops.end());
        path.noted_loops_at = int32_t(numbers.size());
        for (size_t i = begun; i < taken.loops_begun.size(); ++i) numbers.push_back(taken.loops_begun[i].number);
        path.acceptances_at = int32_t(numbers.size());
        for (size_t i = accepted; i < taken.accepted.size(); ++i) numbers.push_back(taken.accepted[i].number);
        path.keys_at = int32_t(numbers.size());
        for (const Target target : reached) {
            const Target accepts = target.is_state() ? flat.states[target.number()].accepts : target;
            if (accepts.exists() && accepts.is_key()) numbers.push_back(accepts.accepted());
        }
        path.end = int32_t(numbers.size());
        path.is_barren = level.is_barren;
        path.is_dead = level.is_barren && path.conditional_at == path.end;
        return known.add(path, hash);
    }

    // The innermost element is not like others of its path any more: a condition leads to more states.
    void leave_path() {
        Level& level = levels.back();
        level.is_barren = false;
        if (level.known == NONE) return;
        if (!level.is_on_stack) push(active, known.active, known.paths[level.known].active);
        for (; ready + 1 < levels.size(); ++ready) open_loops(levels[ready]);
        take_loops(level);
        level.is_on_stack = true;
        level.path = known.names[level.lead].hash;
        level.known = level.lead = NONE;
    }

    // Finds the states that a name leads to. Those that have to be looked up are asked for first.
    void find_reached(int32_t symbol) {
        const uint64_t wanted = symbol ? wide_name_bit(symbol) : 0;
        reached.clear();
        asked.clear();
        const Level& level = levels.back();
        const Span kept = level.is_on_stack ? Span{0, 0} : known.paths[level.known].active;
        const Active* at = level.is_on_stack ? active.data() + level.active : known.active.data() + kept.begin;
        const Active* const end = level.is_on_stack ? active.data() + active.size() : known.active.data() + kept.end;
        for (; at != end; ++at) {
            if (at->star.exists()) reached.push_back(at->star);
            if (!(at->names & wanted)) continue;
            if (at->name == symbol) reached.push_back(at->target);
            else if (at->name < NONE) ask(at->target.number(), at->target.number() - at->name);
        }
        for (const int32_t loop : wide)
            if (flat.loops[loop].names & wanted) ask(flat.loops[loop].first, flat.loops[loop].end);
        reached.insert(reached.end(), stars.begin(), stars.end());
        if (size_t(symbol) < flat.waiting_of.size() && flat.waiting_of[symbol] != NONE) {
            const std::vector<Target>& list = waiting[flat.waiting_of[symbol]];
            reached.insert(reached.end(), list.begin(), list.end());
        }
        for (const Asked& it : asked) {
            const Target target = flat.among(it.first, it.end, symbol);
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
        else taken.accepted.push_back(Note{target.accepted(), innermost});
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
        if (flat.loops[loop].is_noted) taken.loops_begun.push_back(Note{loop, innermost});
        if (is_looping[loop]) return;
        is_looping[loop] = 1;
        loops.push_back(loop);
    }

    // Puts the loops of an element's path on the stack.
    void take_loops(Level& level) {
        if (level.has_loops) return;
        level.has_loops = true;
        level.loops = loops.size();
        push(loops, known.numbers, known.paths[level.known].loops());
        for (size_t i = level.loops; i < loops.size(); ++i) is_looping[loops[i]] = 1;
    }

    // An element has a child that must be looked for.
    void open_loops(Level& level) {
        take_loops(level);
        level.is_open = true;
        level.wide = wide.size();
        level.stars = stars.size();
        level.lists = lists.size();
        const size_t end = loops.size();
        for (size_t i = level.loops; i < end; ++i) open_loop(loops[i]);
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
        const Level& level = levels.back();
        if (level.has_loops) close_loops(level);
        active.resize(level.active);
        conditional.resize(level.conditional);
        levels.pop_back();
        ready = std::min(ready, levels.size());
    }

    void close_loops(const Level& level) {
        if (level.is_open) {
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

    void pass(Target target) {
        if (target.is_state()) leave_path();
        arrive(target);
    }

    void look_up(const FlatConditions& at) {
        for (const int32_t condition : held) {
            const Target target = flat.among(at.first, at.end, condition);
            if (target.exists()) pass(target);
        }
    }

    void look_through(const FlatConditions& at) {
        for (int32_t i = at.first; i < at.end; ++i) {
            const Transition& condition = flat.transitions[i];
            if (size_t(condition.symbol) < held_at.size() && held_at[condition.symbol] == held_round) pass(condition.target);
        }
    }

    // Whether a path was met before.
    bool look_for_path(uint64_t path) {
        uint32_t& place = paths[path >> 1 & (PATHS - 1)];
        if (place == uint32_t(path >> 32)) return true;
        place = uint32_t(path >> 32);
        return false;
    }
};

}  // namespace xsift::sift
