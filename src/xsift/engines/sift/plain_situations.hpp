// PlainSituations: what is behind conditions, as far as possible without entering states.
//
// Where documents come again and again, all that is behind conditions at an element is known as a number (situations.hpp),
// and a step from it, a name or the conditions that hold for an element, is looked up. Then its states are not entered.
// But a step may come that was never met there. So the steps of open elements are put off, not left out: then they are
// followed after all, from the outermost on, and what they accept is not accepted again.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "plain_conditions.hpp"

namespace xsift::sift {

class PlainSituations : public PlainConditions {
    Situations situations;
    bool asks = false;                 // for situations, in this document

   protected:
    PlainSituations(Results& results, int64_t known_bytes, int64_t situation_bytes)
        : PlainConditions(results, known_bytes), situations(situation_bytes) {}

    void assign(const TwigIndex& index) {
        PlainConditions::assign(index);
        situations.clear();
    }

    // A document begins; those before came again and again, or did not.
    void begin(bool comes_again) {
        if (known.is_full()) {
            known.clear();
            situations.clear();  // they tell paths by their numbers
        }
        asks = comes_again;
        if (asks) situations.make_room();
        PlainConditions::begin();
    }

    size_t bytes() const { return PlainConditions::bytes() + situations.bytes(); }

    // Where a name leads from the situation of the innermost element.
    struct NameStep {
        uint64_t steps;
        int32_t from, name;
        int32_t found;                 // NONE: it has to be followed
    };

    NameStep find_step(int32_t name) {
        const Level& level = levels.back();
        NameStep step{Situations::FIRST_HASH, level.situation, name, NONE};
        if (!asks || !level.leads_beyond) return step;
        step.steps = Situations::hash_of_name(level.steps, name);
        step.found = situations.find(step.steps, step.from, name, NONE);
        return step;
    }

    // It is taken, to the element that has started: looked up, or followed.
    void take_step(const NameStep& step, bool is_followed) {
        if (!is_followed) return know(step.found);
        const Before before = begin_following(step.found == NONE ? step.from : int32_t(Situations::UNKNOWN));
        enter_beyond(step.name, levels.size() - 1);
        end_following(before, step.steps, step.from, step.name, NONE, step.found);
    }

    // The conditions that hold for the innermost element, as codes.
    void take_held(const int32_t* codes, size_t number) {
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
        const Before before = begin_following(from);
        pass_conditions(levels.back(), codes, number);
        const int32_t by = mode == KEEPING ? ~situations.keep_held(hash, codes, number) : 0;
        end_following(before, steps, from, by, path, NONE);
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

   private:
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
    struct Before {
        uint64_t subjects;
        size_t accepted, begun, active, loops, inner, conditional;
    };

    // A step is followed. From a situation that is not known it is not kept.
    Before begin_following(int32_t from) {
        if (!asks) return Before{};
        const Before before{levels.back().subjects, taken.accepted.size(), taken.loops_begun.size(), beyond.active.size(),
                            beyond.loops.size(),    inner.size(),          conditional.size()};
        if (from != Situations::UNKNOWN && !situations.is_full()) mode = KEEPING;
        levels.back().subjects = 0;
        kept_keys.clear();
        return before;
    }

    void end_following(const Before& before, uint64_t steps, int32_t from, int32_t by, int32_t path, int32_t found) {
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

    int32_t keep_situation(const Before& before, uint64_t steps, int32_t from, int32_t by, int32_t path, bool leads_on) {
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
};

}  // namespace xsift::sift
