// PlainConditions: what the conditions that hold for an element lead to, state by state.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "plain_states.hpp"

namespace xsift::sift {

class PlainConditions : public PlainStates {
    std::vector<Target> passed;        // by the conditions of a state
    std::vector<int32_t> held;         // the conditions at hand, each once
    std::vector<uint64_t> is_held;     // bits by condition
    static constexpr size_t MANY_HELD = 16;  // conditions of an element that are not looked up one by one
    static constexpr size_t LOOK_UP = 8;     // one takes as long as looking through so many

   protected:
    using PlainStates::PlainStates;

    void assign(const TwigIndex& index) {
        PlainStates::assign(index);
        is_held.assign(size_t(flat.last_condition + 1) / 64 + 1, 0);
        held.clear();
    }

    size_t bytes() const { return PlainStates::bytes() + is_held.capacity() * 8; }

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

   private:
    uint64_t holds(int32_t condition) const { return is_held[size_t(condition) >> 6] >> (condition & 63) & 1; }

    void hold(int32_t condition, int32_t path) {
        if (condition > flat.last_condition || holds(condition)) return;
        is_held[size_t(condition) >> 6] |= uint64_t(1) << (condition & 63);
        held.push_back(condition);
        if (path != NONE) known.prefetch_behind(path, condition);
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
};

}  // namespace xsift::sift
