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
// What lies behind a condition is followed apart, in lists of its own, which are mostly short: so an element where
// conditions hold, and all that is below it, has its known path nevertheless. No state is in both, for it is behind a condition,
// or it is not.
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

class PlainRun {
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

    const TwigIndex* index;
    Results& results;
    TriggerTable& table;
    FlatAutomaton flat;
    KnownPaths known;
    TwigJoin join;
    States before{flat};               // all conditions: of open elements that have theirs here
    States beyond{flat};               // behind some
    std::vector<Target> inner;         // states behind conditions at the innermost real element, to be entered if it has a child
    Situations situations;
    bool asks = false;                 // for situations, in this document
    struct Step {
        size_t level;
        int32_t by;                    // as in Situation
    };
    std::vector<Step> put_off;         // steps of open elements that were known, so that no state was entered
    size_t real = 0;                   // so many outermost levels have their place on the stacks of `beyond`
    enum { FOLLOWING, KEEPING, CATCHING_UP } mode = FOLLOWING;
    std::vector<int32_t> kept_keys;    // that were accepted in the step that is to be kept
    std::vector<int32_t> conditional;  // states of open elements that conditions lead on from, in flat.conditions
    std::vector<Level> levels;         // the document's first
    size_t ready = 0;                  // so many outermost ones are open
    size_t idle = 0;                   // elements that are open below them, which nothing leads to
    PlainNotes taken;
    uint64_t document = 0;             // its number
    int32_t innermost = 0;             // the innermost open element
    std::vector<Target> reached;       // by the name or the condition at hand
    std::vector<Asked> asked;          // where it is to be looked up
    std::vector<Target> passed;        // by the conditions of a state
    std::vector<int32_t> held;         // the conditions at hand, each once
    std::vector<uint64_t> is_held;     // bits by condition
    static constexpr size_t AHEAD = 8; // states that are asked for in advance
    static constexpr size_t MANY_HELD = 16;  // conditions of an element that are not looked up one by one
    static constexpr size_t LOOK_UP = 8;     // one takes as long as looking through so many

    // Paths that were met, in this document and before: two that share a place forget each other.
    static constexpr size_t PATHS = size_t(1) << 15;
    std::vector<uint32_t> paths;
    int64_t entered_before = 0;        // states, in documents before this one
    static constexpr int64_t RARELY = 4;  // fewer than one element in so many has a new path
    bool keeps_at_once = false;        // then such paths are kept when they are met first

   public:
    PlainWork work;                    // in this document

    PlainRun(const TwigIndex* index, TriggerTable& table, Results& results, int64_t cache_bytes)
        : index(index), results(results), table(table), known(cache_bytes / KNOWN_SHARE), join(flat, table, known),
          situations(cache_bytes / SITUATIONS_SHARE) {}

    int64_t evaluated() const { return join.evaluated; }
    int64_t entered() const { return entered_before + work.entered; }  // states since ever

    // The index is another one.
    void assign() {
        flat.assign(*index);
        table.lay_out();
        flat.take_triggers(table);
        join.assign(index);
        known.clear();
        situations.clear();
        is_held.assign(size_t(flat.last_condition + 1) / 64 + 1, 0);
        held.clear();
        for (States* states : {&before, &beyond}) {
            states->waiting.assign();
            states->loops.clear();
        }
        levels.clear();
        if (paths.empty()) paths.assign(PATHS, 0);
        // What loops from the root on does so in every document.
        const int32_t first = flat.states[0].loop;
        if (first != NONE) {
            flat.loops[first].is_open = true;
            before.waiting.add(first);
        }
        levels.push_back(document_level());
    }

    // Nodes have other triggers now.
    void take_triggers() { flat.take_triggers(table); }

    // A document begins; those before came again and again, or did not.
    void begin(bool comes_again) {
        while (levels.size() > 1) close();  // it broke off, or was decided before its end
        close_loops(levels[0]);
        if (known.is_full()) {
            known.clear();
            situations.clear();  // they tell paths by their numbers
        }
        asks = comes_again;
        if (asks) situations.make_room();
        before.active.clear();
        beyond.active.clear();
        inner.clear();
        put_off.clear();
        real = 1;
        conditional.clear();
        levels[0] = document_level();
        ready = idle = 0;
        taken.clear();
        innermost = 0;
        ++document;
        entered_before += work.entered;
        keeps_at_once = work.new_paths * RARELY < work.elements;
        work = PlainWork();
        enter(before, 0);
    }

    // Whether nothing can match in or below the innermost element.
    bool leads_nowhere() const { return levels.back().is_barren && !levels.back().subjects && !levels.back().leads_beyond; }

    uint64_t subjects() const { return idle ? 0 : levels.back().subjects; }
    size_t depth() const { return levels.size() - 1; }
    size_t notes() const { return size_t(work.elements) + taken.number(); }

    void start_tag(int32_t symbol) {
        ++work.elements;
        const size_t above = levels.size() - 1;
        const bool is_barren = levels[above].is_barren, goes_beyond = levels[above].leads_beyond;
        if (idle || (is_barren && !goes_beyond)) {
            ++idle;
            return;
        }
        const int32_t path = levels[above].lead != NONE ? known.find(levels[above].lead, symbol) : NONE;
        const bool is_unknown = path == NONE && !is_barren;
        const int32_t from = levels[above].situation;
        const uint64_t steps = Situations::hash_of_name(levels[above].steps, symbol);
        const int32_t found = asks && goes_beyond ? situations.find(steps, from, symbol, NONE) : NONE;
        const bool is_followed = is_unknown || (goes_beyond && found == NONE);
        if (is_followed) {
            catch_up();
            enter_inner();
        }
        if (path != NONE) enter_known(path, goes_beyond);
        else if (is_barren) enter_barren();
        else enter_unknown(symbol);
        if (!goes_beyond) return;
        if (!is_followed) return know(found);
        const Following before = begin_following(found == NONE ? from : int32_t(Situations::UNKNOWN));
        enter_beyond(symbol, levels.size() - 1);
        end_following(before, steps, from, symbol, NONE, found);
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
        const Level& level = levels.back();
        const int32_t path = level.known, from = path != NONE ? level.situation : int32_t(Situations::UNKNOWN);
        uint64_t hash = 0, steps = 0;
        if (asks) {
            hash = Situations::hash_of_held(codes, number);
            steps = Situations::hash_of_conditions(level.steps, path, hash);
            const int32_t found = situations.find(steps, from, codes, number, hash, path);
            if (found != NONE) return know(found);
        }
        catch_up();
        const Following before = begin_following(from);
        pass_conditions(levels.back(), codes, number);
        const int32_t by = mode == KEEPING ? ~situations.keep_held(hash, codes, number) : 0;
        end_following(before, steps, from, by, path, NONE);
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
        return flat.bytes() + known.bytes() + situations.bytes() + join.bytes() + paths.capacity() * 4 + taken.bytes() +
               (before.active.capacity() + beyond.active.capacity()) * sizeof(Active) + is_held.capacity() * 8 +
               before.waiting.bytes() + beyond.waiting.bytes();
    }

   private:
    static constexpr int64_t KNOWN_SHARE = 4;  // of the bytes that may be cached, one part in so many is for known paths,
    static constexpr int64_t SITUATIONS_SHARE = 2;  // and for situations

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

    // What is behind conditions.

    // A step leads to a situation that is known.
    void know(int32_t found) {
        const Situation& it = situations.all[found];
        if (it.adds) put_off.push_back(Step{levels.size() - 1, it.by});
        take_situation(found);
        ++work.passed;
    }

    void take_situation(int32_t number) {
        Situation& it = situations.all[number];
        const int32_t* const numbers = situations.numbers.data();
        if (it.seen_at != document) {
            results.mark(numbers + it.keys_at, numbers + it.acceptances_at);
            work.known += it.acceptances_at - it.keys_at;
        }
        it.seen_at = document;
        for (int32_t i = it.acceptances_at; i < it.loops_at; ++i) taken.accepted.push_back(Note{numbers[i], innermost});
        for (int32_t i = it.loops_at; i < it.end; ++i) taken.loops_begun.push_back(Note{numbers[i], innermost});
        Level& level = levels.back();
        level.subjects |= it.subjects;
        level.situation = it.lead;
        level.leads_beyond = it.leads_below;
        level.steps = it.lead == Situations::NOTHING ? Situations::FIRST_HASH : it.hash;
    }

    // What was put off is done: all open elements have their states behind conditions.
    void catch_up() {
        if (put_off.empty() && real == levels.size()) return;
        mode = CATCHING_UP;
        size_t next = 0;
        for (size_t level = real - 1;;) {
            for (; next < put_off.size() && put_off[next].level == level; ++next) follow(put_off[next]);
            if (++level == levels.size()) break;
            enter_inner();
            place(levels[level]);
        }
        put_off.clear();
        real = levels.size();
        mode = FOLLOWING;
    }

    void follow(Step step) {
        if (step.by >= 0) enter_beyond(step.by, step.level);
        else pass_conditions(levels[step.level], situations.codes_of(~step.by), situations.number_of(~step.by));
    }

    void place(Level& level) {
        level.conditional = uint32_t(conditional.size());
        level.beyond_active = uint32_t(beyond.active.size());
        level.beyond_loops = uint32_t(beyond.loops.size());
        level.beyond_waiting = beyond.waiting.mark();
    }

    // What there was before a step.
    struct Following {
        uint64_t subjects;
        size_t accepted, begun, active, loops, inner, conditional;
    };

    // A step is followed. From a situation that is not known it is not kept.
    Following begin_following(int32_t from) {
        if (!asks) return Following{};
        const Following before{levels.back().subjects, taken.accepted.size(), taken.loops_begun.size(), beyond.active.size(),
                               beyond.loops.size(), inner.size(), conditional.size()};
        if (from != Situations::UNKNOWN && !situations.is_full()) mode = KEEPING;
        levels.back().subjects = 0;
        kept_keys.clear();
        return before;
    }

    void end_following(const Following& before, uint64_t steps, int32_t from, int32_t by, int32_t path, int32_t found) {
        Level& level = levels.back();
        level.leads_beyond = is_beyond(level);
        if (!asks) return;
        const bool leads_on = level.leads_beyond || (level.known != NONE && conditional.size() > level.conditional);
        if (mode == KEEPING) found = keep_situation(before, steps, from, by, path, leads_on);
        mode = FOLLOWING;
        level.situation = !leads_on ? int32_t(Situations::NOTHING) : found != NONE ? found : int32_t(Situations::UNKNOWN);
        level.steps = leads_on ? steps : Situations::FIRST_HASH;
        level.subjects |= before.subjects;
    }

    int32_t keep_situation(const Following& before, uint64_t steps, int32_t from, int32_t by, int32_t path,
                           bool leads_on) {
        Situation made{};
        std::vector<int32_t>& numbers = situations.numbers;
        made.hash = steps;
        made.subjects = levels.back().subjects;
        made.seen_at = document;
        made.from = from;
        made.by = by;
        made.path = path;
        made.lead = leads_on ? int32_t(Situations::UNKNOWN) : int32_t(Situations::NOTHING);
        made.adds = beyond.active.size() > before.active || beyond.loops.size() > before.loops || inner.size() > before.inner ||
                    conditional.size() > before.conditional;
        made.leads_below = levels.back().leads_beyond;
        made.keys_at = int32_t(numbers.size());
        numbers.insert(numbers.end(), kept_keys.begin(), kept_keys.end());
        made.acceptances_at = int32_t(numbers.size());
        for (size_t i = before.accepted; i < taken.accepted.size(); ++i) numbers.push_back(taken.accepted[i].number);
        made.loops_at = int32_t(numbers.size());
        for (size_t i = before.begun; i < taken.loops_begun.size(); ++i) numbers.push_back(taken.loops_begun[i].number);
        return situations.add(made);
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

    // Conditions.

    uint64_t holds(int32_t condition) const { return is_held[size_t(condition) >> 6] >> (condition & 63) & 1; }

    void hold(int32_t condition, int32_t path) {
        if (condition > flat.last_condition || holds(condition)) return;
        is_held[size_t(condition) >> 6] |= uint64_t(1) << (condition & 63);
        held.push_back(condition);
        if (path != NONE) known.prefetch_behind(path, condition);
    }

    // Passes the conditions of an element that hold. What is behind one may ask for others.
    void pass_conditions(const Level& level, const int32_t* codes, size_t number) {
        for (const int32_t condition : held) is_held[size_t(condition) >> 6] = 0;
        held.clear();
        for (size_t i = 0; i < number; ++i) hold(-codes[i] - 1, level.known);
        work.passed += int64_t(held.size());
        const size_t first = level.conditional;
        if (level.known != NONE) pass_of_path(level.known);
        for (size_t i = first; i < conditional.size(); ++i) {
            reached.clear();
            find_held(flat.conditions[conditional[i]]);
            arrive_at_reached(beyond);
        }
    }

    // Passes the conditions of a known path that hold. Many, as of thresholds that a number is above, are not found one by one.
    void pass_of_path(int32_t path) {
        const Span states = known.paths[path].conditional();
        if (held.size() > MANY_HELD) {
            reached.clear();
            find_held(known.numbers.data() + states.begin, known.numbers.data() + states.end);
            arrive_at_reached(beyond);
        } else if (!states.is_empty()) {
            for (const int32_t condition : held) pass_of_path(path, condition);
        }
    }

    void pass_of_path(int32_t path, int32_t condition) {
        int32_t number = known.find_behind(path, condition);
        if (number == NONE) {
            reached.clear();
            find_behind(path, known.paths[path].name, condition);
            find_behind(path, 0, condition);
            if (known.is_full()) {
                for (const Target target : reached) arrive(beyond, target);
                return;
            }
            number = keep_behind(path, condition);
        }
        if (number) pass_behind(known.behind[number]);
    }

    void pass_behind(KnownPaths::Behind& behind) {
        const Target* const targets = known.targets.data();
        if (behind.seen_at != document || mode == KEEPING)
            for (int32_t i = behind.keys_at; i < behind.others_at; ++i) accept(targets[i]);
        if (mode != CATCHING_UP) behind.seen_at = document;
        for (int32_t i = behind.others_at; i < behind.end; ++i) {
            if (targets[i].is_inner()) inner.push_back(targets[i]);
            else arrive(beyond, targets[i]);
        }
        work.entered += behind.end - behind.others_at;
    }

    // Finds what a condition leads to from those states of a path that a name led to.
    void find_behind(int32_t path, int32_t name, int32_t condition) {
        const int32_t group = flat.asking_of.get(pack(name, condition), NONE);
        if (group == NONE) return;
        const Span states = known.paths[path].conditional();
        const int32_t* state = known.numbers.data() + states.begin;
        const int32_t* const end = known.numbers.data() + states.end;
        for (int32_t i = flat.askings[group]; i < flat.askings[group + 1] && state != end; ++i) {
            state = first_from(state, end, flat.asking[i].conditions, [](int32_t conditions) { return conditions; });
            if (state != end && *state == flat.asking[i].conditions) reached.push_back(flat.asking[i].target);
        }
    }

    // Keeps what was found.
    int32_t keep_behind(int32_t path, int32_t condition) {
        const auto is_key = [](Target target) { return !target.is_state() && target.is_key(); };
        const size_t keys = size_t(std::partition(reached.begin(), reached.end(), is_key) - reached.begin());
        const size_t begin = known.targets.size();
        known.targets.insert(known.targets.end(), reached.begin(), reached.end());
        return known.keep_behind(path, condition, begin, begin + keys);
    }

    // Finds what those conditions of a state lead to that hold. If there are many more than hold, those are looked up, else they
    // are looked through: without a branch, since which of them hold cannot be predicted.
    void find_held(const FlatConditions& of) {
        const Transition* const first = flat.transitions.data() + of.first;
        const Transition* const end = flat.transitions.data() + of.end;
        if (size_t(end - first) > LOOK_UP * held.size()) {
            for (const int32_t condition : held) {
                const Target target = FlatAutomaton::among(first, end, condition);
                if (target.exists()) reached.push_back(target);
            }
            return;
        }
        if (passed.size() < size_t(end - first)) passed.resize(size_t(end - first));
        Target* found = passed.data();
        for (const Transition* at = first; at != end; ++at) {
            *found = at->target;
            found += holds(at->symbol);
        }
        reached.insert(reached.end(), passed.data(), found);
    }

    // Likewise, of many states. What is asked of them is asked for in advance.
    void find_held(const int32_t* at, const int32_t* end) {
        for (; at != end; ++at) {
            if (end - at > int64_t(2 * AHEAD)) __builtin_prefetch(&flat.conditions[at[2 * AHEAD]]);
            if (end - at > int64_t(AHEAD)) __builtin_prefetch(flat.transitions.data() + flat.conditions[at[AHEAD]].first);
            find_held(flat.conditions[*at]);
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
