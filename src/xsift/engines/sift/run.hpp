// Run: one thread's way through documents. Everything that changes while a document is read is here.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "bits.hpp"
#include "branch_sets.hpp"
#include "configurations.hpp"
#include "decider.hpp"
#include "flat_map.hpp"
#include "guide.hpp"
#include "lazy_dfa.hpp"
#include "seen_table.hpp"

namespace xsift::sift {

class Run : public Guide {
    static constexpr size_t BLOCK = 64;              // words of `bits` that are looked through together
    static constexpr int64_t FEW_PATTERNS = 4096;    // one document may match all of so many
    static constexpr int32_t SEVERAL = -1;           // stands for many conditions at once
    static constexpr size_t MANY_HELD = 16;          // conditions of an element that are not looked up one by one
    static constexpr size_t MANY = 4;                // runners that do the same go on as one
    static constexpr size_t FIRST_COMPACTION = 4096;  // a list is rid of repetitions when it gets longer than this

    // An open element whose branching steps are being decided; or a joint.
    struct BranchPoint {
        size_t owners, owners_end;     // in its runner's `owners`: the slots that it works for
        bool joint;
        uint64_t number;               // of all branch points, this one
        std::vector<int32_t> met;      // yields, and ~ of edges that subs completed; with repetitions
        size_t compact_at;             // the length at which it is rid of them next
        std::vector<uint64_t> counted; // its keys in `progress`
    };

    struct Boss {
        int32_t runner, slot;
        bool operator==(const Boss& other) const { return runner == other.runner && slot == other.slot; }
        bool operator<(const Boss& other) const { return pack(runner, slot) < pack(other.runner, other.slot); }
    };

    // Runners that begin at one element in one configuration are one, whomever they work for: else conditions on nested
    // branches would multiply them in recursive documents.
    struct Runner {
        std::vector<Boss> bosses;      // the branch points of other runners that it works for; none for the document's
        int32_t open = 0;              // so many of `points` are in use: slots 1 to `open`
        std::vector<BranchPoint> points;
        std::vector<int32_t> owners;   // of all that are in use
    };

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
    LazyDfa dfa;
    Configurations configurations;
    BranchSets sets;
    Decider decider;
    int64_t cache_bytes;
    int64_t flush_at = 0;              // the bytes that all of these may take before they are forgotten
    int64_t made_before = -1;          // what was made when that was looked at last
    int64_t version = -1;              // of the index that they were made for

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
    std::vector<Runner> runners;
    int32_t runners_open = 0;
    std::vector<int32_t> held;         // conditions of the element at hand
    uint64_t elements = 0;             // times that runners came to an element, since ever
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

    std::vector<uint64_t> bits;        // by key: matched in this document
    std::vector<uint8_t> blocks;       // by BLOCK words of `bits`: some are not zero
    std::vector<int32_t> found;        // room for all keys
    bool counts_down = false;          // whether `undecided` is kept: only if it may reach 0
    int64_t undecided = 0;             // patterns that have not matched yet
    bool decided = false;              // nothing that follows in the document matters
    bool unfinished = false;           // a document was begun and its matches were not collected: it broke off
    uint64_t document = 0, points_made = 0;
    uint32_t closed = 0;               // elements closed so far: the post-order number of the closing one
    FlatMap<uint64_t> progress;        // pack(branch point, node) -> edges counted from the left, and by which element last
    std::vector<int32_t> yield_list, edge_list;

   public:
    int64_t flushes = 0, decisions = 0;

    Run(const TwigIndex* index, int64_t cache_bytes)
        : index(index), configurations(dfa), decider(dfa), cache_bytes(std::min(cache_bytes, LazyDfa::MOST_BYTES)) {
        dfa.index = index;
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    int64_t states_made() const { return dfa.states_made; }
    int64_t configurations_made() const { return configurations.made; }
    int64_t sets_made() const { return sets.made; }
    int64_t looked() const { return decider.looked; }
    size_t cached_bytes() const { return dfa.bytes() + configurations.bytes() + sets.bytes(); }
    size_t mark_bytes() const {
        return dfa.stamp_bytes() + decider.bytes() + bits.capacity() * 8 + blocks.capacity() + found.capacity() * 4 +
               held_at.capacity() * 8 + started_at.capacity() * sizeof(StartedAt);
    }

    void begin(int64_t version_now) {
        if (version != version_now) {
            const size_t number = (index->pattern_node.size() + 64 * BLOCK - 1) / (64 * BLOCK);
            dfa.forget_index();
            restart();
            version = version_now;
            decider.restart();
            bits.resize(number * BLOCK, 0);
            blocks.resize(number, 0);
            found.resize(index->pattern_node.size() + SLACK);
        }
        if (unfinished) {
            std::vector<int32_t> nobody;
            collect(nobody);
        }
        if (levels.size() > 1) progress.clear();  // it broke off, or was decided before its end
        unfinished = true;
        undecided = index->pattern_count;
        counts_down = undecided <= FEW_PATTERNS;
        closed = 0;
        decided = false;
        ++document;
        symbols.clear();
        runners_open = 0;
        sets_open = 0;
        new_runner();
        places.assign(1, Place{Configurations::FIRST, 0, 0, ALL_NAMES, 0, NONE, 0, 0});
        levels.assign(1, Level(0, 1, 0));
    }

    // Takes events. Returns whether every pattern is decided.
    bool feed(const int32_t* codes, size_t number) {
        const int32_t* const end = codes + number;
        while (codes != end && !decided) {
            const int32_t code = *codes++;
            if (code >= 0) {
                if (levels.back().busy & names_bit(code)) open_element(code);
                else ++levels.back().idle;
            } else if (levels.back().idle) {
                levels.back().idle -= code == -1;  // there are no conditions to be looked at either
            } else if (code == -1) {
                end_tag();
                decided = undecided == 0;
            } else {
                held.assign(1, -code - 1);
                while (codes != end && *codes < -1) held.push_back(-*codes++ - 1);
                take_conditions();
                find_busy();
                decided = undecided == 0;
            }
        }
        return decided;
    }

    uint64_t take(const int32_t* codes, size_t number) override {
        if (feed(codes, number) || levels.back().idle) return 0;
        uint64_t subjects = 0;
        for (size_t i = levels.back().places; i < places.size(); ++i) subjects |= places[i].subjects;
        return subjects;
    }

    void begin_again() override { begin(version); }

    // Appends the keys of what matched, ascending, and forgets them.
    void collect(std::vector<int32_t>& keys) {
        int32_t* end = found.data();
        for (size_t block = 0; block < blocks.size(); ++block) {
            if (!blocks[block]) continue;
            blocks[block] = 0;
            end = take_bits(bits.data() + block * BLOCK, BLOCK, int32_t(block * BLOCK * 64), end);
        }
        keys.insert(keys.end(), found.data(), end);
        unfinished = false;
    }

   private:
    // The cache.

    void restart() {
        dfa.restart();
        configurations.restart();
        sets.restart();
        // A cache that is full as soon as it holds what is needed would be emptied at every tag.
        flush_at = std::max<int64_t>(cache_bytes, 2 * int64_t(cached_bytes()));
    }

    void bound_cache() {
        const int64_t made = dfa.states_made + configurations.made + sets.made;
        if (made == made_before) return;
        made_before = made;
        if (int64_t(cached_bytes()) > flush_at) flush();
    }

    // Forgets all, but what the open elements need.
    void flush() {
        for (int32_t i = 0; i < runners_open; ++i)
            for (int32_t slot = 0; slot < runners[i].open; ++slot) spell_out(runners[i].points[slot]);
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

    // Says what was met below a branch point in edges alone, which outlive the cache.
    void spell_out(BranchPoint& point) {
        const size_t number = point.met.size();
        for (size_t k = 0; k < number; ++k) {
            if (point.met[k] < 0) continue;
            const Yield& yield = dfa.yields[point.met[k]];
            for (int32_t i = yield.parts; i < yield.parts_end; ++i) {
                const Accepts& part = dfa.accepts_of[dfa.part_lists[i]];
                for (uint32_t j = part.begin; j < part.end; ++j) point.met.push_back(~edge_of_code(dfa.pool[j]));
            }
        }
        point.met.erase(std::remove_if(point.met.begin(), point.met.begin() + number, [](int32_t m) { return m >= 0; }),
                        point.met.begin() + number);
        compact(point);
    }

    // Runners.

    int32_t new_runner() {
        if (runners_open == int32_t(runners.size())) runners.emplace_back();
        Runner& made = runners[runners_open];
        made.open = 0;
        made.owners.clear();
        made.bosses.clear();
        return runners_open++;
    }

    // A runner is to work for a slot of another.
    void work_for(int32_t number, int32_t runner, int32_t slot) {
        std::vector<Boss>& bosses = runners[number].bosses;
        if (slot) bosses.push_back(Boss{runner, slot});
        else bosses.insert(bosses.end(), runners[runner].bosses.begin(), runners[runner].bosses.end());
    }

    // Whether another runner at the element does the same: it is in the same configuration, works for the same branch point,
    // and neither has branch points of its own. Else conditions on recursive elements would multiply runners.
    bool is_repeated(int32_t config, int32_t number) {
        const Runner& runner = runners[number];
        if (runner.open || runner.bosses.size() > 1) return false;
        const Boss boss = runner.bosses.empty() ? Boss{NONE, 0} : runner.bosses[0];
        return !doing.add(pack(config, boss.slot), boss.runner, elements);
    }

    // A runner comes to an element.
    void enter(int32_t number, int32_t runner, size_t origin, int32_t condition, int32_t choice) {
        const Config& config = configurations.configs[number];
        if (config.stays())
            places.emplace_back(number, runner, config.subjects, config.names, config.branch_count, int32_t(origin), condition,
                                choice);
        mark_keys(config);
        for (int32_t i = 0; i < config.branch_count; ++i)
            open_point(runners[runner], configurations.branchings[config.branches + i]);
        for (int32_t i = 0; i < config.report_count; ++i) {
            const Report& report = configurations.reports[config.reports + i];
            tell(runner, report.slot, report.yield);
        }
    }

    void mark_keys(const Config& config) {
        if (config.few_count) mark(config.few, config.few + config.few_count);
        if (config.keys != NONE && dfa.yields[config.keys].seen_at != document) report(dfa.yields[config.keys]);
    }

    void open_element(int32_t symbol) {
        bound_cache();
        if (places.size() - levels.back().places == 1) {
            take_start_tag(symbol, places.size() - 1);
        } else {
            take_start_tag(symbol);
            find_busy();
        }
        decided = undecided == 0 || (levels.size() == 2 && leads_nowhere());
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
        levels.emplace_back(origin + 1, runners_open, sets_open);
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
        levels.emplace_back(end, runners_open, sets_open);
        symbols.push_back(symbol);
        const bool several = end - begin > 1;
        ++elements;
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
            while (end < starts.size() && starts[end].config == starts[i].config && !runners[starts[end].runner].open) ++end;
            if (end - i < MANY) {
                end = std::max(end, i + 1);
                for (; i < end; ++i) enter(starts[i].config, starts[i].runner, starts[i].origin, 0, 0);
                continue;
            }
            const int32_t runner = new_runner();
            for (size_t j = i; j < end; ++j) work_for(runner, starts[j].runner, 0);
            tidy(runners[runner].bosses);
            enter(starts[i].config, runner, starts[i].origin, 0, 0);
            i = end;
        }
    }

    static void tidy(std::vector<Boss>& bosses) {
        std::sort(bosses.begin(), bosses.end());
        bosses.erase(std::unique(bosses.begin(), bosses.end()), bosses.end());
    }

    void take_conditions() {
        if (places.size() == levels.back().places) return;
        bound_cache();
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
            if (started.config == NONE) accept(places[place].runner, started.slot, started.code);
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
            if (at.target == NONE) accept(runner, slot, at.code);
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

    // What a leaf accepts is there.
    void accept(int32_t runner, int32_t slot, int32_t code) {
        if (is_key(code)) return mark(&code, &code + 1);
        each_point(runner, slot, [&](int32_t, BranchPoint& point) { meet(point, ~edge_of_code(code)); });
    }

    void begin_starts() {
        starts.clear();
        ++start_round;
    }

    void enter_started() {
        for (const Start& at : starts) {
            if (runners[at.runner].bosses.size() > 1) tidy(runners[at.runner].bosses);
            enter(at.config, at.runner, at.origin, at.condition, at.choice);
        }
    }

    // A condition starts a runner beside the one at a place.
    void start(Started started, size_t origin, int32_t condition, int32_t choice) {
        const Config& config = configurations.configs[started.config];
        if (!config.stays()) {  // it has nothing to run for
            mark_keys(config);
            for (int32_t i = 0; i < config.report_count; ++i)
                tell(places[origin].runner, started.slot, configurations.reports[config.reports + i].yield);
            return;
        }
        if (size_t(started.config) >= started_at.size()) started_at.resize(configurations.configs.size(), StartedAt{0, 0});
        StartedAt& at = started_at[started.config];
        if (at.round == start_round) return work_for(starts[at.start].runner, places[origin].runner, started.slot);
        at = StartedAt{start_round, int32_t(starts.size())};
        const int32_t runner = new_runner();
        work_for(runner, places[origin].runner, started.slot);
        starts.push_back(Start{started.config, runner, origin, condition, choice});
    }

    void end_tag() {
        if (levels.size() < 2) return;
        ++closed;
        const Level level = levels.back();
        for (size_t i = places.size(); i-- > level.places;)
            for (int32_t j = 0; j < places[i].branch_count; ++j) close_point(places[i].runner);
        places.erase(places.begin() + level.places, places.end());
        runners_open = level.runners;
        sets_open = level.sets;
        levels.pop_back();
        symbols.pop_back();
    }

    // Whether nothing can match in or below the innermost element any more.
    bool leads_nowhere() const { return places.size() == levels.back().places; }

    // Keys.

    void matched(int32_t key) {
        const uint64_t bit = uint64_t(1) << (key & 63);
        undecided -= (bits[key >> 6] & bit) == 0;
        bits[key >> 6] |= bit;
        blocks[key >> 12] = 1;
    }

    // The keys of a yield have matched, but for the parts of it that were met before in this document.
    void report(Yield& yield) {
        const int32_t* const pool = dfa.pool.data();
        const int32_t* const part_lists = dfa.part_lists.data();
        Accepts* const accepts = dfa.accepts_of.data();
        yield.seen_at = document;
        // Parts and their lists lie anywhere in memory: ask for all of them first.
        for (int32_t i = yield.parts; i < yield.parts_end; ++i) __builtin_prefetch(&accepts[part_lists[i]]);
        for (int32_t i = yield.parts; i < yield.parts_end; ++i)
            if (accepts[part_lists[i]].seen_at != document) __builtin_prefetch(&pool[accepts[part_lists[i]].begin]);
        for (int32_t i = yield.parts; i < yield.parts_end; ++i) {
            Accepts& part = accepts[part_lists[i]];
            if (part.seen_at == document) continue;
            part.seen_at = document;
            mark(pool + part.begin, pool + part.end);
        }
    }

    void mark(const int32_t* key, const int32_t* end) {
        if (counts_down) {
            for (; key != end; ++key) matched(*key);
            return;
        }
        uint64_t* const words = bits.data();
        uint8_t* const flags = blocks.data();
        for (; key != end; ++key) {
            words[*key >> 6] |= uint64_t(1) << (*key & 63);
            flags[*key >> 12] = 1;
        }
    }

    // Branch points.

    // Calls use(runner, branch point) for those that a slot of a runner stands for.
    template <class Use>
    void each_point(int32_t runner, int32_t slot, Use&& use) {
        if (slot) return use(runner, runners[runner].points[slot - 1]);
        for (const Boss& boss : runners[runner].bosses) use(boss.runner, runners[boss.runner].points[boss.slot - 1]);
    }

    // A yield was met below those.
    void tell(int32_t runner, int32_t slot, int32_t number) {
        each_point(runner, slot, [&](int32_t, BranchPoint& point) {
            Yield& yield = dfa.yields[number];
            if (yield.seen_at == point.number) return;
            yield.seen_at = point.number;
            meet(point, number);
        });
    }

    void open_point(Runner& runner, const Branching& branching) {
        if (runner.open == int32_t(runner.points.size())) runner.points.emplace_back();
        BranchPoint& point = runner.points[runner.open++];
        point.owners = runner.owners.size();
        runner.owners.insert(runner.owners.end(), configurations.owners.begin() + branching.owners,
                             configurations.owners.begin() + branching.owners_end);
        point.owners_end = runner.owners.size();
        point.joint = branching.joint;
        point.number = ++points_made;
        point.met.clear();
        point.compact_at = FIRST_COMPACTION;
    }

    // One more yield, or ~ of an edge, was met below a branch point.
    void meet(BranchPoint& point, int32_t member) {
        point.met.push_back(member);
        if (point.met.size() > point.compact_at) compact(point);
    }

    static void compact(BranchPoint& point) {
        std::sort(point.met.begin(), point.met.end());
        point.met.erase(std::unique(point.met.begin(), point.met.end()), point.met.end());
        point.compact_at = std::max(FIRST_COMPACTION, 2 * point.met.size());
    }

    // The element ends that is the innermost branch point of a runner.
    void close_point(int32_t number) {
        Runner& runner = runners[number];
        BranchPoint& point = runner.points[--runner.open];
        if (!point.counted.empty()) {
            for (const uint64_t key : point.counted) progress.erase(key);
            point.counted.clear();
        }
        if (!point.met.empty()) conclude(number, point);
        runner.owners.resize(point.owners);
    }

    // Calls use(runner, branch point) for all that a branch point works for.
    template <class Use>
    void each_owner(int32_t runner, const BranchPoint& point, Use&& use) {
        for (size_t i = point.owners; i < point.owners_end; ++i) each_point(runner, runners[runner].owners[i], use);
    }

    // Tells whom a branch point works for what follows from what was met below it.
    void conclude(int32_t runner, BranchPoint& point) {
        if (point.joint) return hand_over(runner, point);
        if (point.met.size() <= BranchSets::MOST_MEMBERS) {
            if (point.met.size() > 1) compact(point);
            int32_t set = sets.find(point.met);
            if (set == NONE) set = decided_set(point.met);
            mark_set(set);
            if (sets.sets[set].counted == sets.sets[set].end && sets.sets[set].edges == NONE) return;
            each_owner(runner, point, [&](int32_t at, BranchPoint& above) { take_set(at, above, set); });
            return;
        }
        decide(point.met);
        mark(decider.keys.data(), decider.keys.data() + decider.keys.size());
        if (decider.edges.empty()) return;
        each_owner(runner, point, [&](int32_t at, BranchPoint& above) {
            for (const int32_t code : decider.edges) complete(at, above, edge_of_code(code));
        });
    }

    // Hands what was met below a joint to those that it stands for.
    void hand_over(int32_t runner, BranchPoint& point) {
        compact(point);
        each_owner(runner, point, [&](int32_t, BranchPoint& above) {
            for (const int32_t member : point.met) {
                if (member >= 0) {
                    if (dfa.yields[member].seen_at == above.number) continue;
                    dfa.yields[member].seen_at = above.number;
                }
                meet(above, member);
            }
        });
    }

    void decide(const std::vector<int32_t>& met) {
        yield_list.clear();
        edge_list.clear();
        for (const int32_t member : met) {
            if (member >= 0) yield_list.push_back(member);
            else edge_list.push_back(~member);
        }
        ++decisions;
        decider.decide(yield_list, edge_list);
    }

    int32_t decided_set(const std::vector<int32_t>& met) {
        const int32_t number = sets.add(met);
        decide(met);
        BranchSet& set = sets.sets[number];
        sets.pool.insert(sets.pool.end(), decider.keys.begin(), decider.keys.end());
        set.counted = int64_t(sets.pool.size());
        edge_list.clear();
        for (const int32_t code : decider.edges) {
            if (is_counted(edge_of_code(code))) sets.pool.push_back(code);
            if (is_asked(edge_of_code(code))) edge_list.push_back(code);
        }
        set.end = int64_t(sets.pool.size());
        if (!edge_list.empty()) set.edges = dfa.yield_of(edge_list);
        return number;
    }

    void mark_set(int32_t number) {
        BranchSet& set = sets.sets[number];
        if (set.counted == set.keys || set.reported_at == document) return;
        set.reported_at = document;
        mark(sets.pool.data() + set.keys, sets.pool.data() + set.counted);
    }

    void take_set(int32_t runner, BranchPoint& above, int32_t number) {
        const BranchSet& set = sets.sets[number];
        for (int64_t i = set.counted; i < set.end; ++i) count(runner, above, edge_of_code(sets.pool[i]));
        if (set.edges == NONE || dfa.yields[set.edges].seen_at == above.number) return;
        dfa.yields[set.edges].seen_at = above.number;
        meet(above, set.edges);
    }

    // Whether nodes count an edge in order, and whether others just ask for it.
    int32_t uses_in_order(int32_t edge) const {
        const int32_t list = index->edges[edge].ordered;
        return list == NONE ? 0 : index->ordered_uses.count(list);
    }
    bool is_counted(int32_t edge) const { return index->ordered_count && uses_in_order(edge) > 0; }
    bool is_asked(int32_t edge) const { return !index->ordered_count || index->edges[edge].uses > uses_in_order(edge); }

    // A sub completes an edge of a branch point.
    void complete(int32_t runner, BranchPoint& point, int32_t edge) {
        if (is_asked(edge)) meet(point, ~edge);
        if (is_counted(edge)) count(runner, point, edge);
    }

    void count(int32_t runner, BranchPoint& point, int32_t edge) {
        if (point.joint)  // what is counted has its time: it does not wait for the end of the element
            return each_owner(runner, point, [&](int32_t at, BranchPoint& above) { count(at, above, edge); });
        const int32_t list = index->edges[edge].ordered;
        for (int32_t i = 0; i < index->ordered_uses.count(list); ++i) count(point, index->ordered_uses.data(list)[i]);
    }

    // Order: elements close in post-order, so it is enough to count edges from the left, each by an element of its own.
    void count(BranchPoint& point, const OrderedUse& use) {
        const uint64_t key = pack(int32_t(point.number & 0x7fffffff), use.node);
        const uint64_t state = progress.get(key, 0);  // high half: edges counted; low half: the element that was last
        if (int32_t(state >> 32) != use.position || (state && uint32_t(state) == closed)) return;
        if (state == 0) point.counted.push_back(key);
        progress.put(key, pack(use.position + 1, int32_t(closed)));
        const Node& node = index->nodes[use.node];
        if (use.position + 1 == node.ordered) meet(point, ~index->edge_pool[node.edges + node.edge_count - 1]);
    }
};

}  // namespace xsift::sift
