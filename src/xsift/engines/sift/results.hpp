// Results: the keys that matched in a document, as bits.
//
// They are set in any order, often more than once, and read in ascending order. Blocks of words that have none are
// passed over.
#pragma once
#include <cstdint>
#include <vector>

#include "bits.hpp"

namespace xsift::sift {

class Results {
    static constexpr size_t BLOCK = 64;            // words that are looked through together
    static constexpr int64_t FEW_PATTERNS = 4096;  // one document may match all of so many

    std::vector<uint64_t> bits;        // by key
    std::vector<uint8_t> blocks;       // by BLOCK words of `bits`: some are not zero
    std::vector<int32_t> found;        // room for all keys
    bool counts_down = false;          // whether `undecided` is kept: only if it may reach 0
    int64_t undecided = 0;             // patterns that have not matched yet

    void mark_first(int32_t key) {
        const uint64_t bit = uint64_t(1) << (key & 63);
        undecided -= (bits[key >> 6] & bit) == 0;
        bits[key >> 6] |= bit;
        blocks[key >> 12] = 1;
    }

   public:
    // For an index with so many numbers for keys.
    void resize(size_t keys) {
        const size_t number = (keys + 64 * BLOCK - 1) / (64 * BLOCK);
        bits.resize(number * BLOCK, 0);
        blocks.resize(number, 0);
        found.resize(keys + SLACK);
    }

    // For a document, which may match so many patterns.
    void begin(int64_t patterns) {
        undecided = patterns;
        counts_down = undecided <= FEW_PATTERNS;
    }

    bool all_matched() const { return undecided == 0; }

    void mark(int32_t key) { mark(&key, &key + 1); }

    void mark(const int32_t* key, const int32_t* end) {
        if (counts_down) {
            for (; key != end; ++key) mark_first(*key);
            return;
        }
        uint64_t* const words = bits.data();
        uint8_t* const flags = blocks.data();
        for (; key != end; ++key) {
            words[*key >> 6] |= uint64_t(1) << (*key & 63);
            flags[*key >> 12] = 1;
        }
    }

    // Calls use(begin, end) for the keys that matched, ascending, and forgets them.
    template <class Use>
    void take(Use&& use) {
        int32_t* end = found.data();
        for (size_t block = 0; block < blocks.size(); ++block) {
            if (!blocks[block]) continue;
            blocks[block] = 0;
            end = take_bits(bits.data() + block * BLOCK, BLOCK, int32_t(block * BLOCK * 64), end);
        }
        use(found.data(), end);
    }

    size_t bytes() const { return bits.capacity() * 8 + blocks.capacity() + found.capacity() * 4; }
};

}  // namespace xsift::sift
