// The scanner's part for what is no tag and no text: the prolog, comments, processing instructions; and the loop over
// an element's content.
#pragma once
#include "scanner.hpp"

namespace xsift {

// Whether the input begins with a word here; INCOMPLETE if it ends too soon to tell.
inline Step Scanner::begins(const char* word) const {
    const size_t length = std::strlen(word), left = size_t(end - at);
    if (std::memcmp(at, word, std::min(left, length)) != 0) return Step::REFUSED;
    return left < length ? Step::INCOMPLETE : Step::DONE;
}

// The token that ends before `behind` was right.
inline Step Scanner::take_token(const char* behind) {
    if (size_t(behind - at) > most_token_bytes) return refuse(REASON_LIMIT);
    if (state->hears_breaks) {
        end_text_node(state);
        if (stopped(state)) return refuse(REASON_LIMIT);
    }
    at = behind;
    return Step::DONE;
}

// The byte order mark and the XML declaration.
inline Step Scanner::scan_start() {
    const char* const start = at;
    if (at == end) return Step::INCOMPLETE;
    const Step mark = begins("\xEF\xBB\xBF");
    if (mark == Step::INCOMPLETE) return mark;
    if (mark == Step::DONE) at += 3;
    else if (static_cast<unsigned char>(*at) >= 0xFE || *at == 0 || (end - at > 1 && at[1] == 0))
        return refuse(REASON_ENCODING);
    Step step = at == end ? Step::INCOMPLETE : begins("<?xml");
    if (step == Step::DONE && end - at == 5) step = Step::INCOMPLETE;
    if (step == Step::DONE && is_space(at[5])) {
        DeclaredEncoding declared;
        step = scan_xml_declaration(at, end, declared);
        if (step == Step::REFUSED) return step;
        if (step == Step::DONE && !is_encoded) {
            if (declared == DeclaredEncoding::OTHER) return refuse(REASON_ENCODING);
            ascii_only = declared == DeclaredEncoding::ASCII;
            if (ascii_only && mark == Step::DONE) return refuse(REASON_ENCODING);
        }
    }
    if (step == Step::INCOMPLETE) {
        at = start;
        return step;
    }
    place = Place::PROLOG;
    return Step::DONE;
}

// White space, comments, processing instructions and the document type declaration, outside the root element.
inline Step Scanner::scan_misc() {
    for (;;) {
        while (at != end && is_space(*at)) {
            if (*at == '\r' && end - at == 1 && !is_last) return Step::INCOMPLETE;  // the line feed belongs to it
            ++at;
        }
        if (at == end) return place == Place::EPILOG ? Step::DONE : Step::INCOMPLETE;
        if (*at != '<') return Step::REFUSED;
        if (end - at < 2) return Step::INCOMPLETE;
        Step step;
        if (at[1] == '?') {
            step = scan_instruction();
        } else if (at[1] == '!') {
            step = begins("<!--");
            if (step == Step::DONE) {
                step = scan_comment();
            } else if (step == Step::REFUSED && place == Place::PROLOG && doctype == DoctypeKind::NONE) {
                step = begins("<!DOCTYPE");
                DoctypeKind kind;
                bool subset = false;
                const char* p = at;
                if (step == Step::DONE) step = scan_doctype(p, end, kind, subset);
                if (subset) return refuse(REASON_SUBSET);
                if (step == Step::DONE) step = take_token(p);
                if (step == Step::DONE) doctype = kind;
            }
        } else {
            if (place == Place::EPILOG || at[1] == '/') return Step::REFUSED;
            place = Place::CONTENT;
            return Step::DONE;
        }
        if (step != Step::DONE) return step;
    }
}

// Text, tags and the rest, until it is time for a pause, or the root element ends, or a CDATA section begins.
inline Step Scanner::scan_content() {
    do {
        if (at == end) return Step::INCOMPLETE;
        Step step;
        if (*at != '<') {
            step = scan_text();
            if (step != Step::DONE) return step;
        }
        if (end - at < 2) return Step::INCOMPLETE;
        if (at[1] == '/') {
            step = scan_end_tag();
        } else if (at[1] == '!') {
            step = begins("<!--");
            if (step == Step::DONE) {
                step = scan_comment();
            } else if (step == Step::REFUSED) {
                step = begins("<![CDATA[");
                if (step == Step::DONE) {
                    if (state->hears_breaks) state->node_exists = true;  // also if it is empty
                    at += 9;
                    place = Place::CDATA;
                }
            }
        } else if (at[1] == '?') {
            step = scan_instruction();
        } else {
            step = scan_start_tag();
        }
        if (step != Step::DONE) return step;
    } while (place == Place::CONTENT && at < pause && !state->suspended && state->codes->size() < state->most_codes);
    return Step::DONE;
}

inline Step Scanner::scan_comment() {
    const char* p = at + 4;
    for (;;) {
        p = find_stop(p, end, COMMENT_STOPS);
        if (p == end) return Step::INCOMPLETE;
        if (static_cast<signed char>(*p) < 0) {
            const Step step = skip_characters(p, COMMENT_STOPS);
            if (step != Step::DONE) return step;
        } else if (*p == '-') {
            if (end - p < 3) return Step::INCOMPLETE;
            if (p[1] == '-') return p[2] == '>' ? take_token(p + 3) : Step::REFUSED;
            ++p;
        } else {
            return Step::REFUSED;
        }
    }
}

inline Step Scanner::scan_instruction() {
    const char* p = at + 2;
    size_t colon = 0;
    Step step = scan_name(p, colon);
    if (step != Step::DONE) return step;
    if (colon || equals_ignoring_case(at + 2, size_t(p - at - 2), "xml")) return Step::REFUSED;
    if (!is_space(*p) && *p != '?') return Step::REFUSED;
    if (*p == '?') {
        if (end - p < 2) return Step::INCOMPLETE;
        return p[1] == '>' ? take_token(p + 2) : Step::REFUSED;
    }
    for (;;) {
        p = find_stop(p, end, INSTRUCTION_STOPS);
        if (p == end) return Step::INCOMPLETE;
        if (static_cast<signed char>(*p) < 0) {
            step = skip_characters(p, INSTRUCTION_STOPS);
            if (step != Step::DONE) return step;
        } else if (*p == '?') {
            if (end - p < 2) return Step::INCOMPLETE;
            if (p[1] == '>') return take_token(p + 2);
            ++p;
        } else {
            return Step::REFUSED;
        }
    }
}

}  // namespace xsift
