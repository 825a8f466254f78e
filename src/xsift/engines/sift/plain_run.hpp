// PlainRun: the automaton as it is, followed without making states of sets. For documents that lead to much that is new.
//
// A state that is made for one element and never met again costs many times what it saves. So here the set of active
// states of each open element is a list, as in YFilter. Scopes are not told apart (flat_automaton.hpp), so that an
// element is followed once, however many branch points there are above it. Which twigs hold is found out when the
// document ends (twig_join.hpp).
//
// An element whose path of names is known (known_paths.hpp) has its list there. Else it is found from that of its
// parent, on a stack. The loops of open elements wait for names (waiting_loops.hpp) from when an element is met whose path
// is not known, and not before.
//
// What lies behind a condition is followed apart (plain_conditions.hpp), or looked up where documents come again and again
// (plain_situations.hpp), in lists of its own, which are mostly short: so an element where
// conditions hold, and all that is below it, has its known path nevertheless. No state is in both, for it is behind a condition,
// or it is not.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "plain_situations.hpp"

namespace xsift::sift {

class PlainRun : public PlainSituations {
    const TwigIndex* index;
    TriggerTable& table;
    TwigJoin join;
    size_t idle = 0;                   // elements that are open below the innermost one on the stack, which nothing leads to

    // Paths that were met, in this document and before: two that share a place forget each other.
    static constexpr size_t PATHS = size_t(1) << 15;
    std::vector<uint32_t> paths;
    int64_t entered_before = 0;        // states, in documents before this one
    static constexpr int64_t RARELY = 4;  // fewer than one element in so many has a new path
    bool keeps_at_once = false;        // then such paths are kept when they are met first

   public:
    PlainRun(const TwigIndex* index, TriggerTable& table, Results& results, int64_t cache_bytes)
        : PlainSituations(results, cache_bytes / KNOWN_SHARE, cache_bytes / SITUATIONS_SHARE), index(index), table(table),
          join(flat, table, known, cache_bytes / POOL_SHARE) {}

    int64_t evaluated() const { return join.evaluated; }
    int64_t entered() const { return entered_before + work.entered; }  // states since ever

    // The index is another one.
    void assign() {
        PlainSituations::assign(*index);
        table.lay_out();
        flat.take_triggers(table);
        join.assign(index);
        if (paths.empty()) paths.assign(PATHS, 0);
    }

    // Nodes have other triggers now.
    void take_triggers() { flat.take_triggers(table); }

    // A document begins; those before came again and again, or did not.
    void begin(bool comes_again) {
        entered_before += work.entered;
        keeps_at_once = work.new_paths * RARELY < work.elements;
        idle = 0;
        PlainSituations::begin(comes_again);
    }

    // Whether nothing can match in or below the innermost element.
    bool leads_nowhere() const { return levels.back().is_barren && !levels.back().subjects && !levels.back().leads_beyond; }

    uint64_t subjects() const { return idle ? 0 : levels.back().subjects; }
    size_t depth() const { return levels.size() - 1; }
    size_t notes() const { return size_t(work.elements) + taken.number(); }

    void start_tag(int32_t symbol) {
        ++work.elements;
        const Level& above = levels.back();
        const bool is_barren = above.is_barren, goes_beyond = above.leads_beyond;
        if (idle || (is_barren && !goes_beyond)) {
            ++idle;
            return;
        }
        const int32_t path = above.lead != NONE ? known.find(above.lead, symbol) : NONE;
        const bool is_unknown = path == NONE && !is_barren;
        const NameStep step = find_step(symbol);
        const bool is_followed = is_unknown || (goes_beyond && step.found == NONE);
        if (is_followed) {
            catch_up();
            enter_inner();
        }
        if (path != NONE) enter_known(path, goes_beyond);
        else if (is_barren) enter_barren();
        else enter_unknown(symbol);
        if (goes_beyond) take_step(step, is_followed);
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
        if (!idle && levels.back().subjects) take_held(codes, number);
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
        return PlainSituations::bytes() + join.bytes() + paths.capacity() * 4;
    }

   private:
    static constexpr int64_t KNOWN_SHARE = 4;  // of the bytes that may be cached, one part in so many is for known paths,
    static constexpr int64_t SITUATIONS_SHARE = 2;  // and for situations,
    static constexpr int64_t POOL_SHARE = 4;   // and for the join

    // An element starts whose path is known.
    void enter_known(int32_t number, bool goes_beyond) {
        KnownPath& path = known.paths[number];
        if (path.is_dead && levels.size() > 1 && !goes_beyond) {
            ++idle;
            return;
        }
        open_level(path.subjects, 0, number, path.lead, true, path.is_barren);
        if (path.keys_at != path.end && path.seen_at != document) {
            results.mark(known.numbers.data() + path.keys_at, known.numbers.data() + path.end);
            work.known += path.keys().size();
        }
        if (path.noted_loops_at != path.keys_at) note_visit(number, path);
        path.seen_at = document;
    }

    // An element starts that only what is behind conditions may lead to.
    void enter_barren() { open_level(0, 0, KnownPaths::FIRST, NONE, false, true); }

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
        open_level(0, path, NONE, NONE, false, false);
        enter_reached(before);
        Level& level = levels.back();
        const bool leads_on = before.active.size() > level.active || before.loops.size() > level.loops;
        level.is_barren = !leads_on && before.waiting.is_empty();
        if (!leads_on) level.path = KnownPaths::rest_hash(path_above);
        work.new_paths += !was_met && !reached.empty();
        if ((was_met || keeps_at_once) && above != NONE && !known.is_full()) {
            level.known = reached.empty() ? known.rest_of(above, level.is_barren) : keep_path(symbol, path, accepted, begun);
            known.put(above, symbol, level.known);
            if (!leads_on) known.paths[level.known].lead = known.rest_of(above, level.is_barren);
            level.lead = known.paths[level.known].lead;
            conditional.resize(level.conditional);
        }
    }

    // Keeps what the path of the innermost element led to. What was noted for it begins at these places.
    int32_t keep_path(int32_t name, uint64_t hash, size_t accepted, size_t begun) {
        const Level& level = levels.back();
        std::vector<int32_t>& numbers = known.numbers;
        KnownPath path{};
        path.subjects = level.subjects;
        path.seen_at = document;
        path.visits = path.lead = NONE;
        path.active = Span{int32_t(known.active.size()), int32_t(known.active.size() + before.active.size() - level.active)};
        known.active.insert(known.active.end(), before.active.begin() + level.active, before.active.end());
        path.conditional_at = int32_t(numbers.size());
        numbers.insert(numbers.end(), conditional.begin() + level.conditional, conditional.end());
        std::sort(numbers.begin() + path.conditional_at, numbers.end());
        path.loops_at = int32_t(numbers.size());
        numbers.insert(numbers.end(), before.loops.begin() + level.loops, before.loops.end());
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
        path.name = name;
        path.is_barren = level.is_barren;
        path.is_dead = level.is_barren && path.conditional_at == path.end;
        return known.add(path, hash);
    }

    // Finds the states that a name leads to from the innermost element.
    void find_reached(int32_t symbol) {
        reached.clear();
        asked.clear();
        const Level& level = levels.back();
        const Span kept = level.is_on_stack ? Span{0, 0} : known.paths[level.known].active;
        if (level.is_on_stack)
            find_in(before.active.data() + level.active, before.active.data() + before.active.size(), before.waiting, symbol);
        else find_in(known.active.data() + kept.begin, known.active.data() + kept.end, before.waiting, symbol);
    }

    // Puts the loops of an element's path on the stack.
    void take_loops(Level& level) {
        if (level.has_loops) return;
        level.has_loops = true;
        level.loops = before.loops.size();
        const Span span = known.paths[level.known].loops();
        before.loops.insert(before.loops.end(), known.numbers.begin() + span.begin, known.numbers.begin() + span.end);
        for (size_t i = level.loops; i < before.loops.size(); ++i) flat.loops[before.loops[i]].is_open = true;
    }

    // An element has a child that must be looked for.
    void open_loops(Level& level) {
        take_loops(level);
        level.is_open = true;
        level.waiting = before.waiting.mark();
        const size_t end = before.loops.size();
        for (size_t i = level.loops; i < end; ++i) before.waiting.add(before.loops[i]);
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
