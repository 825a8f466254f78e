// RememberingRun: one thread's way through documents of a kind that it has seen before. What a document leads to is
// made once, and remembered: configurations (configurations.hpp), and what follows from what branch points meet
// (branch_points.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "branch_points.hpp"
#include "configurations.hpp"
#include "lazy_dfa.hpp"
#include "results.hpp"
#include "seen_table.hpp"
#include "way.hpp"

namespace xsift::sift {

class RememberingRun {
    static constexpr int32_t SEVERAL = -1;           // stands for many conditions at once
    static constexpr size_t MANY_HELD = 16;          // conditions of an element that are not looked up one by one
    static constexpr size_t MANY = 4;                // runners that do the same go on as one

    // A runner at an open element.
    struct Place {
        int32_t config, runner;
        uint64_t subjects;             // of the configuration,
        uint32_t names;                // likewise,
        int32_t branch_count;          // likewise
        int32_t origin;                // the place that it comes from: of the parent, or (condition) of the same element
        int32_t condition;             // 0: it comes by the start tag; SEVERAL: by many conditions
        int32_t choice;                // which of those that the condition started; or the number of a set in `behind`

        Place(int32_t config, int32_t runner, uint64_t subjects, uint32_t names, int32_t branch_count, int32_t origin,
              int32_t condition, int32_t choice)
            : config(config), runner(runner), subjects(subjects), names(names), branch_count(branch_count), origin(origin),
              condition(condition), choice(choice) {}
    };

    const TwigIndex* index;
    Results& results;
    LazyDfa dfa;
    Configurations configurations;
    BranchPoints points;
    int64_t cache_bytes;
    int64_t flush_at = 0;              // the bytes that all of these may take before they are forgotten
    int64_t made_before = -1;          // what was made when that was looked at last

    std::vector<Place> places;         // of all open elements, outermost first; place 0 is the document's
    struct Level {
        size_t places;                 // where those of an open element begin
        int32_t runners;               // so many were open before it,
        size_t sets;                   // and so many of `behind` in use
        uint32_t busy;                 // names of children that there is something to be done for, as bits
        int32_t idle;                  // so many elements are open below it that there was nothing to be done for

        Level(size_t places, int32_t runners, size_t sets)
            : places(places), runners(runners), sets(sets), busy(ALL_NAMES), idle(0) {}
    };
    std::vector<Level> levels;         // the document's first
    std::vector<int32_t> symbols;      // of the open elements
    std::vector<int32_t> held;         // conditions of the element at hand
    uint64_t elements = 0;             // times that runners came to an element, since ever
    int64_t steps = 0;                 // of runners beside others, and conditions looked up, in this document
    SeenTable doing;                   // what runners do at the element at hand
    struct Start {
        int32_t config, runner;
        size_t origin;
        int32_t condition, choice;
    };
    std::vector<Start> starts;         // runners that begin at, or come to, the element at hand

    struct StartedAt {
        uint64_t round;
        int32_t start;                 // in `starts`
    };
    std::vector<StartedAt> started_at; // by configuration: when it was started last
    uint64_t start_round = 0;
    std::vector<uint64_t> held_at;     // by condition: when it held last, if there were many
    uint64_t held_round = 0;
    std::vector<uint64_t> leading;     // pack(slot, state of the automaton) behind those that lead on from a place
    std::vector<std::vector<int32_t>> behind;  // the states of the automaton where runners of open elements began
    size_t sets_open = 0;              // so many of these are in use

   public:
    int64_t flushes = 0;

    RememberingRun(const TwigIndex* index, TriggerTable& table, Results& results, int64_t cache_bytes)
        : index(index), results(results), dfa(index, table), configurations(dfa), points(index, dfa, table, configurations, results),
          cache_bytes(std::min(cache_bytes, LazyDfa::MOST_BYTES)) {}

    int64_t states_made() const { return dfa.states_made; }
    Making making() const {
        return Making{configurations.made, states_made() + configurations_made() + sets_made(), configurations.members};
    }
    int64_t configurations_made() const { return configurations.made; }
    int64_t sets_made() const { return points.sets_made(); }
    int64_t looked() const { return points.looked(); }
    int64_t decisions() const { return points.decisions; }
    size_t cached_bytes() const { return dfa.bytes() + configurations.bytes() + points.cached_bytes(); }
    size_t mark_bytes() const {
        return dfa.parts.stamp_bytes() + points.mark_bytes() + held_at.capacity() * 8 + started_at.capacity() * sizeof(StartedAt);
    }

    // The index is another one.
    void assign() {
        dfa.parts.forget_index();
        restart();
        points.assign();
    }

    // Nodes have other triggers now.
    void take_triggers() { dfa.forget_blocks(); }

    int64_t steps_taken() const { return steps; }

    // A document begins; those before came again and again, or did not.
    void begin(bool comes_again) {
        steps = 0;
        points.begin_document(levels.size() > 1, comes_again);  // then it broke off, or was decided before its end
        symbols.clear();
        sets_open = 0;
        points.new_runner();
        places.assign(1, Place{Configurations::FIRST, 0, 0, ALL_NAMES, 0, NONE, 0, 0});
        levels.assign(1, Level(0, 1, 0));
    }

    // Takes events. Returns whether every pattern is decided.
    bool feed(const int32_t* codes, size_t number) {
        const int32_t* const end = codes + number;
        bool decided = false;
        while (codes != end && !decided) {
            const int32_t code = *codes++;
            if (code >= 0) {
                if (levels.back().busy & names_bit(code)) decided = open_element(code);
                else ++levels.back().idle;
            } else if (levels.back().idle) {
                levels.back().idle -= code == -1;  // there are no conditions to be looked at either
            } else if (code == -1) {
                end_tag();
                decided = results.all_matched();
            } else {
                held.assign(1, -code - 1);
                while (codes != end && *codes < -1) held.push_back(-*codes++ - 1);
                take_conditions();
                find_busy();
                decided = results.all_matched();
            }
        }
        return decided;
    }

    // The subjects of the conditions that can matter at the innermost element.
    uint64_t subjects() const {
        if (levels.back().idle) return 0;
        uint64_t subjects = 0;
        for (size_t i = levels.back().places; i < places.size(); ++i) subjects |= places[i].subjects;
        return subjects;
    }

   private:
    // The cache.

    void restart() {
        dfa.restart();
        configurations.restart();
        points.restart();
        // A cache that is full as soon as it holds what is needed would be emptied at every tag.
        flush_at = std::max<int64_t>(cache_bytes, 2 * int64_t(cached_bytes()));
    }

    void bound_cache() {
        const int64_t made = dfa.states_made + configurations.made + points.sets_made();
        if (made == made_before) return;
        made_before = made;
        if (int64_t(cached_bytes()) > flush_at) flush();
    }

    // Forgets all, but what the open elements need.
    void flush() {
        points.spell_out();
        restart();
        for (size_t level = 1; level < levels.size(); ++level) {
            const size_t end = level + 1 < levels.size() ? levels[level + 1].places : places.size();
            for (size_t i = levels[level].places; i < end; ++i) {
                Place& place = places[i];
                const int32_t from = places[place.origin].config;
                if (place.condition == SEVERAL) {
                    const std::vector<int32_t>& set = behind[place.choice];
                    place.config = configurations.begin_behind(set.data(), set.size());
                } else if (place.condition) {
                    configurations.behind_condition(from, place.condition, [&](Started started, int32_t number) {
                        if (number == place.choice) place.config = started.config;
                    });
                } else {
                    place.config = configurations.next(from, symbols[level - 1]);
                }
            }
        }
        flush_at = std::max<int64_t>(cache_bytes, 2 * int64_t(cached_bytes()));
        ++flushes;
    }

    // Elements.

    // Whether another runner at the element does the same: it is in the same configuration, works for the same branch point,
    // and neither has branch points of its own. Else conditions on recursive elements would multiply runners.
    bool is_repeated(int32_t config, int32_t number) {
        const auto& runner = points.runner(number);
        if (runner.open || runner.bosses.size() > 1) return false;
        if (runner.bosses.empty()) return !doing.add(pack(config, 0), NONE, elements);
        return !doing.add(pack(config, runner.bosses[0].slot), runner.bosses[0].runner, elements);
    }

    // A runner comes to an element.
    void enter(int32_t number, int32_t runner, size_t origin, int32_t condition, int32_t choice) {
        const Config& config = configurations.configs[number];
        if (config.stays())
            places.emplace_back(number, runner, config.subjects, config.names, config.branch_count, int32_t(origin), condition,
                                choice);
        points.mark_keys(config);
        for (int32_t i = 0; i < config.branch_count; ++i)
            points.open_point(runner, configurations.branchings[config.branches + i]);
        for (int32_t i = 0; i < config.report_count; ++i) {
            const Report& report = configurations.reports[config.reports + i];
            points.tell(runner, report.slot, report.yield);
        }
    }

    // Returns whether every pattern is decided.
    bool open_element(int32_t symbol) {
        bound_cache();
        if (places.size() - levels.back().places == 1) {
            take_start_tag(symbol, places.size() - 1);
        } else {
            take_start_tag(symbol);
            find_busy();
        }
        return results.all_matched() || (levels.size() == 2 && leads_nowhere());
    }

    // A start tag where there is one runner: what most are.
    void take_start_tag(int32_t symbol, size_t origin) {
        const int32_t from = places[origin].config, runner = places[origin].runner;
        const int32_t number = places[origin].names & names_bit(symbol) ? configurations.next(from, symbol)
                                                                        : configurations.otherwise(from);
        const Config& config = configurations.configs[number];
        if (number == from && !config.subjects) {  // what it reports was reported for the element above
            ++levels.back().idle;
            return;
        }
        levels.emplace_back(origin + 1, points.open_runners(), sets_open);
        symbols.push_back(symbol);
        levels.back().busy = config.busy(number);
        if (number != Configurations::DEAD) enter(number, runner, origin, 0, 0);
    }

    // Finds out for which children of the element nothing changes: all runners stay where they are, and ask for no conditions.
    // These are only counted, and so is what is below them, as long as that holds.
    void find_busy() {
        uint32_t busy = 0;
        for (size_t i = levels.back().places; i < places.size(); ++i) {
            busy |= configurations.configs[places[i].config].busy(places[i].config);
        }
        levels.back().busy = busy;
    }

    void take_start_tag(int32_t symbol) {
        const size_t begin = levels.back().places, end = places.size();
        const uint32_t name = names_bit(symbol);
        levels.emplace_back(end, points.open_runners(), sets_open);
        symbols.push_back(symbol);
        const bool several = end - begin > 1;
        ++elements;
        steps += int64_t(end - begin);
        if (several)
            for (size_t i = begin; i < end; ++i)
                if (places[i].names & name) configurations.ask_for_next(places[i].config, symbol);
        starts.clear();
        for (size_t i = begin; i < end; ++i) {
            const int32_t config = places[i].names & name ? configurations.next(places[i].config, symbol)
                                                          : configurations.otherwise(places[i].config);
            if (config == Configurations::DEAD || (several && is_repeated(config, places[i].runner))) continue;
            if (end - begin < MANY) enter(config, places[i].runner, i, 0, 0);
            else starts.push_back(Start{config, places[i].runner, i, 0, 0});
        }
        if (!starts.empty()) enter_many();
    }

    // Many runners come to an element. Those that are in one configuration, and have no branch points of their own, go on as
    // one.
    void enter_many() {
        std::sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) {
            return a.config != b.config ? a.config < b.config : a.origin < b.origin;
        });
        for (size_t i = 0; i < starts.size();) {
            size_t end = i;
            while (end < starts.size() && starts[end].config == starts[i].config && !points.runner(starts[end].runner).open) ++end;
            if (end - i < MANY) {
                end = std::max(end, i + 1);
                for (; i < end; ++i) enter(starts[i].config, starts[i].runner, starts[i].origin, 0, 0);
                continue;
            }
            const int32_t runner = points.new_runner();
            for (size_t j = i; j < end; ++j) points.work_for(runner, starts[j].runner, 0);
            points.tidy(runner);
            enter(starts[i].config, runner, starts[i].origin, 0, 0);
            i = end;
        }
    }

    void take_conditions() {
        if (places.size() == levels.back().places) return;
        bound_cache();
        steps += int64_t(held.size() * (places.size() - levels.back().places));
        if (held.size() >= MANY_HELD) return take_many_conditions();
        if (held.size() > 1) {
            // In the order in which patterns pass them. Of an element without children, those of both tags come together.
            std::sort(held.begin(), held.end(), [this](int32_t a, int32_t b) {
                const bool late = index->is_late(a);
                return late == index->is_late(b) ? a < b : !late;
            });
            held.erase(std::unique(held.begin(), held.end()), held.end());
            for (const int32_t condition : held)
                for (size_t i = levels.back().places; i < places.size(); ++i)
                    if (places[i].subjects) configurations.ask_for(places[i].config, condition);
        }
        for (const int32_t condition : held) {
            const size_t end = places.size();
            begin_starts();
            for (size_t i = levels.back().places; i < end; ++i)
                if (places[i].subjects) take_condition(condition, i);
            enter_started();
        }
    }

    void take_condition(int32_t condition, size_t place) {
        configurations.behind_condition(places[place].config, condition, [&](Started started, int32_t choice) {
            if (started.config == NONE) points.accept(places[place].runner, started.slot, started.code);
            else start(started, place, condition, choice);
        });
    }

    // Of many conditions that hold (all thresholds above a number) few are asked for at an element: so it is looked through what
    // is asked for. What they lead to is one runner, for they would be many, and the same again for another such number. It is
    // looked at next, for it may stand before further conditions.
    void take_many_conditions() {
        ++held_round;
        for (const int32_t condition : held) {
            if (size_t(condition) >= held_at.size()) held_at.resize(size_t(condition) + 1, 0);
            held_at[condition] = held_round;
        }
        for (size_t begin = levels.back().places, end = places.size(); begin < end; begin = end, end = places.size()) {
            begin_starts();
            for (size_t i = begin; i < end; ++i)
                if (places[i].subjects) take_many_conditions(i);
            enter_started();
        }
    }

    void take_many_conditions(size_t place) {
        const int32_t runner = places[place].runner, config = places[place].config;
        if (configurations.conditions_of(config) > int64_t(held.size()) * MANY_HELD) {
            for (const int32_t condition : held) take_condition(condition, place);
            return;
        }
        leading.clear();
        configurations.each_condition(config, [&](int32_t slot, const PartCondition& at) {
            if (size_t(at.condition) >= held_at.size() || held_at[at.condition] != held_round) return;
            if (at.target == NONE) points.accept(runner, slot, at.code);
            else leading.push_back(pack(slot, at.target));
        });
        std::sort(leading.begin(), leading.end());
        for (size_t i = 0; i < leading.size();) {
            if (sets_open == behind.size()) behind.emplace_back();
            std::vector<int32_t>& set = behind[sets_open];
            const int32_t slot = int32_t(leading[i] >> 32);
            set.clear();
            for (; i < leading.size() && int32_t(leading[i] >> 32) == slot; ++i) set.push_back(int32_t(uint32_t(leading[i])));
            const int32_t begins = configurations.begin_behind(set.data(), set.size());
            start(Started{slot, begins, NOTHING}, place, SEVERAL, int32_t(sets_open++));
        }
    }

    void begin_starts() {
        starts.clear();
        ++start_round;
    }

    void enter_started() {
        for (const Start& at : starts) {
            points.tidy(at.runner);
            enter(at.config, at.runner, at.origin, at.condition, at.choice);
        }
    }

    // A condition starts a runner beside the one at a place.
    void start(Started started, size_t origin, int32_t condition, int32_t choice) {
        const Config& config = configurations.configs[started.config];
        if (!config.stays()) {  // it has nothing to run for
            points.mark_keys(config);
            for (int32_t i = 0; i < config.report_count; ++i)
                points.tell(places[origin].runner, started.slot, configurations.reports[config.reports + i].yield);
            return;
        }
        if (size_t(started.config) >= started_at.size()) started_at.resize(configurations.configs.size(), StartedAt{0, 0});
        StartedAt& at = started_at[started.config];
        if (at.round == start_round) return points.work_for(starts[at.start].runner, places[origin].runner, started.slot);
        at = StartedAt{start_round, int32_t(starts.size())};
        const int32_t runner = points.new_runner();
        points.work_for(runner, places[origin].runner, started.slot);
        starts.push_back(Start{started.config, runner, origin, condition, choice});
    }

    void end_tag() {
        if (levels.size() < 2) return;
        points.count_closed();
        const Level level = levels.back();
        for (size_t i = places.size(); i-- > level.places;)
            for (int32_t j = 0; j < places[i].branch_count; ++j) points.close_point(places[i].runner);
        places.erase(places.begin() + level.places, places.end());
        points.close_runners(level.runners);
        sets_open = level.sets;
        levels.pop_back();
        symbols.pop_back();
    }

    // Whether nothing can match in or below the innermost element any more.
    bool leads_nowhere() const { return places.size() == levels.back().places; }
};

}  // namespace xsift::sift
