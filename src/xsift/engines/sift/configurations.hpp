// Configurations: all that goes on at an element, in one number.
//
// A pattern that branches is followed by several threads: one looks for the way from the root to its branching step; each
// element that is such a step, a *branch point*, starts one more in its scope, which runs beside the first over all
// that is below that element, and tells what of the scope is there. A thread is a state of the LazyDfa, and the branch point
// that it works for.
//
// The naive way makes one look-up a thread at every start tag. But which threads there are depends on the names of the open
// elements alone. So the list of them is a configuration, made once, and an element costs one look-up in all: it leads to
// the next configuration, which has ready what there is to be done.
//
// Conditions would multiply configurations: each element's attributes have many values. So what a condition leads to does
// not join the configuration, it becomes a *runner* of its own, with its own configuration, which runs beside the others as
// long as it lives. Most conditions lead nowhere, and that is remembered too.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_map.hpp"
#include "lazy_dfa.hpp"

namespace xsift::sift {

// Branch points of a runner are numbered from 1, outermost first; 0 is whom the runner works for.
struct Thread {
    int32_t state;
    int32_t slot;             // the branch point that it works for
};

struct Report {
    int32_t slot;             // a branch point below which
    int32_t yield;            // these edges were met
};

struct Started {
    int32_t slot;             // whom the new runner works for
    int32_t config;           // where it begins
};

struct Config {
    enum Flag : uint8_t { LEADS_ON = 1, CONDITIONAL = 2 };
    uint64_t hash;
    int64_t threads, threads_end;
    int64_t reports, reports_end;
    int64_t branches, branches_end;  // in `owners`: the branch points that the element becomes, and whom each works for
    int32_t keys;                    // the yield of keys, or NONE
    int32_t slots;                   // branch points of the runner, these included
    int32_t same_hash;
    uint8_t flags;
};

class Configurations {
   public:
    enum : int32_t { DEAD = 0, FIRST = 1 };

    explicit Configurations(LazyDfa& dfa) : dfa(dfa) {}

    std::vector<Config> configs;
    std::vector<Report> reports;
    std::vector<int32_t> owners;
    std::vector<Started> started;
    int64_t made = 0;                // since ever

    void restart() {
        configs.clear();
        threads.clear();
        reports.clear();
        owners.clear();
        started.clear();
        extents.assign(1, Extent{0, 0});
        transitions.clear();
        conditional.clear();
        by_hash.clear();
        list.clear();
        configs.push_back(Config{0, 0, 0, 0, 0, 0, 0, NONE, 0, NONE, 0});
        begin_at(LazyDfa::FIRST);
    }

    // The configuration after a start tag.
    int32_t next(int32_t config, int32_t symbol) {
        const int32_t known = transitions.get(pack(config, symbol), NONE);
        return known >= 0 ? known : make(config, symbol);
    }

    struct Extent {
        int64_t begin, end;          // in `started`
    };

    // What a condition that holds for the element starts.
    Extent behind_condition(int32_t config, int32_t condition) {
        const int32_t known = conditional.get(pack(config, condition), NONE);
        return extents[known >= 0 ? known : make_conditional(config, condition)];
    }

    size_t bytes() const {
        return configs.capacity() * sizeof(Config) + threads.capacity() * sizeof(Thread) +
               reports.capacity() * sizeof(Report) + owners.capacity() * 4 + started.capacity() * sizeof(Started) +
               extents.capacity() * sizeof(Extent) + transitions.bytes() + conditional.bytes() + by_hash.bytes();
    }

   private:
    LazyDfa& dfa;
    std::vector<Thread> threads;
    std::vector<Extent> extents;         // extent 0 is empty
    FlatMap<int32_t> transitions;        // pack(config, name) -> config
    FlatMap<int32_t> conditional;        // pack(config, condition) -> number in `extents`
    FlatMap<int32_t> by_hash;
    std::vector<Thread> list;            // the threads of the configuration being made
    std::vector<int32_t> new_owners;

    int32_t make(int32_t config, int32_t symbol) {
        list.clear();
        for (int64_t i = configs[config].threads; i < configs[config].threads_end; ++i) {
            const int32_t state = dfa.next(threads[i].state, symbol);
            if (state != LazyDfa::DEAD) list.push_back(Thread{state, threads[i].slot});
        }
        const int32_t target = list.empty() ? int32_t(DEAD) : intern(configs[config].slots);
        transitions.put(pack(config, symbol), target);
        return target;
    }

    int32_t make_conditional(int32_t config, int32_t condition) {
        int32_t extent = 0;
        std::vector<Started> found;
        for (int64_t i = configs[config].threads; i < configs[config].threads_end; ++i) {
            const Thread thread = threads[i];
            if (!(dfa.states[thread.state].flags & DfaState::CONDITIONAL)) continue;
            const int32_t state = dfa.behind_condition(thread.state, condition);
            if (state != LazyDfa::DEAD) found.push_back(Started{thread.slot, begin_at(state)});
        }
        if (!found.empty()) {
            extent = int32_t(extents.size());
            const int64_t begin = int64_t(started.size());
            started.insert(started.end(), found.begin(), found.end());
            extents.push_back(Extent{begin, int64_t(started.size())});
        }
        conditional.put(pack(config, condition), extent);
        return extent;
    }

    // The configuration of a runner that begins in a state.
    int32_t begin_at(int32_t state) {
        list.assign(1, Thread{state, 0});
        return intern(0);
    }

    // The configuration with the threads in `list`, of a runner with so many branch points: known, or new.
    int32_t intern(int32_t slots) {
        const size_t number = list.size();
        new_owners.clear();
        Config made{};
        made.keys = NONE;
        for (size_t i = 0; i < number; ++i) {
            if (!(dfa.states[list[i].state].flags & DfaState::BRANCHES)) continue;
            new_owners.push_back(list[i].slot);
            list.push_back(Thread{dfa.scope_of(list[i].state), slots + int32_t(new_owners.size())});
        }
        made.slots = slots + int32_t(new_owners.size());
        made.hash = mix64(pack(slots, int32_t(number)));
        for (const Thread& thread : list) made.hash = mix64(made.hash + pack(thread.state, thread.slot));
        made.hash >>= 1;
        const int32_t first = by_hash.get(made.hash, NONE);
        for (int32_t config = first; config >= 0; config = configs[config].same_hash)
            if (is_same(configs[config], made.slots)) return config;
        made.same_hash = first;
        made.threads = int64_t(threads.size());
        made.reports = int64_t(reports.size());
        made.branches = int64_t(owners.size());
        owners.insert(owners.end(), new_owners.begin(), new_owners.end());
        made.branches_end = int64_t(owners.size());
        for (const Thread& thread : list) {
            const DfaState& state = dfa.states[thread.state];
            threads.push_back(thread);
            if (state.flags & DfaState::LEADS_ON) made.flags |= Config::LEADS_ON;
            if (state.flags & DfaState::CONDITIONAL) made.flags |= Config::CONDITIONAL;
            if (state.yield == NONE) continue;
            const Part& part = dfa.parts[dfa.part_lists[dfa.yields[state.yield].parts]];
            if (is_key(dfa.pool[part.accepts])) made.keys = state.yield;
            else reports.push_back(Report{thread.slot, state.yield});
        }
        made.threads_end = int64_t(threads.size());
        made.reports_end = int64_t(reports.size());
        configs.push_back(made);
        ++this->made;
        by_hash.put(made.hash, int32_t(configs.size()) - 1);
        return int32_t(configs.size()) - 1;
    }

    bool is_same(const Config& config, int32_t slots) const {
        if (config.slots != slots || config.threads_end - config.threads != int64_t(list.size()) ||
            config.branches_end - config.branches != int64_t(new_owners.size()))
            return false;
        for (size_t i = 0; i < list.size(); ++i) {
            const Thread& thread = threads[config.threads + int64_t(i)];
            if (thread.state != list[i].state || thread.slot != list[i].slot) return false;
        }
        return true;
    }
};

}  // namespace xsift::sift
