// BranchSets: what was met below a branch point, as one number, and what follows from it.
//
// When a branch point ends, the yields that its threads met decide which nodes hold there. Small elements of one kind
// meet the same few yields again and again. So a set of yields is kept once, with where one more yield leads to (XPush's
// idea), and with what it completes. Sets grow too various to be met again once they are large: a branch point with many
// yields only lists them, and is decided by itself (decider.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_map.hpp"

namespace xsift::sift {

struct BranchSet {
    int64_t members, members_end;      // in `pool`, ascending: yields, and ~ of edges that subs completed
    int64_t keys, counted, end;        // in `pool`: the keys that it completes, then the edges that are counted in order
    uint64_t hash;                     // a sum over the members
    uint64_t reported_at;              // the document in which its keys were reported last
    int32_t same_hash;
    int32_t edges;                     // the yield of the other edges that it completes, or NONE
    bool decided;                      // whether these are known
};

class BranchSets {
   public:
    enum : int32_t { EMPTY = 0, TOO_LARGE = -2 };
    static constexpr int64_t MOST_MEMBERS = 16;

    std::vector<BranchSet> sets;
    std::vector<int32_t> pool;
    int64_t made = 0;                  // since ever

    void restart() {
        sets.clear();
        pool.clear();
        moves.clear();
        by_hash.clear();
        sets.push_back(BranchSet{0, 0, 0, 0, 0, 0, 0, NONE, NONE, false});
    }

    // The set with one more member; TOO_LARGE if such sets are not kept.
    int32_t with(int32_t set, int32_t member) {
        const int32_t known = moves.get(pack(set, member), NONE);
        return known >= 0 ? known : make(set, member);
    }

    size_t bytes() const {
        return sets.capacity() * sizeof(BranchSet) + pool.capacity() * 4 + moves.bytes() + by_hash.bytes();
    }

   private:
    FlatMap<int32_t> moves;            // pack(set, member) -> set
    FlatMap<int32_t> by_hash;
    std::vector<int32_t> list;

    int32_t make(int32_t set, int32_t member) {
        const BranchSet from = sets[set];
        list.assign(pool.begin() + from.members, pool.begin() + from.members_end);
        const auto place = std::lower_bound(list.begin(), list.end(), member);
        int32_t target = set;
        if (place == list.end() || *place != member) {
            if (int64_t(list.size()) == MOST_MEMBERS) return TOO_LARGE;
            list.insert(place, member);
            target = intern(from.hash + (mix64(uint32_t(member)) >> 1));
        }
        moves.put(pack(set, member), target);
        return target;
    }

    int32_t intern(uint64_t hash) {
        const uint64_t key = hash >> 1;
        const int32_t first = by_hash.get(key, NONE);
        for (int32_t set = first; set >= 0; set = sets[set].same_hash)
            if (sets[set].members_end - sets[set].members == int64_t(list.size()) &&
                std::equal(list.begin(), list.end(), pool.begin() + sets[set].members))
                return set;
        const int64_t begin = int64_t(pool.size());
        pool.insert(pool.end(), list.begin(), list.end());
        sets.push_back(BranchSet{begin, int64_t(pool.size()), 0, 0, 0, hash, 0, first, NONE, false});
        ++made;
        by_hash.put(key, int32_t(sets.size()) - 1);
        return int32_t(sets.size()) - 1;
    }
};

}  // namespace xsift::sift
