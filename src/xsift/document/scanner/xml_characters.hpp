// Which bytes and characters XML 1.0 allows where, as libexpat takes it: names of the fourth edition, UTF-8 without
// surrogates, overlong forms, U+FFFE and U+FFFF. The test beside it asks expat about every character.
#pragma once
#include <cstddef>
#include <cstdint>

#include "characters.hpp"

namespace xsift {

// Classes of ASCII characters. Bits of one byte; a byte beyond ASCII has none.
enum ByteClass : uint8_t {
    BYTE_NAME_START = 1,
    BYTE_NAME = 2,   // without the colon, which divides names
    BYTE_SPACE = 4,
    BYTE_PUBLIC = 8,  // in public identifiers
};

struct ByteClasses {
    uint8_t of[256] = {};

    constexpr ByteClasses() {
        for (int c = 'a'; c <= 'z'; ++c) of[c] = of[c - 32] = BYTE_NAME_START | BYTE_NAME | BYTE_PUBLIC;
        for (int c = '0'; c <= '9'; ++c) of[c] = BYTE_NAME | BYTE_PUBLIC;
        of[int('_')] = BYTE_NAME_START | BYTE_NAME | BYTE_PUBLIC;
        of[int('-')] = of[int('.')] = BYTE_NAME | BYTE_PUBLIC;
        for (const char* c = "'()+,/:=?;!*#@$%"; *c; ++c) of[int(*c)] |= BYTE_PUBLIC;
        of[int(' ')] = of[int('\n')] = of[int('\r')] = BYTE_SPACE | BYTE_PUBLIC;
        of[int('\t')] = BYTE_SPACE;
    }
};
inline constexpr ByteClasses BYTE_CLASSES;

inline bool is_class(char c, uint8_t classes) { return BYTE_CLASSES.of[static_cast<unsigned char>(c)] & classes; }
inline bool is_space(char c) { return is_class(c, BYTE_SPACE); }

// The characters beyond ASCII that names may have; none beyond U+FFFF.
class NameCharacters {
    uint64_t starts[1024] = {}, others[1024] = {};

    template <size_t number>
    static void fill(uint64_t* bits, const CharacterRange (&ranges)[number]) {
        for (const CharacterRange& range : ranges)
            for (uint32_t c = range.first; c <= range.last; ++c) bits[c >> 6] |= uint64_t(1) << (c & 63);
    }

    NameCharacters() {
        fill(starts, NAME_START_RANGES);
        fill(others, NAME_RANGES);
    }

   public:
    static bool allow(uint32_t c, bool start) {
        static const NameCharacters characters;  // made when a document first has such a name
        const uint64_t* const bits = start ? characters.starts : characters.others;
        return c < 0x10000 && (bits[c >> 6] >> (c & 63) & 1);
    }
};

enum : int { CHARACTER_INVALID = 0, CHARACTER_INCOMPLETE = -1 };

// How many bytes the character at `p` has, which is beyond ASCII; or one of the two above.
inline int character_length(const char* p, const char* end) {
    const unsigned char* u = reinterpret_cast<const unsigned char*>(p);
    const ptrdiff_t left = end - p;
    const auto continues = [u](int i) { return (u[i] & 0xC0) == 0x80; };
    if (u[0] < 0xC2 || u[0] > 0xF4) return CHARACTER_INVALID;
    if (u[0] < 0xE0) return left < 2 ? CHARACTER_INCOMPLETE : continues(1) ? 2 : CHARACTER_INVALID;
    if (u[0] < 0xF0) {
        if (left < 3) return CHARACTER_INCOMPLETE;
        if (!continues(1) || !continues(2)) return CHARACTER_INVALID;
        if (u[0] == 0xE0 && u[1] < 0xA0) return CHARACTER_INVALID;                 // overlong
        if (u[0] == 0xED && u[1] > 0x9F) return CHARACTER_INVALID;                 // surrogates
        if (u[0] == 0xEF && u[1] == 0xBF && u[2] > 0xBD) return CHARACTER_INVALID;  // U+FFFE, U+FFFF
        return 3;
    }
    if (left < 4) return CHARACTER_INCOMPLETE;
    if (!continues(1) || !continues(2) || !continues(3)) return CHARACTER_INVALID;
    if (u[0] == 0xF0 && u[1] < 0x90) return CHARACTER_INVALID;
    if (u[0] == 0xF4 && u[1] > 0x8F) return CHARACTER_INVALID;
    return 4;
}

// The character of a sequence that character_length() found to have 2 or 3 bytes.
inline uint32_t short_character(const char* p, int length) {
    const unsigned char* u = reinterpret_cast<const unsigned char*>(p);
    if (length == 2) return (u[0] & 0x1Fu) << 6 | (u[1] & 0x3Fu);
    return (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
}

// Whether a reference may name the character.
inline bool may_be_referred_to(uint32_t c) {
    if (c < 0x20) return c == '\t' || c == '\n' || c == '\r';
    return c < 0xD800 || (c >= 0xE000 && c < 0xFFFE) || (c >= 0x10000 && c < 0x110000);
}

// Writes a character in UTF-8; returns the number of bytes, at most 4.
inline int write_character(uint32_t c, char* to) {
    if (c < 0x80) {
        to[0] = char(c);
        return 1;
    }
    const int length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; --i, c >>= 6) to[i] = char(0x80 | (c & 0x3F));
    to[0] = char((length == 2 ? 0xC0 : length == 3 ? 0xE0 : 0xF0) | c);
    return length;
}

}  // namespace xsift
