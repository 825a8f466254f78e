// Situations: all that is behind conditions at an open element, as one number.
//
// What lies behind conditions is followed apart from the paths of names, state by state (plain_run.hpp), and mostly leads
// to something else in every document: a value of the root element is enough. But where documents come again and again, so
// do the states. Then it is kept where a step leads from a situation, and what is accepted there: a step is a name, or the
// conditions that hold for an element. An element costs a look-up or two then, however many states there would be to enter.
//
// A step is the same only if the situation, the path of names, and all conditions are: they are compared, not their hashes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "bytes_table.hpp"
#include "flat_map.hpp"
#include "known_paths.hpp"

namespace xsift::sift {

// Where a step leads.
struct Situation {
    uint64_t hash;                 // of the steps that lead here from where nothing is behind conditions
    uint64_t subjects;             // of the conditions that are asked for behind others, from this step on
    uint64_t seen_at;              // the document that it was met in last
    int32_t from;                  // the situation before the step
    int32_t by;                    // the name; or, of conditions, ~ of the number of their list,
    int32_t path;                  // and the known path of the element; NONE
    int32_t next_alike;            // with the same hash; NONE
    int32_t lead;                  // the situation after the step: this one, or NOTHING
    // In Situations::numbers, one after the other, where each of these lists begins:
    int32_t keys_at, acceptances_at, loops_at, end;
    bool adds;                     // states are to be followed, or conditions asked for, that were not before the step
    bool leads_below;              // a child may come to states behind conditions
};

class Situations {
   public:
    enum : int32_t {
        NOTHING = 0,                   // nothing is behind conditions
        UNKNOWN = NONE                 // it is not kept
    };
    static constexpr uint64_t FIRST_HASH = 0;  // of that

    std::vector<Situation> all;
    std::vector<int32_t> numbers;      // of keys, acceptances, loops

   private:
    static constexpr int64_t MOST_BYTES = int64_t(1) << 30;  // so that places in lists have 32 bits
    const int64_t most_bytes;
    FlatMap<int32_t> by_hash;          // -> in `all`
    // Conditions that hold together, as codes: the same are asked for in many situations.
    struct Held {
        int32_t begin, end;            // in `codes`
        int32_t next_alike;
    };
    std::vector<Held> held;
    std::vector<int32_t> codes;
    FlatMap<int32_t> held_by_hash;
    bool full = false;
    static constexpr int64_t LOOKED_AT = 16384;
    int64_t asked = 0, found = 0;      // steps since it was looked last if they are still met, and those that were known

   public:
    explicit Situations(int64_t most_bytes) : most_bytes(std::min(most_bytes, MOST_BYTES)) {}

    void clear() {
        by_hash.clear();
        numbers.clear();
        held_by_hash.clear();
        held.clear();
        codes.clear();
        all.assign(1, Situation{});
        full = most_bytes == 0;
    }

    // Whether no more can be kept, until all is forgotten.
    bool is_full() const { return full; }

    // When there is no room, what is kept is forgotten if it is not met any more; not before, for where more documents come
    // again than there is room for, none would be known when it comes.
    void make_room() {
        if (asked < LOOKED_AT) return;
        if (full && found < asked / 4) clear();
        asked = found = 0;
    }

    static uint64_t hash_of_name(uint64_t before, int32_t name) { return mix64(before + uint32_t(name) + 1) >> 1; }
    static uint64_t hash_of_held(const int32_t* codes, size_t number) {
        return hash_bytes(reinterpret_cast<const char*>(codes), number * sizeof(int32_t), process_salt()) >> 1;
    }
    static uint64_t hash_of_conditions(uint64_t before, int32_t path, uint64_t held) {
        return mix64(before ^ mix64(held + uint32_t(path))) >> 1;
    }

    // Where a step leads; NONE if that is not known.
    int32_t find(uint64_t hash, int32_t from, int32_t by, int32_t path) {
        ++asked;
        if (from == UNKNOWN) return NONE;
        int32_t at = by_hash.get(hash, NONE);
        while (at != NONE && (all[at].from != from || all[at].by != by || all[at].path != path)) at = all[at].next_alike;
        found += at != NONE;
        return at;
    }

    // Likewise, where conditions lead.
    int32_t find(uint64_t hash, int32_t from, const int32_t* of, size_t number, uint64_t hash_of_held, int32_t path) {
        const int32_t list = from != UNKNOWN ? find_held(hash_of_held, of, number) : NONE;
        return find(hash, list != NONE ? from : int32_t(UNKNOWN), ~list, path);
    }

    // The number of a list of conditions; NONE.
    int32_t find_held(uint64_t hash, const int32_t* of, size_t number) const {
        int32_t at = held_by_hash.get(hash, NONE);
        while (at != NONE && !(size_t(held[at].end - held[at].begin) == number &&
                               std::equal(of, of + number, codes.data() + held[at].begin)))
            at = held[at].next_alike;
        return at;
    }

    int32_t keep_held(uint64_t hash, const int32_t* of, size_t number) {
        const int32_t found = find_held(hash, of, number);
        if (found != NONE) return found;
        const int32_t begin = int32_t(codes.size());
        codes.insert(codes.end(), of, of + number);
        held.push_back(Held{begin, int32_t(codes.size()), held_by_hash.get(hash, NONE)});
        held_by_hash.put(hash, int32_t(held.size()) - 1);
        return int32_t(held.size()) - 1;
    }

    const int32_t* codes_of(int32_t number) const { return codes.data() + held[number].begin; }
    size_t number_of(int32_t number) const { return size_t(held[number].end - held[number].begin); }

    // One more. Its lists are the last of `numbers`.
    int32_t add(Situation made) {
        const int32_t number = int32_t(all.size());
        made.next_alike = by_hash.get(made.hash, NONE);
        made.end = int32_t(numbers.size());
        if (made.lead != NOTHING) made.lead = number;
        all.push_back(made);
        by_hash.put(made.hash, number);
        full = int64_t(used_bytes()) >= most_bytes;
        return number;
    }

    size_t bytes() const {
        return by_hash.bytes() + held_by_hash.bytes() + all.capacity() * sizeof(Situation) + held.capacity() * sizeof(Held) +
               (numbers.capacity() + codes.capacity()) * sizeof(int32_t);
    }

   private:
    size_t used_bytes() const {
        return by_hash.bytes() + held_by_hash.bytes() + all.size() * sizeof(Situation) + held.size() * sizeof(Held) +
               (numbers.size() + codes.size()) * sizeof(int32_t);
    }
};

}  // namespace xsift::sift
