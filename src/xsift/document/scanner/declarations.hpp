// What may stand before the root element: the XML declaration, and a document type declaration without an internal
// subset. Only the usual forms are taken, for whatever is not taken here is read by expat.
#pragma once
#include <cstddef>
#include <cstring>

#include "xml_characters.hpp"

namespace xsift {

// How a token went: it is complete, the input ends within it, or the scanner does not take it.
enum class Step { DONE, INCOMPLETE, REFUSED };

// A place in the input. Each function moves on over what it takes, if it takes it.
class Cursor {
   public:
    const char* at;
    const char* end;

    bool ended() const { return at == end; }

    bool word(const char* expected) {
        const size_t length = std::strlen(expected);
        if (size_t(end - at) < length || std::memcmp(at, expected, length) != 0) return false;
        at += length;
        return true;
    }

    bool space() {
        const char* from = at;
        while (at != end && is_space(*at)) ++at;
        return at != from;
    }

    // A quoted piece whose characters are all accepted; ASCII only.
    template <class Accepts>
    bool quoted(const char*& text, size_t& length, Accepts&& accepts) {
        if (at == end || (*at != '"' && *at != '\'')) return false;
        const char quote = *at++;
        text = at;
        while (at != end && *at != quote && accepts(*at)) ++at;
        length = size_t(at - text);
        if (at == end || *at != quote) return false;
        ++at;
        return true;
    }

    // ` name = "value"`
    template <class Accepts>
    bool setting(const char* name, const char*& text, size_t& length, Accepts&& accepts) {
        const char* from = at;
        if (space() && word(name)) {
            space();
            if (word("=")) {
                space();
                if (quoted(text, length, accepts)) return true;
            }
        }
        at = from;
        return false;
    }
};

inline bool equals_ignoring_case(const char* text, size_t length, const char* lower) {
    if (length != std::strlen(lower)) return false;
    for (size_t i = 0; i < length; ++i)
        if ((text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]) != lower[i]) return false;
    return true;
}

enum class DeclaredEncoding { UTF8, ASCII, OTHER };

// `<?xml …?>` from `at` on, which begins like that. Moves `at` behind it.
inline Step scan_xml_declaration(const char*& at, const char* end, DeclaredEncoding& encoding) {
    const char* close = at;
    for (;; ++close) {
        close = static_cast<const char*>(std::memchr(close, '>', size_t(end - close)));
        if (!close) return Step::INCOMPLETE;
        if (close[-1] == '?') break;
    }
    Cursor cursor{at + 5, close - 1};
    const char* text;
    size_t length;
    if (!cursor.setting("version", text, length, [](char c) { return is_class(c, BYTE_NAME); })) return Step::REFUSED;
    if (length < 3 || text[0] != '1' || text[1] != '.') return Step::REFUSED;
    for (size_t i = 2; i < length; ++i)
        if (text[i] < '0' || text[i] > '9') return Step::REFUSED;
    encoding = DeclaredEncoding::UTF8;
    if (cursor.setting("encoding", text, length, [](char c) { return is_class(c, BYTE_NAME); })) {
        if (equals_ignoring_case(text, length, "us-ascii") || equals_ignoring_case(text, length, "ascii"))
            encoding = DeclaredEncoding::ASCII;
        else if (!equals_ignoring_case(text, length, "utf-8") && !equals_ignoring_case(text, length, "utf8"))
            encoding = DeclaredEncoding::OTHER;
        if (length == 0 || !is_class(text[0], BYTE_NAME_START) || text[0] == '_') return Step::REFUSED;
    }
    if (cursor.setting("standalone", text, length, [](char c) { return is_class(c, BYTE_NAME_START); })) {
        const bool yes = length == 3 && std::memcmp(text, "yes", 3) == 0;
        if (!yes && !(length == 2 && std::memcmp(text, "no", 2) == 0)) return Step::REFUSED;
    }
    cursor.space();
    if (!cursor.ended()) return Step::REFUSED;
    at = close + 1;
    return Step::DONE;
}

enum class DoctypeKind { NONE, PLAIN, EXTERNAL };

// `<!DOCTYPE name SYSTEM "…">` and the like, from `at` on. `subset` tells that there is an internal subset.
inline Step scan_doctype(const char*& at, const char* end, DoctypeKind& kind, bool& subset) {
    Cursor cursor{at + 9, end};  // behind <!DOCTYPE
    const char* text;
    size_t length;
    const auto given_up = [&cursor] { return cursor.end - cursor.at < 16 ? Step::INCOMPLETE : Step::REFUSED; };
    const auto system_character = [](char c) { return c >= 0x20 && c < 0x7F; };
    subset = false;
    if (!cursor.space() || cursor.ended()) return given_up();
    if (!is_class(*cursor.at, BYTE_NAME_START)) return Step::REFUSED;
    while (!cursor.ended() && is_class(*cursor.at, BYTE_NAME)) ++cursor.at;
    const bool spaced = cursor.space();
    kind = DoctypeKind::PLAIN;
    const bool is_system = spaced && cursor.word("SYSTEM");
    if (is_system || (spaced && cursor.word("PUBLIC"))) {
        kind = DoctypeKind::EXTERNAL;
        if (!cursor.space()) return given_up();
        if (!is_system) {
            if (!cursor.quoted(text, length, [](char c) { return is_class(c, BYTE_PUBLIC); })) return given_up();
            if (!cursor.space()) return given_up();
        }
        if (!cursor.quoted(text, length, system_character)) return given_up();
        cursor.space();
    }
    if (cursor.ended()) return Step::INCOMPLETE;
    subset = *cursor.at == '[';
    if (*cursor.at != '>') return given_up();
    at = cursor.at + 1;
    return Step::DONE;
}

}  // namespace xsift
