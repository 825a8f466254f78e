// Configurations: all that goes on at an element, in one number.
//
// A pattern that branches is followed by several threads: one looks for the way from the root to its branching step;
// each element that is such a step, a *branch point*, starts one more in its scope, which runs beside the first over
// all that is below that element, and tells what of the scope is there. A thread is a state of the LazyDfa, and the
// branch point that it works for.
//
// The naive way makes one look-up a thread at every start tag. But which threads there are depends on the names of the
// open elements alone. So the list of them is a configuration, made once, and an element costs one look-up in all: it
// leads to the next configuration, which has ready what there is to be done.
//
// Conditions would multiply configurations: each element's attributes have many values. So what a condition leads to
// does not join the configuration, it becomes a *runner* of its own, with its own configuration, which runs beside the
// others as long as it lives. Most conditions lead nowhere, and that is remembered too.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_map.hpp"
#include "lazy_dfa.hpp"
#include "release.hpp"

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

// What a condition starts: a new runner, or for a leaf none.
struct Started {
    int32_t slot;             // whom it works for
    int32_t config;           // where it begins; NONE: it is a leaf, which
    int32_t code;             // accepts this
};

// A branch point that an element becomes. Threads of one state, whomever they work for, share it: else nested branches
// would multiply in recursive documents. For the same reason there are *joints*: branch points below which all threads came
// into the same state share one thread from there on, and what it meets is handed to all of them when the element ends.
struct Branching {
    int32_t owners, owners_end;      // in `owners`: the slots that it works for
    bool joint;
};

// What is looked at when a configuration is entered: one line of memory.
struct Config {
    enum { FEW = 3 };
    uint64_t subjects;               // of the conditions that start something, as bits
    uint32_t names;                  // that lead on, as bits;
    int32_t otherwise;               // where all others lead: what stays active below; UNKNOWN until it is asked for
    int32_t branches;                // in `branchings`: the branch points that the element becomes
    int32_t reports;                 // in `reports`
    int32_t branch_count;
    int32_t report_count;
    int32_t few_count;               // keys that it accepts, if they are few:
    int32_t few[FEW];
    int32_t keys;                    // else the yield of them, or NONE
    int32_t last_name, last_target;  // the name that came last, and where it leads; NONE: siblings are often alike

    // Whether there is anything to be done after it was entered.
    bool stays() const { return names || subjects || branch_count; }

    // The names of children that there is something to be done for. With the others it stays as it is: what it reports was
    // reported for the element itself, and whatever becomes a branch point has another configuration than its children.
    uint32_t busy(int32_t number) const { return otherwise == number && !subjects ? names : ALL_NAMES; }
};

// What else there is to know of it.
struct ConfigThreads {
    uint64_t hash;
    int64_t begin, end;              // in `threads`
    int32_t slots;                   // branch points of the runner, these included
    int32_t same_hash;
};

class Configurations {
   public:
    enum : int32_t { DEAD = 0, FIRST = 1, UNKNOWN = -2 };

    explicit Configurations(LazyDfa& dfa) : dfa(dfa) {}

    std::vector<Config> configs;
    std::vector<Report> reports;
    std::vector<Branching> branchings;
    std::vector<int32_t> owners;
    int64_t made = 0;                // since ever,
    int64_t members = 0;             // and states of the automaton in them that lead on or accept

    void restart() {
        release(configs, threads, reports, branchings, owners, threads_of, started, extents);
        transitions.clear();
        conditional.clear();
        by_hash.clear();
        list.clear();
        configs.push_back(Config{});
        configs[DEAD].last_name = NONE;
        threads_of.push_back(ConfigThreads{0, 0, 0, 0, NONE});
        begin_at(dfa.first);
    }

    // The configuration after a start tag.
    int32_t next(int32_t config, int32_t symbol) {
        if (configs[config].last_name == symbol) return configs[config].last_target;
        const int32_t known = transitions.get(pack(config, symbol), NONE);
        const int32_t target = known >= 0 ? known : make(config, symbol);
        configs[config].last_name = symbol;
        configs[config].last_target = target;
        return target;
    }

    // The same after a name that is not among those that lead on.
    int32_t otherwise(int32_t config) {
        if (configs[config].otherwise == UNKNOWN) {
            const int32_t target = next(config, 0);
            configs[config].otherwise = target;
        }
        return configs[config].otherwise;
    }

    // Ask for the memory that a look-up will need.
    void ask_for_next(int32_t config, int32_t symbol) const { transitions.prefetch(pack(config, symbol)); }
    void ask_for(int32_t config, int32_t condition) const { conditional.prefetch(pack(config, condition)); }

    // Calls use(started, number) for what a condition that holds for the element starts; the number tells runners apart.
    template <class Use>
    void behind_condition(int32_t config, int32_t condition, Use&& use) {
        int32_t found = conditional.get(pack(config, condition), NONE);
        if (found < 0) found = make_conditional(config, condition);
        if (found == NOTHING_STARTS) return;
        if ((found & 3) == RUNNER) return use(Started{0, found >> 2, NOTHING}, 0);
        if ((found & 3) == KEY) return use(Started{0, NONE, found >> 2}, 0);
        const Extent extent = extents[(found >> 2) - 1];
        int32_t number = 0;
        for (int64_t i = extent.begin; i < extent.end; ++i) {
            const Started it = started[i];
            use(it, number);
            number += it.config != NONE;
        }
    }

    // Where a runner begins behind several conditions at once, given as the states of the automaton there.
    int32_t begin_behind(const int32_t* members, size_t number) { return begin_at(dfa.state_of(members, number)); }

    // How many conditions there are to look through in each_condition().
    int64_t conditions_of(int32_t config) {
        int64_t number = 0;
        each_conditional_part(config, [&](int32_t, int32_t part) {
            const Parts::ConditionList list = dfa.parts.listed_conditions(part);
            number += list.end - list.begin;
        });
        return number;
    }

    // Calls use(slot, condition) for the conditions that lead on from a configuration.
    template <class Use>
    void each_condition(int32_t config, Use&& use) {
        each_conditional_part(config, [&](int32_t slot, int32_t part) {
            const Parts::ConditionList list = dfa.parts.listed_conditions(part);
            for (const PartCondition* at = list.begin; at != list.end; ++at) use(slot, *at);
        });
    }

    size_t bytes() const {
        return configs.capacity() * sizeof(Config) + threads_of.capacity() * sizeof(ConfigThreads) +
               threads.capacity() * sizeof(Thread) + reports.capacity() * sizeof(Report) + owners.capacity() * 4 +
               branchings.capacity() * sizeof(Branching) +
               started.capacity() * sizeof(Started) + extents.capacity() * sizeof(Extent) + transitions.bytes() +
               conditional.bytes() + by_hash.bytes();
    }

   private:
    LazyDfa& dfa;
    struct Extent {
        int64_t begin, end;              // in `started`
    };

    template <class Use>
    void each_conditional_part(int32_t config, Use&& use) {
        for (int64_t i = threads_of[config].begin; i < threads_of[config].end; ++i) {
            const Thread thread = threads[i];
            const DfaState& state = dfa.states[thread.state];
            if (!state.subjects) continue;
            for (int32_t j = state.parts; j < state.parts_end; ++j) {
                const Part& part = dfa.parts[dfa.part_lists[j]];
                if (part.loops > part.conditional) use(thread.slot, dfa.part_lists[j]);
            }
        }
    }

    std::vector<ConfigThreads> threads_of;  // by config
    std::vector<Thread> threads;
    std::vector<Started> started;
    std::vector<Extent> extents;
    FlatMap<int32_t> transitions;        // pack(config, name) -> config
    // pack(config, condition) -> what it starts, as a number times 4 and: RUNNER, the number of a configuration, of one runner,
    // which works for whom this one works for; KEY, a key that it accepts; SEVERAL, a number in `extents`, and 1.
    enum : int32_t { NOTHING_STARTS = 0, SEVERAL = 0, RUNNER = 1, KEY = 2 };
    FlatMap<int32_t> conditional;
    std::vector<int32_t> codes;
    FlatMap<int32_t> by_hash;
    // The configuration being made: its threads, and the branch points that the element becomes, joints first.
    static constexpr size_t MANY = 4;    // threads of one state make a joint
    static constexpr int32_t MOST_SHORT_KEY = 1 << 29;
    std::vector<Thread> list;
    std::vector<Branching> made_branchings;
    std::vector<int32_t> made_owners;
    struct Alike {
        uint64_t kind;                   // of a thread of the list: what it must have in common with others,
        int32_t first;                   // the first one with the same,
        int32_t place;                   // and this one
    };
    std::vector<Alike> alike;

    int32_t make(int32_t config, int32_t symbol) {
        list.clear();
        for (int64_t i = threads_of[config].begin; i < threads_of[config].end; ++i) {
            const int32_t state = dfa.next(threads[i].state, symbol);
            if (state != LazyDfa::DEAD) list.push_back(Thread{state, threads[i].slot});
        }
        made_branchings.clear();
        made_owners.clear();
        if (list.size() >= MANY) join_threads(threads_of[config].slots);
        const int32_t target = list.empty() ? int32_t(DEAD) : intern(threads_of[config].slots);
        transitions.put(pack(config, symbol), target);
        return target;
    }

    int32_t make_conditional(int32_t config, int32_t condition) {
        std::vector<Started> found;
        for (int64_t i = threads_of[config].begin; i < threads_of[config].end; ++i) {
            const Thread thread = threads[i];
            if (!dfa.states[thread.state].subjects) continue;
            codes.clear();
            const int32_t state = dfa.behind_condition(thread.state, condition, codes);
            if (state != LazyDfa::DEAD) found.push_back(Started{thread.slot, begin_at(state), NOTHING});
            for (const int32_t code : codes) found.push_back(Started{thread.slot, NONE, code});
        }
        int32_t value = NOTHING_STARTS;
        if (found.size() == 1 && found[0].config != NONE && found[0].slot == 0) {
            value = 4 * found[0].config + RUNNER;
        } else if (found.size() == 1 && is_key(found[0].code) && found[0].code < MOST_SHORT_KEY) {
            value = 4 * found[0].code + KEY;
        } else if (!found.empty()) {
            const int64_t begin = int64_t(started.size());
            started.insert(started.end(), found.begin(), found.end());
            extents.push_back(Extent{begin, int64_t(started.size())});
            value = 4 * int32_t(extents.size()) + SEVERAL;
        }
        conditional.put(pack(config, condition), value);
        return value;
    }

    // The configuration of a runner that begins in a state.
    int32_t begin_at(int32_t state) {
        list.assign(1, Thread{state, 0});
        made_branchings.clear();
        made_owners.clear();
        return intern(0);
    }

    // The configuration with the threads in `list`, of a runner with so many branch points: known, or new.
    int32_t intern(int32_t slots) {
        find_branchings(slots);
        slots += int32_t(made_branchings.size());
        uint64_t hash = mix64(pack(slots, int32_t(made_branchings.size())));
        for (const Thread& thread : list) hash = mix64(hash + pack(thread.state, thread.slot));
        for (const int32_t owner : made_owners) hash = mix64(hash + uint32_t(owner));
        hash >>= 1;
        const int32_t first = by_hash.get(hash, NONE);
        for (int32_t config = first; config >= 0; config = threads_of[config].same_hash)
            if (is_same(config, slots)) return config;
        const int64_t begin = int64_t(threads.size());
        threads.insert(threads.end(), list.begin(), list.end());
        threads_of.push_back(ConfigThreads{hash, begin, int64_t(threads.size()), slots, first});
        configs.push_back(summary());
        ++made;
        by_hash.put(hash, int32_t(configs.size()) - 1);
        return int32_t(configs.size()) - 1;
    }

    // Puts those of `alike` together that have the same kind, in the order of the first of each, whatever numbers kinds have:
    // after the cache was emptied all must come out as before.
    void group_alike() {
        const auto by_kind = [](const Alike& a, const Alike& b) {
            return a.kind != b.kind ? a.kind < b.kind : a.place < b.place;
        };
        const auto by_first = [](const Alike& a, const Alike& b) {
            return a.first != b.first ? a.first < b.first : a.place < b.place;
        };
        if (alike.size() < 2) return;
        std::sort(alike.begin(), alike.end(), by_kind);
        for (size_t i = 1; i < alike.size(); ++i)
            if (alike[i].kind == alike[i - 1].kind) alike[i].first = alike[i - 1].first;
        std::sort(alike.begin(), alike.end(), by_first);
    }

    // One past the last of `alike` that is in the group of the i-th.
    size_t group_end(size_t i) const {
        size_t end = i + 1;
        while (end < alike.size() && alike[end].first == alike[i].first) ++end;
        return end;
    }

    // One more branch point, which works for the threads of a group. Returns its slot.
    int32_t add_branching(size_t group, size_t end, bool joint, int32_t slots) {
        const int32_t begin = int32_t(made_owners.size());
        for (size_t i = group; i < end; ++i) made_owners.push_back(list[alike[i].place].slot);
        made_branchings.push_back(Branching{begin, int32_t(made_owners.size()), joint});
        return slots + int32_t(made_branchings.size());
    }

    // Makes joints of threads of the list that are in the same state.
    void join_threads(int32_t slots) {
        alike.clear();
        for (size_t i = 0; i < list.size(); ++i)
            alike.push_back(Alike{dfa.set_hash_of(list[i].state), int32_t(i), int32_t(i)});
        group_alike();
        bool some = false;
        for (size_t i = 0, end; i < alike.size(); i = end) {
            end = group_end(i);
            if (end - i < MANY || !are_same_sets(i, end)) continue;
            some = true;
            const int32_t slot = add_branching(i, end, true, slots);
            list[alike[i].place].slot = slot;
            for (size_t j = i + 1; j < end; ++j) list[alike[j].place].state = LazyDfa::DEAD;
        }
        if (some)
            list.erase(std::remove_if(list.begin(), list.end(),
                                      [](const Thread& thread) { return thread.state == LazyDfa::DEAD; }),
                       list.end());
    }

    bool are_same_sets(size_t begin, size_t end) {
        for (size_t i = begin + 1; i < end; ++i)
            if (!dfa.are_same_set(list[alike[begin].place].state, list[alike[i].place].state)) return false;
        return true;
    }

    // Finds the branch points of the threads of the list, and adds the thread that each starts.
    void find_branchings(int32_t slots) {
        alike.clear();
        for (size_t i = 0; i < list.size(); ++i)
            if (dfa.states[list[i].state].branches)
                alike.push_back(Alike{uint64_t(dfa.scope_of(list[i].state)), int32_t(i), int32_t(i)});
        group_alike();
        for (size_t i = 0, end; i < alike.size(); i = end) {
            end = group_end(i);
            const int32_t slot = add_branching(i, end, false, slots);
            list.push_back(Thread{int32_t(alike[i].kind), slot});
        }
    }

    bool is_same(int32_t config, int32_t slots) const {
        const ConfigThreads& other = threads_of[config];
        const Config& at = configs[config];
        if (other.slots != slots || other.end - other.begin != int64_t(list.size()) ||
            at.branch_count != int32_t(made_branchings.size()))
            return false;
        for (size_t i = 0; i < list.size(); ++i) {
            const Thread& thread = threads[other.begin + int64_t(i)];
            if (thread.state != list[i].state || thread.slot != list[i].slot) return false;
        }
        for (int32_t i = 0; i < at.branch_count; ++i) {
            const Branching &known = branchings[at.branches + i], &made = made_branchings[i];
            if (known.joint != made.joint ||
                !std::equal(owners.begin() + known.owners, owners.begin() + known.owners_end,
                            made_owners.begin() + made.owners, made_owners.begin() + made.owners_end))
                return false;
        }
        return true;
    }

    // What there is to be done with the threads in `list`.
    Config summary() {
        Config made{};
        made.otherwise = UNKNOWN;
        made.keys = made.last_name = NONE;
        made.branches = int32_t(branchings.size());
        made.branch_count = int32_t(made_branchings.size());
        const int32_t shift = int32_t(owners.size());
        for (const Branching& at : made_branchings)
            branchings.push_back(Branching{at.owners + shift, at.owners_end + shift, at.joint});
        owners.insert(owners.end(), made_owners.begin(), made_owners.end());
        made.reports = int32_t(reports.size());
        for (const Thread& thread : list) {
            const DfaState& state = dfa.states[thread.state];
            members += state.members;
            made.names |= state.names;
            made.subjects |= state.subjects;
            if (state.yield == NONE) continue;
            if (yields_keys(state.yield)) set_keys(made, state.yield);
            else reports.push_back(Report{thread.slot, state.yield});
        }
        made.report_count = int32_t(reports.size()) - made.reports;
        return made;
    }

    bool yields_keys(int32_t yield) const {
        return is_key(dfa.parts.pool[dfa.parts.accepts_of[dfa.part_lists[dfa.yields[yield].parts]].begin]);
    }

    void set_keys(Config& config, int32_t yield) const {
        uint32_t number = 0;
        for (int32_t i = dfa.yields[yield].parts; i < dfa.yields[yield].parts_end; ++i) {
            const Accepts& part = dfa.parts.accepts_of[dfa.part_lists[i]];
            for (uint32_t j = part.begin; j < part.end; ++j, ++number)
                if (number < Config::FEW) config.few[number] = dfa.parts.pool[j];
        }
        if (number > Config::FEW) config.keys = yield;
        else config.few_count = int32_t(number);
    }
};

}  // namespace xsift::sift
