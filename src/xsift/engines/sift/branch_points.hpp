// BranchPoints: the open elements where patterns branch, what was met below each of them, and what follows from it.
//
// Threads tell the branch points that they work for which edges they met. When the element ends, that decides its
// nodes, and what these complete is told in turn to the branch points that this one works for, or is a match.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "branch_sets.hpp"
#include "configurations.hpp"
#include "decider.hpp"
#include "flat_map.hpp"
#include "lazy_dfa.hpp"
#include "results.hpp"

namespace xsift::sift {

class BranchPoints {
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

    const TwigIndex* index;
    LazyDfa& dfa;
    const Configurations& configurations;
    Results& results;
    BranchSets sets;
    Decider decider;
    std::vector<Runner> runners;
    int32_t runners_open = 0;
    uint64_t document = 0, points_made = 0;
    bool keeps_large = false;          // sets of any size, for documents come again and again
    uint32_t closed = 0;               // elements closed so far: the post-order number of the closing one
    FlatMap<uint64_t> progress;        // pack(branch point, node) -> edges counted from the left, and by which element last
    std::vector<int32_t> yield_list, edge_list;

   public:
    int64_t decisions = 0;

    BranchPoints(const TwigIndex* index, LazyDfa& dfa, TriggerTable& table, const Configurations& configurations, Results& results)
        : index(index), dfa(dfa), configurations(configurations), results(results), decider(dfa, table) {}

    int64_t sets_made() const { return sets.made; }
    int64_t looked() const { return decider.looked; }
    size_t cached_bytes() const { return sets.bytes(); }
    size_t mark_bytes() const { return decider.bytes(); }

    // The index is another one.
    void assign() { decider.restart(); }

    void begin_document(bool after_broken, bool comes_again) {
        keeps_large = comes_again;
        if (after_broken) progress.clear();
        closed = 0;
        ++document;
        runners_open = 0;
    }

    // The cache is emptied.
    void restart() { sets.restart(); }

    // Before that: what the open ones met must outlive it.
    void spell_out() {
        for (int32_t i = 0; i < runners_open; ++i)
            for (int32_t slot = 0; slot < runners[i].open; ++slot) spell_out(runners[i].points[slot]);
    }

    // Runners.

    int32_t open_runners() const { return runners_open; }
    void close_runners(int32_t number) { runners_open = number; }
    const Runner& runner(int32_t number) const { return runners[number]; }

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

    // A runner works for nobody twice.
    void tidy(int32_t runner) {
        std::vector<Boss>& bosses = runners[runner].bosses;
        if (bosses.size() < 2) return;
        std::sort(bosses.begin(), bosses.end());
        bosses.erase(std::unique(bosses.begin(), bosses.end()), bosses.end());
    }

    // An element ends.
    void count_closed() { ++closed; }

    // What a leaf accepts is there.
    void accept(int32_t runner, int32_t slot, int32_t code) {
        if (is_key(code)) return results.mark(code);
        each_point(runner, slot, [&](int32_t, BranchPoint& point) { meet(point, ~edge_of_code(code)); });
    }

    // The keys that a configuration accepts have matched.
    void mark_keys(const Config& config) {
        if (config.few_count) results.mark(config.few, config.few + config.few_count);
        if (config.keys != NONE && dfa.yields[config.keys].seen_at != document) report(dfa.yields[config.keys]);
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

    void open_point(int32_t number, const Branching& branching) {
        Runner& runner = runners[number];
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

   private:
    // Says what was met below a branch point in edges alone, which outlive the cache.
    void spell_out(BranchPoint& point) {
        const size_t number = point.met.size();
        for (size_t k = 0; k < number; ++k) {
            if (point.met[k] < 0) continue;
            const Yield& yield = dfa.yields[point.met[k]];
            for (int32_t i = yield.parts; i < yield.parts_end; ++i) {
                const Accepts& part = dfa.parts.accepts_of[dfa.part_lists[i]];
                for (uint32_t j = part.begin; j < part.end; ++j) point.met.push_back(~edge_of_code(dfa.parts.pool[j]));
            }
        }
        point.met.erase(std::remove_if(point.met.begin(), point.met.begin() + number, [](int32_t m) { return m >= 0; }),
                        point.met.begin() + number);
        compact(point);
    }

    // The keys of a yield have matched, but for the parts of it that were met before in this document.
    void report(Yield& yield) {
        const int32_t* const pool = dfa.parts.pool.data();
        const int32_t* const part_lists = dfa.part_lists.data();
        Accepts* const accepts = dfa.parts.accepts_of.data();
        yield.seen_at = document;
        // Parts and their lists lie anywhere in memory: ask for all of them first.
        for (int32_t i = yield.parts; i < yield.parts_end; ++i) __builtin_prefetch(&accepts[part_lists[i]]);
        for (int32_t i = yield.parts; i < yield.parts_end; ++i)
            if (accepts[part_lists[i]].seen_at != document) __builtin_prefetch(&pool[accepts[part_lists[i]].begin]);
        for (int32_t i = yield.parts; i < yield.parts_end; ++i) {
            Accepts& part = accepts[part_lists[i]];
            if (part.seen_at == document) continue;
            part.seen_at = document;
            results.mark(pool + part.begin, pool + part.end);
        }
    }

    // Calls use(runner, branch point) for those that a slot of a runner stands for.
    template <class Use>
    void each_point(int32_t runner, int32_t slot, Use&& use) {
        if (slot) return use(runner, runners[runner].points[slot - 1]);
        for (const Boss& boss : runners[runner].bosses) use(boss.runner, runners[boss.runner].points[boss.slot - 1]);
    }

    // One more yield, or ~ of an edge, was met below a branch point.
    void meet(BranchPoint& point, int32_t member) {
        point.met.push_back(member);
        if (point.met.size() > point.compact_at) compact(point);
    }

    static void make_distinct(std::vector<int32_t>& members) {
        std::sort(members.begin(), members.end());
        members.erase(std::unique(members.begin(), members.end()), members.end());
    }

    static void compact(BranchPoint& point) {
        make_distinct(point.met);
        point.compact_at = std::max(FIRST_COMPACTION, 2 * point.met.size());
    }

    // Calls use(runner, branch point) for all that a branch point works for.
    template <class Use>
    void each_owner(int32_t runner, const BranchPoint& point, Use&& use) {
        for (size_t i = point.owners; i < point.owners_end; ++i) each_point(runner, runners[runner].owners[i], use);
    }

    // Tells whom a branch point works for what follows from what was met below it.
    void conclude(int32_t runner, BranchPoint& point) {
        if (point.joint) return hand_over(runner, point);
        const bool is_small = point.met.size() <= BranchSets::MOST_MEMBERS;
        if (is_small || keeps_large) {
            if (is_small && point.met.size() > 1) compact(point);  // large ones come in the same order again
            int32_t set = sets.find(point.met);
            if (set == NONE) set = decided_set(point.met);
            mark_set(set);
            if (sets.sets[set].counted == sets.sets[set].end && sets.sets[set].edges == NONE) return;
            each_owner(runner, point, [&](int32_t at, BranchPoint& above) { take_set(at, above, set); });
            return;
        }
        decide(point.met);
        results.mark(decider.keys.data(), decider.keys.data() + decider.keys.size());
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
        make_distinct(decider.keys);
        make_distinct(decider.edges);
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
        results.mark(sets.pool.data() + set.keys, sets.pool.data() + set.counted);
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
