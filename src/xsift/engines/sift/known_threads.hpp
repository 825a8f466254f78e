// KnownThreads: what lies behind conditions that held before, followed without coming to every state of it.
//
// Where a condition holds at a known path, it leads to states that wait for what is below: to hundreds, if there are many
// subscriptions, of which few come to anything. So what is behind it is a known path itself (known_paths.hpp), from the second
// document on that has it: a thread. An element below costs a look-up for each thread that its name matters to.
//
// Of each thread its own loops are known, and those above it: when a path below is met first, it is looked through them. They
// are few, since no loop begins in a thread twice.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_automaton.hpp"
#include "known_paths.hpp"

namespace xsift::sift {

// A thread at an open element.
struct KnownThread {
    uint64_t wanted;       // names that lead on, as bits
    int32_t path;          // in KnownPaths
    int32_t lead;          // by which the paths below are known
    bool is_looping;       // it goes on below whatever name
    bool is_rest;          // and nothing else does: it is the same there
    bool asks;             // conditions lead on
};

class KnownThreads {
    const FlatAutomaton& flat;
    KnownPaths& known;
    std::vector<uint8_t> in_thread;    // by loop: it began in the thread at hand

   public:
    enum : int32_t { NOTHING_THERE = KnownPaths::FIRST };  // a path that no thread has
    static constexpr size_t MOST = 64;                     // threads at an element; what else there is, is followed state by state

    std::vector<KnownThread> open;          // of all open elements, outermost first
    std::vector<Target> reached;       // what the name at hand leads to

    KnownThreads(const FlatAutomaton& flat, KnownPaths& known) : flat(flat), known(known) {}

    // The index is another one.
    void assign() {
        in_thread.assign(flat.loops.size(), 0);
        open.clear();
    }

    // A path for what was reached by a condition, or by a name from another path.
    int32_t keep(int32_t name, int32_t above) {
        each_loop(above, [&](int32_t loop) { in_thread[loop] = 1; });
        const int32_t looping_above = above == NONE ? NONE : known.names[above].looping;
        std::vector<int32_t>& numbers = known.numbers;
        KnownPath path{};
        path.visits = path.lead = NONE;
        path.name = name;
        uint64_t wanted = 0;
        path.active.begin = int32_t(known.active.size());
        each_state([&](const FlatState& at) {
            if (at.conditions != NONE) path.subjects |= flat.conditions[at.conditions].subjects;
            if (!at.names && !at.star.exists()) return;
            known.active.push_back(Active{at.names, at.star, at.name, at.target});
            wanted |= at.star.exists() ? ALL_NAMES : at.names;
        });
        path.active.end = int32_t(known.active.size());
        path.conditional_at = int32_t(numbers.size());
        each_state([&](const FlatState& at) { if (at.conditions != NONE) numbers.push_back(at.conditions); });
        std::sort(numbers.begin() + path.conditional_at, numbers.end());
        path.loops_at = int32_t(numbers.size());
        each_state([&](const FlatState& at) { if (at.loop != NONE && !in_thread[at.loop]) numbers.push_back(at.loop); });
        path.noted_loops_at = int32_t(numbers.size());
        each_state([&](const FlatState& at) { if (at.loop != NONE && flat.loops[at.loop].is_noted) numbers.push_back(at.loop); });
        path.acceptances_at = int32_t(numbers.size());
        each_accepted([&](Target accepts) { if (!accepts.is_key()) numbers.push_back(accepts.accepted()); });
        path.keys_at = int32_t(numbers.size());
        each_accepted([&](Target accepts) { if (accepts.is_key()) numbers.push_back(accepts.accepted()); });
        path.end = int32_t(numbers.size());
        each_loop(above, [&](int32_t loop) { in_thread[loop] = 0; });

        const bool has_loops = !path.loops().is_empty();
        path.is_barren = path.active.is_empty() && !has_loops && looping_above == NONE;
        path.is_dead = path.is_barren && path.conditional_at == path.end;
        if (path.active.is_empty() && !has_loops && looping_above != NONE) path.lead = rest_of(above);
        const int32_t number = known.add(path, 0);
        KnownPaths::Names& names = known.names[number];
        names.above = above;
        names.looping = has_loops ? number : looping_above;
        names.wanted = wanted | wanted_by_loops(number);
        return number;
    }

    // The path below a thread's, which is made if it was not met before. If no more can be kept: NONE, and what is there is
    // in `reached`.
    int32_t below(const KnownThread& thread, int32_t symbol) {
        const int32_t path = known.find(thread.lead, symbol);
        if (path != NONE) return path;
        find_reached(thread.lead, symbol);
        if (known.is_full()) return NONE;
        const int32_t made = !reached.empty() ? keep(symbol, thread.lead) : thread.is_looping ? rest_of(thread.lead) : NOTHING_THERE;
        known.put(thread.lead, symbol, made);
        return made;
    }

    // The thread goes on at the innermost element, if it waits for anything.
    void go_on(int32_t number) {
        const KnownPath& path = known.paths[number];
        const bool asks = !path.conditional().is_empty();
        if (path.is_barren && !asks) return;
        const KnownPaths::Names& lead = known.names[path.lead];
        open.push_back(KnownThread{path.is_barren ? 0 : lead.wanted, number, path.lead, !path.is_barren && lead.looping != NONE,
                              lead.rest == number, asks});
    }

    // It does so below a name that it does not wait for. Returns false if no more can be kept.
    bool go_on_looping(const KnownThread& thread) {
        if (thread.is_rest) {
            open.push_back(KnownThread(thread));
        } else {
            reached.clear();
            if (known.names[thread.lead].rest == NONE && known.is_full()) return false;
            go_on(rest_of(thread.lead));
        }
        return true;
    }

    // Calls use(loop) for all that wait in a path's thread.
    template <class Use>
    void each_loop(int32_t path, Use&& use) const {
        for (int32_t at = path == NONE ? NONE : known.names[path].looping; at != NONE;) {
            const Span span = known.paths[at].loops();
            for (int32_t i = span.begin; i < span.end; ++i) use(known.numbers[i]);
            const int32_t above = known.names[at].above;
            at = above == NONE ? NONE : known.names[above].looping;
        }
    }

   private:
    static constexpr uint64_t ALL_NAMES = ~uint64_t(0);

    template <class Use>
    void each_state(Use&& use) const {
        for (const Target target : reached)
            if (target.is_state()) use(flat.states[target.number()]);
    }

    template <class Use>
    void each_accepted(Use&& use) const {
        for (const Target target : reached) {
            const Target accepts = target.is_state() ? flat.states[target.number()].accepts : target;
            if (accepts.exists()) use(accepts);
        }
    }

    // What only loops lead on from, below a path.
    int32_t rest_of(int32_t path) {
        if (known.names[path].rest != NONE) return known.names[path].rest;
        const int32_t made = known.rest_of(path, false);
        known.names[made].above = path;
        known.names[made].looping = known.names[path].looping;
        known.names[made].wanted = wanted_by_loops(made);
        return made;
    }

    uint64_t wanted_by_loops(int32_t path) const {
        uint64_t wanted = 0;
        each_loop(path, [&](int32_t loop) { wanted |= flat.loops[loop].star.exists() ? ALL_NAMES : flat.loops[loop].names; });
        return wanted;
    }

    void find_reached(int32_t path, int32_t symbol) {
        const uint64_t bit = symbol ? wide_name_bit(symbol) : 0;
        reached.clear();
        const Span span = known.paths[path].active;
        for (int32_t i = span.begin; i < span.end; ++i) {
            const Active& at = known.active[i];
            if (at.star.exists()) reached.push_back(at.star);
            if (!(at.names & bit)) continue;
            if (at.name == symbol) reached.push_back(at.target);
            else if (at.name < NONE) reach(flat.among_several(at.target.number(), at.target.number() - at.name, symbol));
        }
        each_loop(path, [&](int32_t number) {
            const FlatLoop& loop = flat.loops[number];
            if (loop.star.exists()) reached.push_back(loop.star);
            if (loop.names & bit) reach(flat.below_loop(loop, symbol));
        });
    }

    void reach(Target target) {
        if (target.exists()) reached.push_back(target);
    }
};

}  // namespace xsift::sift
