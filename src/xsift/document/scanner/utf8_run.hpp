// Text beyond ASCII, 32 bytes at a time: checks UTF-8 while it looks for the next stop.
//
// The naive way decodes character by character, and waits for each before it knows where the next one is. Here three table
// look-ups on each pair of bytes find all errors in a block at once: the algorithm of Keiser and Lemire, "Validating UTF-8 in
// less than one instruction per byte" (Software: Practice and Experience 51, 2021), with U+FFFE and U+FFFF, which XML
// excludes, added. It needs AVX2; elsewhere characters are decoded.
#pragma once
#include "markup_search.hpp"

namespace xsift {

#ifdef XSIFT_X86

namespace utf8 {

// What two bytes in a row may be wrong about. A bit that all three tables give is an error.
enum : uint8_t {
    TOO_SHORT = 1 << 0,      // a first byte, then none that continues
    TOO_LONG = 1 << 1,       // ASCII, then one that continues
    OVERLONG_3 = 1 << 2,
    TOO_LARGE = 1 << 3,
    SURROGATE = 1 << 4,
    OVERLONG_2 = 1 << 5,
    TOO_LARGE_1000 = 1 << 6,
    OVERLONG_4 = 1 << 6,
    TWO_CONTINUE = 1 << 7,   // right or wrong: the third and fourth byte of a character do
    CARRY = TOO_SHORT | TOO_LONG | TWO_CONTINUE,
    LARGE = CARRY | TOO_LARGE | TOO_LARGE_1000,
};

inline constexpr uint8_t FIRST_HIGH[16] = {
    TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
    TWO_CONTINUE, TWO_CONTINUE, TWO_CONTINUE, TWO_CONTINUE,
    TOO_SHORT | OVERLONG_2, TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE,
    TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4};
inline constexpr uint8_t FIRST_LOW[16] = {
    CARRY | OVERLONG_3 | OVERLONG_2 | OVERLONG_4, CARRY | OVERLONG_2, CARRY, CARRY, CARRY | TOO_LARGE,
    LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE | SURROGATE, LARGE, LARGE};
inline constexpr uint8_t SECOND_HIGH[16] = {
    TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
    TOO_LONG | OVERLONG_2 | TWO_CONTINUE | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4,
    TOO_LONG | OVERLONG_2 | TWO_CONTINUE | OVERLONG_3 | TOO_LARGE,
    TOO_LONG | OVERLONG_2 | TWO_CONTINUE | SURROGATE | TOO_LARGE,
    TOO_LONG | OVERLONG_2 | TWO_CONTINUE | SURROGATE | TOO_LARGE,
    TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT};

}  // namespace utf8

// Moves from the start of a character to the next stop (which is no character beyond ASCII here), or as far as whole blocks
// are right. What it moves over is valid; it ends at the start of a character.
__attribute__((target("avx2"))) inline const char* skip_valid_avx2(const char* p, const char* end, const Stops& stops) {
    const __m256i first_high = _mm256_broadcastsi128_si256(*reinterpret_cast<const __m128i_u*>(utf8::FIRST_HIGH)),
                  first_low = _mm256_broadcastsi128_si256(*reinterpret_cast<const __m128i_u*>(utf8::FIRST_LOW)),
                  second_high = _mm256_broadcastsi128_si256(*reinterpret_cast<const __m128i_u*>(utf8::SECOND_HIGH));
    const __m256i nibble = _mm256_set1_epi8(0x0F), top = _mm256_set1_epi8(char(0x80)), zero = _mm256_setzero_si256();
    const char* const start = p;
    __m256i before = zero;
    for (; end - p >= 32; p += 32) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        const __m256i straddling = _mm256_permute2x128_si256(before, bytes, 0x21);
        const __m256i back1 = _mm256_alignr_epi8(bytes, straddling, 15), back2 = _mm256_alignr_epi8(bytes, straddling, 14),
                      back3 = _mm256_alignr_epi8(bytes, straddling, 13);
        const __m256i pairs = _mm256_and_si256(
            _mm256_and_si256(
                _mm256_shuffle_epi8(first_high, _mm256_and_si256(_mm256_srli_epi16(back1, 4), nibble)),
                _mm256_shuffle_epi8(first_low, _mm256_and_si256(back1, nibble))),
            _mm256_shuffle_epi8(second_high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble)));
        const __m256i third_or_fourth = _mm256_and_si256(
            _mm256_or_si256(_mm256_subs_epu8(back2, _mm256_set1_epi8(char(0xE0 - 0x80))),
                            _mm256_subs_epu8(back3, _mm256_set1_epi8(char(0xF0 - 0x80)))),
            top);
        // EF BF BE and EF BF BF are U+FFFE and U+FFFF.
        const __m256i excluded = _mm256_and_si256(
            _mm256_and_si256(_mm256_cmpeq_epi8(back2, _mm256_set1_epi8(char(0xEF))),
                             _mm256_cmpeq_epi8(back1, _mm256_set1_epi8(char(0xBF)))),
            _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, _mm256_set1_epi8(char(0xBE))), bytes));
        const __m256i wrong = _mm256_or_si256(_mm256_xor_si256(third_or_fourth, pairs), excluded);
        const uint32_t errors = ~uint32_t(_mm256_movemask_epi8(_mm256_cmpeq_epi8(wrong, zero)));

        const auto is = [bytes](char c) __attribute__((target("avx2"))) {
            return _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(c));
        };
        const __m256i ends = _mm256_or_si256(_mm256_or_si256(is(stops.a), is(stops.b)), is(stops.c));
        const __m256i allowed = _mm256_or_si256(_mm256_or_si256(is(stops.allowed1), is(stops.allowed2)), is(stops.allowed3));
        const __m256i low = _mm256_andnot_si256(_mm256_cmpgt_epi8(zero, bytes),
                                                _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), bytes));
        const uint32_t found = uint32_t(_mm256_movemask_epi8(_mm256_or_si256(ends, _mm256_andnot_si256(allowed, low))));
        if (found) {
            // A character that is cut short by the stop is an error at the stop.
            const int at = __builtin_ctz(found);
            if (!(errors & (0xFFFFFFFFu >> (31 - at)))) return p + at;
        }
        if (found | errors) break;
        before = bytes;
    }
    // Back to the start of the character that the last good block ends in, which may be complete: up to four bytes.
    for (int i = 0; i < 4 && p != start && static_cast<signed char>(p[-1]) < 0; ++i) {
        --p;
        if ((static_cast<unsigned char>(*p) & 0xC0) == 0xC0) break;
    }
    return p;
}

#endif

// The same, where there is AVX2; else it stays where it is.
inline const char* skip_valid(const char* p, const char* end, const Stops& stops) {
#ifdef XSIFT_X86
    if (has_avx2 && end - p >= 32) return skip_valid_avx2(p, end, stops);
#endif
    return p;
}

}  // namespace xsift
