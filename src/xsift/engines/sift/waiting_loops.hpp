// WaitingLoops: the looping states of open elements, under the names that they wait for.
//
// They are not asked at every element below. Most wait for few names, and each name has a list of the states that it
// leads to. Those that wait for many are asked one by one.
#pragma once
#include <cstdint>
#include <vector>

#include "flat_automaton.hpp"

namespace xsift::sift {

// Transitions to be looked through, in FlatAutomaton::transitions.
struct Asked {
    int32_t first, end;
};

class WaitingLoops {
    const FlatAutomaton& flat;
    std::vector<std::vector<Target>> waiting;  // by name that they wait for: where it leads
    std::vector<int32_t> lists;                // the lists of `waiting` that were added to, in turn
    std::vector<int32_t> wide;                 // loops that wait for many names
    std::vector<Target> stars;                 // whatever the name

   public:
    // So many there are; what was added since can be taken away again.
    struct Mark {
        uint32_t wide, stars, lists;
    };

    explicit WaitingLoops(const FlatAutomaton& flat) : flat(flat) {}

    // The index is another one.
    void assign() {
        waiting.assign(size_t(flat.waiting_names), {});
        lists.clear();
        wide.clear();
        stars.clear();
    }

    bool is_empty() const { return lists.empty() && wide.empty() && stars.empty(); }

    Mark mark() const { return Mark{uint32_t(wide.size()), uint32_t(stars.size()), uint32_t(lists.size())}; }

    void add(int32_t number) {
        const FlatLoop& loop = flat.loops[number];
        if (loop.star.exists()) stars.push_back(loop.star);
        if (!loop.names) return;
        if (loop.is_wide) return wide.push_back(number);
        if (loop.name >= 0) return wait(loop.name, loop.target);
        for (int32_t i = loop.first(); i < loop.end(); ++i) wait(flat.transitions[i].symbol, flat.transitions[i].target);
    }

    void take_away(Mark since) {
        wide.resize(since.wide);
        stars.resize(since.stars);
        for (; lists.size() > since.lists; lists.pop_back()) waiting[lists.back()].pop_back();
    }

    // Finds the states that a name leads to, as one of 64 bits too, and transitions that have to be looked through for it.
    void find(int32_t symbol, uint64_t bit, std::vector<Target>& reached, std::vector<Asked>& asked) const {
        for (const int32_t loop : wide) {
            if (!(flat.loops[loop].names & bit)) continue;
            __builtin_prefetch(flat.transitions.data() + flat.loops[loop].first());
            asked.push_back(Asked{flat.loops[loop].first(), flat.loops[loop].end()});
        }
        reached.insert(reached.end(), stars.begin(), stars.end());
        if (size_t(symbol) >= flat.waiting_of.size() || flat.waiting_of[symbol] == NONE) return;
        const std::vector<Target>& list = waiting[flat.waiting_of[symbol]];
        reached.insert(reached.end(), list.begin(), list.end());
    }

    size_t bytes() const {
        size_t total = waiting.capacity() * sizeof(std::vector<Target>) + (lists.capacity() + wide.capacity()) * 4;
        for (const std::vector<Target>& list : waiting) total += list.capacity() * 4;
        return total;
    }

   private:
    void wait(int32_t name, Target target) {
        waiting[name].push_back(target);
        lists.push_back(name);
    }
};

}  // namespace xsift::sift
