// The scanner's part for text: character data, CDATA sections, references, and characters beyond ASCII.
#pragma once
#include "scanner.hpp"

namespace xsift {

// Takes the text up to `p`, where something else is.
inline Step Scanner::leave_text(const char* p, Step step) {
    if (state->hears_text && p != at) {
        take_text(state, at, size_t(p - at));
        if (stopped(state)) return refuse(REASON_LIMIT);
    }
    at = p;
    return step;
}

// Text up to the next markup.
inline Step Scanner::scan_text() {
    const bool heard = state->hears_text;
    const char* p = at;
    for (;;) {
        p = find_stop(p, end, TEXT_STOPS);
        if (p == end) return leave_text(p, Step::INCOMPLETE);
        const char c = *p;
        if (c == '<') return leave_text(p, Step::DONE);
        if (static_cast<signed char>(c) < 0) {
            const Step step = skip_characters(p, TEXT_STOPS);
            if (step != Step::DONE) return leave_text(p, step);
        } else if (c == ']') {
            const ptrdiff_t left = end - p;
            if (left < 3 && (left < 2 || p[1] == ']')) return leave_text(p, Step::INCOMPLETE);
            if (left >= 3 && p[1] == ']' && p[2] == '>') return leave_text(p, Step::REFUSED);
            ++p;
        } else if (c == '\r') {
            // A line's end is one line feed, however it is written. Both bytes of it are taken together.
            if (end - p < 2) return leave_text(p, Step::INCOMPLETE);
            const char* next = p + (p[1] == '\n' ? 2 : 1);
            if (heard) {
                leave_text(p, Step::DONE);
                take_text(state, "\n", 1);
                if (stopped(state)) return refuse(REASON_LIMIT);
                at = next;
            }
            p = next;
        } else if (c == '&') {
            const char* next = p;
            uint32_t character;
            const Step step = scan_reference(next, character);
            if (step != Step::DONE) return leave_text(p, step);
            if (heard) {
                char bytes[4];
                leave_text(p, Step::DONE);
                take_text(state, bytes, size_t(write_character(character, bytes)));
                if (stopped(state)) return refuse(REASON_LIMIT);
                at = next;
            }
            p = next;
        } else {
            return leave_text(p, Step::REFUSED);
        }
    }
}

// What is in a CDATA section, and its end.
inline Step Scanner::scan_cdata() {
    const char* p = at;
    for (;;) {
        p = find_stop(p, end, CDATA_STOPS);
        if (p == end) return leave_text(p, Step::INCOMPLETE);
        if (static_cast<signed char>(*p) < 0) {
            const Step step = skip_characters(p, CDATA_STOPS);
            if (step != Step::DONE) return leave_text(p, step);
        } else if (*p == ']') {
            const ptrdiff_t left = end - p;
            if (left < 3 && (left < 2 || p[1] == ']')) return leave_text(p, Step::INCOMPLETE);
            if (left >= 3 && p[1] == ']' && p[2] == '>') {
                if (leave_text(p, Step::DONE) != Step::DONE) return Step::REFUSED;
                at = p + 3;
                place = Place::CONTENT;
                return Step::DONE;
            }
            ++p;
        } else if (*p == '\r') {
            if (end - p < 2) return leave_text(p, Step::INCOMPLETE);
            const char* next = p + (p[1] == '\n' ? 2 : 1);
            if (state->hears_text) {
                leave_text(p, Step::DONE);
                take_text(state, "\n", 1);
                if (stopped(state)) return refuse(REASON_LIMIT);
                at = next;
            }
            p = next;
        } else {
            return leave_text(p, Step::REFUSED);
        }
    }
}

// Moves over characters beyond ASCII, and perhaps over more that is no stop.
inline Step Scanner::skip_characters(const char*& p, const Stops& stops) {
    if (ascii_only) return Step::REFUSED;
    p = skip_valid(p, end, stops);
    while (p != end && static_cast<signed char>(*p) < 0) {
        const int length = character_length(p, end);
        if (length <= 0) return length == CHARACTER_INCOMPLETE ? Step::INCOMPLETE : Step::REFUSED;
        p += length;
        // In most scripts some ASCII is between such characters: not worth a search in blocks.
        if (p != end && static_cast<signed char>(*p) >= 0)
            for (int i = 0; i < 8 && p != end && !stops.at(*p); ++i) ++p;
    }
    return Step::DONE;
}

// `&lt;` and the like, `&#65;`, `&#x41;`. Moves `p` behind it.
inline Step Scanner::scan_reference(const char*& p, uint32_t& character) {
    struct Predefined {
        const char* text;
        size_t length;
        char character;
    };
    static constexpr Predefined PREDEFINED[] = {
        {"amp;", 4, '&'}, {"lt;", 3, '<'}, {"gt;", 3, '>'}, {"quot;", 5, '"'}, {"apos;", 5, '\''}};
    const char* q = p + 1;
    const size_t left = size_t(end - q);
    if (left == 0) return Step::INCOMPLETE;
    if (*q != '#') {
        for (const Predefined& known : PREDEFINED) {
            if (std::memcmp(q, known.text, std::min(left, known.length)) != 0) continue;
            if (left < known.length) return Step::INCOMPLETE;
            character = static_cast<unsigned char>(known.character);
            p = q + known.length;
            return Step::DONE;
        }
        return refuse(REASON_ENTITY);
    }
    ++q;
    const bool hexadecimal = q != end && *q == 'x';
    if (hexadecimal) ++q;
    const char* digits = q;
    uint32_t value = 0;
    for (; q != end && *q != ';'; ++q) {
        const char c = *q;
        const bool decimal = c >= '0' && c <= '9';
        const char lower = char(c | 0x20);
        if (!decimal && !(hexadecimal && lower >= 'a' && lower <= 'f')) return Step::REFUSED;
        if (value > 0x110000) return Step::REFUSED;
        value = value * (hexadecimal ? 16 : 10) + uint32_t(decimal ? c - '0' : lower - 'a' + 10);
    }
    if (q == end) return Step::INCOMPLETE;
    if (q == digits || !may_be_referred_to(value)) return Step::REFUSED;
    character = value;
    p = q + 1;
    return Step::DONE;
}

// An attribute's value as XML normalizes it: references replaced, white space as blanks. It was found to be right.
inline void Scanner::unescape(const ScannedAttribute& attribute, std::string& to) {
    const char* const stop = attribute.value + attribute.value_length;
    for (const char* p = attribute.value; p != stop;) {
        if (*p == '&') {
            uint32_t character = 0;
            char bytes[4];
            scan_reference(p, character);
            to.append(bytes, size_t(write_character(character, bytes)));
        } else if (is_space(*p)) {
            p += *p == '\r' && p + 1 != stop && p[1] == '\n' ? 2 : 1;
            to.push_back(' ');
        } else {
            to.push_back(*p++);
        }
    }
}

}  // namespace xsift
