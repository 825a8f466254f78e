// XPath's string functions, as libxml2 computes them: for values that are known beforehand, for conditions over
// transformed values, and for the evaluator.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "number.hpp"

namespace xsift {

// Whether a text contains another. The empty text, which may have no place in memory, is in every one.
inline bool is_in(std::string_view what, std::string_view where) {
    return what.empty() || (!where.empty() && memmem(where.data(), where.size(), what.data(), what.size()) != nullptr);
}

// The number of bytes of a character of valid UTF-8.
inline size_t character_size(char first) {
    const unsigned char c = static_cast<unsigned char>(first);
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

inline double nearest(double value) {
    const double down = std::floor(value);
    return value - down >= 0.5 ? down + 1 : down;
}

// substring(): positions are rounded, and count characters from 1.
inline std::string_view substring(std::string_view text, double from, bool has_length, double length) {
    constexpr double MOST = std::numeric_limits<int>::max();
    const double start = nearest(from);
    int64_t first = 1, end = int64_t(MOST);
    if (!(start < MOST)) first = int64_t(MOST);  // NaN too
    else if (start >= 1) first = int64_t(start);
    if (has_length) {
        const double stop = start + nearest(length);
        if (!(stop >= 1)) end = 1;
        else if (stop < MOST) end = int64_t(stop);
    }
    if (first >= end) return {};
    size_t begin = 0;
    for (int64_t i = 1; i < first && begin < text.size(); ++i) begin += character_size(text[begin]);
    if (begin >= text.size()) return {};
    size_t stop = begin;
    for (int64_t i = first; i < end && stop < text.size(); ++i) stop += character_size(text[stop]);
    return text.substr(begin, stop - begin);
}

// substring-before() and substring-after().
inline std::string_view divide(std::string_view text, std::string_view mark, bool before) {
    const size_t place = mark.empty() ? 0 : text.find(mark);
    if (place == text.npos) return {};
    return before ? text.substr(0, place) : text.substr(place + mark.size());
}

// translate() with its second and third argument.
class Translation {
    bool is_ascii = true;
    unsigned char table[128];  // what becomes of an ASCII character; LEFT_OUT: nothing
    std::unordered_map<std::string_view, std::string_view> characters;  // if some argument is not ASCII
    static constexpr unsigned char LEFT_OUT = 255;

   public:
    // The arguments must live as long as the translation.
    Translation(std::string_view from, std::string_view to) {
        for (const char c : from) is_ascii = is_ascii && static_cast<unsigned char>(c) < 0x80;
        for (const char c : to) is_ascii = is_ascii && static_cast<unsigned char>(c) < 0x80;
        if (is_ascii) {
            for (int c = 0; c < 128; ++c) table[c] = static_cast<unsigned char>(c);
            for (size_t i = from.size(); i-- > 0;) {  // of two that are given the first counts
                const unsigned char becomes = i < to.size() ? static_cast<unsigned char>(to[i]) : LEFT_OUT;
                table[static_cast<unsigned char>(from[i])] = becomes;
            }
            return;
        }
        size_t target = 0;
        for (size_t at = 0; at < from.size();) {
            const size_t size = character_size(from[at]);
            const size_t target_size = target < to.size() ? character_size(to[target]) : 0;
            characters.emplace(from.substr(at, size), to.substr(target, target_size));
            at += size;
            target += target_size;
        }
    }

    bool is_plain() const { return is_ascii; }
    size_t most_bytes(size_t length) const { return is_ascii ? length : 4 * length; }

    // Writes at most most_bytes(), and returns how many.
    size_t apply(std::string_view text, char* result) const {
        char* at = result;
        if (is_ascii) {
            for (const char c : text) {
                const unsigned char byte = static_cast<unsigned char>(c);
                if (byte >= 0x80) *at++ = c;
                else if (table[byte] != LEFT_OUT) *at++ = char(table[byte]);
            }
            return size_t(at - result);
        }
        for (size_t i = 0; i < text.size();) {
            const size_t size = std::min(character_size(text[i]), text.size() - i);
            const auto found = characters.find(text.substr(i, size));
            const std::string_view becomes = found == characters.end() ? text.substr(i, size) : found->second;
            if (!becomes.empty()) std::memcpy(at, becomes.data(), becomes.size());
            at += becomes.size();
            i += size;
        }
        return size_t(at - result);
    }
};

}  // namespace xsift
