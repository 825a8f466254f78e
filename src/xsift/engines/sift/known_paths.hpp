// KnownPaths: which states of the automaton the paths of names lead to that were met before.
//
// A path is the names of an element and of those around it. Even where no two documents are alike, most of their paths
// are of a kind that was met before. To make one state of all that a path leads to (lazy_dfa.hpp) pays only if it is met
// many times again, for sets have to be found among others. To keep a list costs little more than to come by it: the run
// has it at hand. So that is kept, from the second time on that a path is met, in a tree: a path is known by the one
// above it and a name. What conditions lead to is not.
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
    bool is_empty() const { return begin == end; }
};

struct KnownPath {
    uint64_t hash;                 // of the names
    uint64_t subjects;             // of the conditions that states lead on by
    uint64_t seen_at;              // the document that it was met in last,
    int32_t visits;                // and the last of its visits there, if they are noted
    bool is_barren;                // no name leads on from an element below
    bool is_dead;                  // nor does any condition, and nothing is accepted
    Span active, conditional, loops, noted_loops, keys, acceptances;
};

class KnownPaths {
    FlatMap<int32_t> below;        // pack(path, name) -> path
    const int64_t most_bytes;
    bool full = false;

    template <class Item, class From>
    static Span append(std::vector<Item>& list, From begin, From end) {
        const int32_t first = int32_t(list.size());
        list.insert(list.end(), begin, end);
        return Span{first, int32_t(list.size())};
    }

   public:
    enum : int32_t { FIRST = 0 };  // the empty path: the document's
    static constexpr int64_t MOST_BYTES = int64_t(1) << 30;  // so that places in lists have 32 bits

    std::vector<KnownPath> paths;
    // What they lead to:
    std::vector<Active> active;
    std::vector<int32_t> numbers;  // of conditions, loops, keys, acceptances

    explicit KnownPaths(int64_t most_bytes) : most_bytes(std::min(most_bytes, MOST_BYTES)) {}

    void clear() {
        below.clear();
        paths.clear();
        active.clear();
        numbers.clear();
        paths.push_back(KnownPath{});
        full = false;
    }

    // Whether no more can be kept, until all is forgotten.
    bool is_full() const { return full; }

    int32_t find(int32_t above, int32_t name) const { return below.get(pack(above, name), NONE); }

    // One more path, of which the rest is to be filled in.
    int32_t add(int32_t above, int32_t name, const KnownPath& path) {
        const int32_t number = int32_t(paths.size());
        paths.push_back(path);
        below.put(pack(above, name), number);
        full = int64_t(bytes()) >= most_bytes;
        return number;
    }

    Span keep(const Active* begin, const Active* end) { return append(active, begin, end); }
    Span keep(const int32_t* begin, const int32_t* end) { return append(numbers, begin, end); }

    size_t bytes() const {
        return below.bytes() + paths.capacity() * sizeof(KnownPath) + active.capacity() * sizeof(Active) +
               numbers.capacity() * sizeof(int32_t);
    }
};

}  // namespace xsift::sift
