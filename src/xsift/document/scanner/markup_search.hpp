// Finding the next byte that matters, 16 or 32 bytes at a time.
//
// The naive way looks at each byte through a table, as expat does. Nearly all bytes of text and of attribute values do
// not matter. What does: up to three characters that end the run, control characters (of which XML allows three), and
// bytes beyond ASCII, whose UTF-8 must be checked. As signed bytes the last two are simply those below 0x20.
//
// SSE2 is part of every x86-64; AVX2 is chosen at run time for runs that are longer than one block, unless the environment
// has XSIFT_NO_AVX2. Elsewhere the compiler's own vectors are used, which become NEON on ARM; so they are everywhere if
// XSIFT_PORTABLE is defined.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && !defined(XSIFT_PORTABLE)
#define XSIFT_X86 1
#include <immintrin.h>
#endif

namespace xsift {

// What ends a run: any of a, b, c, a byte beyond ASCII, and a control character other than the allowed ones.
struct Stops {
    char a, b, c;
    char allowed1, allowed2, allowed3;

    bool at(char byte) const {
        if (byte == a || byte == b || byte == c) return true;
        return static_cast<signed char>(byte) < 0x20 && byte != allowed1 && byte != allowed2 && byte != allowed3;
    }
};
inline constexpr Stops TEXT_STOPS{'<', '&', ']', '\t', '\n', '\n'};
inline constexpr Stops CDATA_STOPS{']', ']', ']', '\t', '\n', '\n'};
inline constexpr Stops COMMENT_STOPS{'-', '-', '-', '\t', '\n', '\r'};
inline constexpr Stops INSTRUCTION_STOPS{'?', '?', '?', '\t', '\n', '\r'};

inline constexpr Stops DOUBLE_QUOTED_STOPS{'"', '<', '&', '"', '"', '"'};
inline constexpr Stops SINGLE_QUOTED_STOPS{'\'', '<', '&', '\'', '\'', '\''};

#ifdef XSIFT_X86

// Bit i is set if byte i is a stop.
inline uint32_t stops_in_16(const char* p, const Stops& stops) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto is = [bytes](char c) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); };
    const __m128i ends = _mm_or_si128(_mm_or_si128(is(stops.a), is(stops.b)), is(stops.c));
    const __m128i allowed = _mm_or_si128(_mm_or_si128(is(stops.allowed1), is(stops.allowed2)), is(stops.allowed3));
    const __m128i low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
    return uint32_t(_mm_movemask_epi8(_mm_or_si128(ends, _mm_andnot_si128(allowed, low))));
}

// Bit i is set if byte i is no ASCII character of names; a colon is none.
inline uint32_t name_ends_in_16(const char* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto between = [](__m128i x, char low, char high) {
        return _mm_and_si128(_mm_cmpgt_epi8(x, _mm_set1_epi8(char(low - 1))),
                             _mm_cmplt_epi8(x, _mm_set1_epi8(char(high + 1))));
    };
    const __m128i letters = between(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 'z');
    const __m128i digits = between(bytes, '0', '9');
    const __m128i marks = _mm_or_si128(between(bytes, '-', '.'), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('_')));
    return uint32_t(_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letters, digits), marks))) ^ 0xFFFFu;
}

__attribute__((target("avx2"))) inline const char* skip_blocks_avx2(const char* p, const char* end,
                                                                    const Stops& stops) {
    const __m256i a = _mm256_set1_epi8(stops.a), b = _mm256_set1_epi8(stops.b), c = _mm256_set1_epi8(stops.c);
    const __m256i allowed1 = _mm256_set1_epi8(stops.allowed1), allowed2 = _mm256_set1_epi8(stops.allowed2),
                  allowed3 = _mm256_set1_epi8(stops.allowed3), space = _mm256_set1_epi8(0x20);
    for (; end - p >= 32; p += 32) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        const __m256i ends = _mm256_or_si256(_mm256_or_si256(_mm256_cmpeq_epi8(bytes, a), _mm256_cmpeq_epi8(bytes, b)),
                                             _mm256_cmpeq_epi8(bytes, c));
        const __m256i allowed =
            _mm256_or_si256(_mm256_or_si256(_mm256_cmpeq_epi8(bytes, allowed1), _mm256_cmpeq_epi8(bytes, allowed2)),
                            _mm256_cmpeq_epi8(bytes, allowed3));
        const __m256i low = _mm256_cmpgt_epi8(space, bytes);
        const uint32_t found =
            uint32_t(_mm256_movemask_epi8(_mm256_or_si256(ends, _mm256_andnot_si256(allowed, low))));
        if (found) return p + __builtin_ctz(found);
    }
    return p;
}

inline const char* skip_blocks_sse2(const char* p, const char* end, const Stops& stops) {
    for (; end - p >= 16; p += 16)
        if (const uint32_t found = stops_in_16(p, stops)) return p + __builtin_ctz(found);
    return p;
}

// Both stop at a stop, or where less than a block is left.
using SkipBlocks = const char* (*)(const char* p, const char* end, const Stops& stops);
inline const bool has_avx2 = __builtin_cpu_supports("avx2") && !std::getenv("XSIFT_NO_AVX2");
inline const SkipBlocks skip_blocks = has_avx2 ? skip_blocks_avx2 : skip_blocks_sse2;

#else

typedef signed char Bytes16 __attribute__((vector_size(16)));

// Where the first byte is whose mask is set, or 16. Each byte of the mask is 0 or -1.
inline size_t first_set(Bytes16 mask) {
    uint64_t half[2];
    std::memcpy(half, &mask, 16);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (half[0]) return size_t(__builtin_ctzll(half[0])) / 8;
    return half[1] ? 8 + size_t(__builtin_ctzll(half[1])) / 8 : 16;
#else
    if (half[0]) return size_t(__builtin_clzll(half[0])) / 8;
    return half[1] ? 8 + size_t(__builtin_clzll(half[1])) / 8 : 16;
#endif
}

inline const char* skip_blocks(const char* p, const char* end, const Stops& stops) {
    for (; end - p >= 16; p += 16) {
        Bytes16 bytes;
        std::memcpy(&bytes, p, 16);
        const Bytes16 ends = (bytes == static_cast<signed char>(stops.a)) | (bytes == static_cast<signed char>(stops.b)) |
                             (bytes == static_cast<signed char>(stops.c));
        const Bytes16 allowed = (bytes == static_cast<signed char>(stops.allowed1)) |
                                (bytes == static_cast<signed char>(stops.allowed2)) |
                                (bytes == static_cast<signed char>(stops.allowed3));
        const size_t found = first_set(ends | ((bytes < static_cast<signed char>(0x20)) & ~allowed));
        if (found < 16) return p + found;
    }
    return p;
}

#endif

// The first stop from `p` on, or `end`.
inline const char* find_stop(const char* p, const char* end, const Stops& stops) {
#ifdef XSIFT_X86
    if (end - p >= 16) {
        // Most runs are short: the first block is looked at in place, without a call.
        if (const uint32_t found = stops_in_16(p, stops)) return p + __builtin_ctz(found);
        p = skip_blocks(p + 16, end, stops);
        p = skip_blocks_sse2(p, end, stops);
    }
#else
    p = skip_blocks(p, end, stops);
#endif
    while (p != end && !stops.at(*p)) ++p;
    return p;
}

}  // namespace xsift
