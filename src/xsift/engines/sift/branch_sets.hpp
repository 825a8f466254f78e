// BranchSets: what was met below a branch point, as one number, and what follows from it.
//
// When a branch point ends, the yields that its threads met decide which nodes hold there. Small elements of one kind
// meet the same few yields again and again. So a set of yields is kept once, with what it completes (XPush's idea).
// Large sets are too various to be met again: a branch point that met many yields is decided by itself (decider.hpp),
// unless documents come again and again.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "bytes_table.hpp"
#include "flat_map.hpp"
#include "release.hpp"

namespace xsift::sift {

struct BranchSet {
    int64_t members, members_end;      // in `pool`: yields, and ~ of edges that subs completed
    int64_t keys, counted, end;        // in `pool`: the keys that it completes, then the edges that are counted in order
    uint64_t reported_at;              // the document in which its keys were reported last
    int32_t edges;                     // the yield of the other edges that it completes, or NONE
    int32_t same_hash;
};

class BranchSets {
   public:
    static constexpr size_t MOST_MEMBERS = 12;

    std::vector<BranchSet> sets;
    std::vector<int32_t> pool;
    int64_t made = 0;                  // since ever

    void restart() {
        release(sets, pool);
        by_hash.clear();
    }

    // The set with these members, in the same order, or NONE if it is not known.
    int32_t find(const std::vector<int32_t>& members) {
        const size_t bytes = members.size() * sizeof(int32_t);
        hash = hash_bytes(reinterpret_cast<const char*>(members.data()), bytes, process_salt()) >> 1;
        first = by_hash.get(hash, NONE);
        for (int32_t set = first; set >= 0; set = sets[set].same_hash)
            if (sets[set].members_end - sets[set].members == int64_t(members.size()) &&
                std::equal(members.begin(), members.end(), pool.begin() + sets[set].members))
                return set;
        return NONE;
    }

    // Adds the set that was just looked for. What it completes is for the caller to fill in.
    int32_t add(const std::vector<int32_t>& members) {
        const int64_t begin = int64_t(pool.size());
        pool.insert(pool.end(), members.begin(), members.end());
        const int64_t end = int64_t(pool.size());
        sets.push_back(BranchSet{begin, end, end, end, end, 0, NONE, first});
        ++made;
        by_hash.put(hash, int32_t(sets.size()) - 1);
        return int32_t(sets.size()) - 1;
    }

    size_t bytes() const { return sets.capacity() * sizeof(BranchSet) + pool.capacity() * 4 + by_hash.bytes(); }

   private:
    FlatMap<int32_t> by_hash;
    uint64_t hash = 0;                 // of the set that was looked for last,
    int32_t first = NONE;              // and the first one with the same
};

}  // namespace xsift::sift
