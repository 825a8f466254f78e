// Reading sets of bits: the numbers of the bits that are set, ascending.
//
// The naive loop, one bit after the other until the word is zero, mispredicts its end at nearly every word. Here eight numbers
// are written for each word, right or wrong, and the place to write moves on by as many as there were: so room for
// SLACK more numbers than there are bits is needed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace xsift {

constexpr size_t SLACK = 8;

// Counting bits is one instruction on nearly every processor, but compilers may use it only where they are told.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define XSIFT_WITH_POPCNT __attribute__((target_clones("popcnt", "default")))
#else
#define XSIFT_WITH_POPCNT
#endif

// Writes the numbers of the bits in some words, the first of which is bit `base`, and clears them. Returns where it stopped.
XSIFT_WITH_POPCNT static int32_t* take_bits(uint64_t* words, size_t count, int32_t base, int32_t* to) {
    constexpr uint64_t SENTINEL = uint64_t(1) << 63;  // zero has no lowest bit; what is written for it does not count
    for (size_t i = 0; i < count; ++i, base += 64) {
        uint64_t word = words[i];
        if (word == 0) continue;
        words[i] = 0;
        const int number = __builtin_popcountll(word);
        for (int j = 0; j < 8; ++j) {
            to[j] = base + __builtin_ctzll(word | SENTINEL);
            word &= word - 1;
        }
        for (int j = 8; j < number; ++j) {
            to[j] = base + __builtin_ctzll(word);
            word &= word - 1;
        }
        to += number;
    }
    return to;
}

}  // namespace xsift
