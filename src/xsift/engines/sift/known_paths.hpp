// KnownPaths: which states of the automaton the paths of names lead to that were met before.
//
// A path is the names of an element and of those around it. Even where no two documents are alike, most of their paths
// are of a kind that was met before. To make one state of all that a path leads to (lazy_dfa.hpp) pays only if it is met
// many times again, for sets have to be found among others. To keep a list costs little more than to come by it: the run
// has it at hand. So that is kept, from the second time on that a path is met, in a tree: a path is known by the one
// above it and a name. Names that lead nowhere, and all that is below them, are one path, for what is there depends on
// the loops around them alone.
//
// What a condition leads to from the states of a path is kept, too, once it held there.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "flat_automaton.hpp"
#include "flat_map.hpp"

namespace xsift::sift {

// A state that names lead on from.
struct Active {
    uint64_t names;                // as in FlatState
    Target star;
    int32_t name;
    Target target;
};

// A part of a list.
struct Span {
    int32_t begin, end;
    int32_t size() const { return end - begin; }
    bool is_empty() const { return begin == end; }
};

// What is looked at when a path is met again: one line of memory.
struct alignas(64) KnownPath {
    uint64_t subjects;             // of the conditions that states lead on by
    uint64_t seen_at;              // the document that it was met in last,
    int32_t visits;                // and the last of its visits there, if they are noted; NONE
    int32_t lead;                  // paths below are known by this one: itself, or `rest` of the one above
    Span active;                   // in KnownPaths::active
    // In KnownPaths::numbers, one after the other, where each of these lists begins:
    int32_t conditional_at, loops_at, noted_loops_at, acceptances_at, keys_at, end;
    int32_t name;                  // its last
    bool is_barren;                // no name leads on from an element, or from what is below
    bool is_dead;                  // nor does any condition, and nothing is accepted

    Span conditional() const { return Span{conditional_at, loops_at}; }
    Span loops() const { return Span{loops_at, noted_loops_at}; }
    Span noted_loops() const { return Span{noted_loops_at, acceptances_at}; }
    Span acceptances() const { return Span{acceptances_at, keys_at}; }
    Span keys() const { return Span{keys_at, end}; }
};
static_assert(sizeof(KnownPath) == 64);

class KnownPaths {
   public:
    enum : int32_t { FIRST = 0 };  // the empty path: the document's

    // What is asked when one is left.
    struct Names {
        uint64_t hash;             // of the names
        int32_t rest;              // the path of a name that leads nowhere, and of all below it; NONE until there is one
    };

    std::vector<KnownPath> paths;
    std::vector<Names> names;      // by path
    // What they lead to:
    std::vector<Active> active;
    std::vector<int32_t> numbers;  // of conditions, loops, acceptances, keys
    // What a condition leads to from a path: keys first, each as a Target.
    struct Behind {
        uint64_t seen_at;          // the document that it held in last
        int32_t keys_at, others_at, end;  // in `targets`
    };
    std::vector<Behind> behind;    // the first one is empty
    std::vector<Target> targets;

   private:
    static constexpr int64_t MOST_BYTES = int64_t(1) << 30;  // so that places in lists have 32 bits
    const int64_t most_bytes;
    FlatMap<int32_t> below;        // pack(path, name) -> path
    FlatMap<int32_t> behind_of;    // pack(path, condition) -> in `behind`
    bool full = false;

   public:
    explicit KnownPaths(int64_t most_bytes) : most_bytes(std::min(most_bytes, MOST_BYTES)) {}

    void clear() {
        below.clear();
        paths.clear();
        names.clear();
        active.clear();
        numbers.clear();
        behind_of.clear();
        behind.assign(1, Behind{0, 0, 0, 0});
        targets.clear();
        add(KnownPath{}, 0);
    }

    // Whether no more can be kept, until all is forgotten.
    bool is_full() const { return full; }

    int32_t find(int32_t above, int32_t name) const { return below.get(pack(above, name), NONE); }

    // One more path, with the hash of its names.
    int32_t add(KnownPath path, uint64_t hash) {
        const int32_t number = int32_t(paths.size());
        if (path.lead == NONE) path.lead = number;
        paths.push_back(path);
        names.push_back(Names{hash, NONE});
        full = int64_t(used_bytes()) >= most_bytes;
        return number;
    }

    void put(int32_t above, int32_t name, int32_t path) { below.put(pack(above, name), path); }

    // The path of a name that leads nowhere from one, whatever it is.
    int32_t rest_of(int32_t above, bool is_barren) {
        if (names[above].rest != NONE) return names[above].rest;
        KnownPath path{};
        path.lead = path.visits = NONE;
        path.is_barren = path.is_dead = is_barren;
        const int32_t made = add(path, rest_hash(names[above].hash));
        return names[made].rest = names[above].rest = made;
    }

    // What is behind a condition, as a number of `behind`; NONE if it is not known.
    int32_t find_behind(int32_t path, int32_t condition) const { return behind_of.get(pack(path, condition), NONE); }

    // Asks for the memory that this will need.
    void prefetch_behind(int32_t path, int32_t condition) const { behind_of.prefetch(pack(path, condition)); }

    // Keeps it: the last of `targets`, from a place on. Those before another place are keys.
    int32_t keep_behind(int32_t path, int32_t condition, size_t keys_at, size_t others_at) {
        int32_t number = 0;
        if (keys_at != targets.size()) {
            number = int32_t(behind.size());
            behind.push_back(Behind{0, int32_t(keys_at), int32_t(others_at), int32_t(targets.size())});
        }
        behind_of.put(pack(path, condition), number);
        full = int64_t(used_bytes()) >= most_bytes;
        return number;
    }

    // The hash of `rest` of a path. That of `rest` itself is the same.
    static uint64_t rest_hash(uint64_t hash) { return hash | 1; }
    static uint64_t hash_below(uint64_t hash, int32_t name) { return mix64(hash * 31 + uint32_t(name) + 1) & ~uint64_t(1); }

    size_t used_bytes() const {
        return below.bytes() + paths.size() * sizeof(KnownPath) + names.size() * sizeof(Names) +
               active.size() * sizeof(Active) + numbers.size() * sizeof(int32_t) +
               behind_of.bytes() + behind.size() * sizeof(Behind) + targets.size() * sizeof(Target);
    }

    size_t bytes() const {
        return below.bytes() + paths.capacity() * sizeof(KnownPath) + names.capacity() * sizeof(Names) +
               active.capacity() * sizeof(Active) + numbers.capacity() * sizeof(int32_t) +
               behind_of.bytes() + behind.capacity() * sizeof(Behind) + targets.capacity() * sizeof(Target);
    }
};

}  // namespace xsift::sift
