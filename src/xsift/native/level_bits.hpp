// LevelSet, LevelBits: sets of document levels, as bits.
//
// Filtering asks again and again "at which levels of the open path is this so, and which of them lie k levels (or
// at least k levels) above those?". Documents are rarely deeper than 63 levels, so that a set is one 64-bit word and
// the question is a shift and an AND, however recursive the document. LevelBits keeps a set for each of many
// things: their first words side by side, and the words for deeper levels in a hash table that holds only those
// that are not 0, so that a document of any depth costs what it sets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flat_map.hpp"

namespace xsift {

inline uint64_t bits_up_to(int32_t bit) { return bit >= 63 ? ~0ULL : (2ULL << bit) - 1; }

class LevelSet;

class LevelBits {
    std::vector<uint64_t> low;  // levels 0 to 63
    FlatMap<uint64_t> high;     // pack(thing, word) -> levels 64 * word and on; never 0

   public:
    size_t bytes() const { return low.capacity() * sizeof(uint64_t) + high.bytes(); }

    // Makes room for things 0 to size - 1. What was set stays set.
    void grow(size_t size) {
        if (low.size() < size) low.resize(size, 0);
    }

    uint64_t word(int32_t thing, int32_t index) const {
        return index == 0 ? low[thing] : high.get(pack(thing, index), 0);
    }

    bool has(int32_t thing, int32_t level) const { return word(thing, level >> 6) >> (level & 63) & 1; }

    void put(int32_t thing, int32_t index, uint64_t bits) {
        if (index == 0)
            low[thing] = bits;
        else if (bits)
            high.put(pack(thing, index), bits);
        else
            high.erase(pack(thing, index));
    }

    void set(int32_t thing, int32_t level) {
        put(thing, level >> 6, word(thing, level >> 6) | 1ULL << (level & 63));
    }

    void clear(int32_t thing, int32_t level) {
        put(thing, level >> 6, word(thing, level >> 6) & ~(1ULL << (level & 63)));
    }

    void clear_up_to(int32_t thing, int32_t level) {
        for (int32_t index = 0; index < level >> 6; ++index) put(thing, index, 0);
        put(thing, level >> 6, word(thing, level >> 6) & ~bits_up_to(level & 63));
    }

    // Whether the thing has a level that is exactly, or (unbounded) at least, `least` above `level`.
    bool reaches(int32_t thing, int32_t level, int32_t least, bool unbounded) const {
        const int32_t top = level - least;
        if (top < 0) return false;
        if (top < 64) {
            const uint64_t bits = low[thing];  // mostly 0
            return bits && (bits & (unbounded ? bits_up_to(top) : 1ULL << top));
        }
        if (!unbounded) return has(thing, top);
        for (int32_t index = top >> 6; index > 0; --index)
            if (word(thing, index) & (index == top >> 6 ? bits_up_to(top & 63) : ~0ULL)) return true;
        return low[thing] & bits_up_to(top);
    }
};

// Levels 0 to 63 are in a word of its own, so that documents that are no deeper never touch the vector.
class LevelSet {
    uint64_t low = 0;
    std::vector<uint64_t> high;  // levels 64 and on; the last word is not 0

    size_t words() const { return high.empty() ? low != 0 : high.size() + 1; }
    uint64_t& word(size_t index) { return index == 0 ? low : high[index - 1]; }
    uint64_t word(size_t index) const { return index == 0 ? low : high[index - 1]; }

    void trim() {
        while (!high.empty() && high.back() == 0) high.pop_back();
    }

    void clear() {
        low = 0;
        high.clear();
    }

    void move_up(int32_t distance) {
        if (high.empty()) {
            low = distance < 64 ? low >> distance : 0;
            return;
        }
        const size_t skip = distance >> 6, size = words();
        const int shift = distance & 63;
        for (size_t i = 0; i < size; ++i) {
            uint64_t bits = i + skip < size ? word(i + skip) >> shift : 0;
            if (shift && i + skip + 1 < size) bits |= word(i + skip + 1) << (64 - shift);
            word(i) = bits;
        }
        trim();
    }

    // All levels that are exactly, or (unbounded) at least, `least` above one of the set.
    void move(int32_t least, bool unbounded) {
        if (!unbounded) return move_up(least);
        const int32_t top = highest() - least;
        if (top < 0) return clear();
        low = bits_up_to(top);
        high.assign(top >> 6, ~0ULL);
        if (!high.empty()) high.back() = bits_up_to(top & 63);
    }

   public:
    size_t bytes() const { return high.capacity() * sizeof(uint64_t); }
    bool empty() const { return low == 0 && high.empty(); }
    int32_t highest() const {
        const size_t size = words();
        return size == 0 ? -1 : static_cast<int32_t>(size) * 64 - 1 - __builtin_clzll(word(size - 1));
    }

    void only(int32_t level) {
        low = 0;
        high.clear();
        if (level >= 64) high.resize(level >> 6, 0);
        word(level >> 6) = 1ULL << (level & 63);
    }

    // The least level of the set that is at least `from`, or -1.
    int32_t next(int32_t from) const {
        for (size_t i = from >> 6; i < words(); ++i) {
            const uint64_t rest = i == static_cast<size_t>(from >> 6) ? word(i) & ~0ULL << (from & 63) : word(i);
            if (rest) return static_cast<int32_t>(i) * 64 + __builtin_ctzll(rest);
        }
        return -1;
    }

    // From the levels of something to those of a thing above it.
    void climb(const LevelBits& bits, int32_t thing, int32_t least, bool unbounded) {
        move(least, unbounded);
        keep(bits, thing);
    }

    // The same where any element will do: level 0, the document, is none.
    void climb_any(int32_t least, bool unbounded) {
        move(least, unbounded);
        low &= ~1ULL;
    }

    void keep(const LevelBits& bits, int32_t thing) {
        for (size_t i = 0; i < words(); ++i)
            if (word(i)) word(i) &= bits.word(thing, static_cast<int32_t>(i));
        trim();
    }

    void drop(const LevelBits& bits, int32_t thing) {
        for (size_t i = 0; i < words(); ++i)
            if (word(i)) word(i) &= ~bits.word(thing, static_cast<int32_t>(i));
        trim();
    }

    void set_in(LevelBits& bits, int32_t thing) const {
        for (size_t i = 0; i < words(); ++i)
            if (word(i)) bits.put(thing, static_cast<int32_t>(i), bits.word(thing, static_cast<int32_t>(i)) | word(i));
    }

    void clear_in(LevelBits& bits, int32_t thing) const {
        for (size_t i = 0; i < words(); ++i)
            if (word(i)) bits.put(thing, static_cast<int32_t>(i), bits.word(thing, static_cast<int32_t>(i)) & ~word(i));
    }
};

}  // namespace xsift
