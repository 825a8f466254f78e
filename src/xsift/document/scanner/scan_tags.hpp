// The scanner's part for tags: names, attributes, namespaces, and the events of elements.
#pragma once
#include "scanner.hpp"

namespace xsift {

// A name with at most one colon, whose parts are names. Moves `p` to the character after it.
inline __attribute__((always_inline)) Step Scanner::scan_name(const char*& p, size_t& colon) {
#ifdef XSIFT_X86
    // Nearly every name is short, ASCII, and has no colon.
    if (end - p >= 16 && is_class(*p, BYTE_NAME_START)) {
        const uint32_t ends = name_ends_in_16(p);
        const char* const stop = p + __builtin_ctz(ends | 0x10000);
        if (ends && static_cast<signed char>(*stop) >= 0 && *stop != ':') {
            p = stop;
            return Step::DONE;
        }
    }
#endif
    return scan_any_name(p, colon);
}

inline __attribute__((noinline)) Step Scanner::scan_any_name(const char*& p, size_t& colon) {
    const char* const start = p;
    bool first = true;  // the next character is the first of the name, or of the part after the colon
    while (p != end) {
        if (is_class(*p, first ? BYTE_NAME_START : BYTE_NAME)) {
            first = false;
            ++p;
#ifdef XSIFT_X86
            while (end - p >= 16) {
                const uint32_t ends = name_ends_in_16(p);
                p += ends ? __builtin_ctz(ends) : 16;
                if (ends) break;
            }
#endif
            while (p != end && is_class(*p, BYTE_NAME)) ++p;
        } else if (*p == ':') {
            if (first || colon) return Step::REFUSED;
            colon = size_t(p - start);
            first = true;
            ++p;
        } else if (static_cast<signed char>(*p) < 0) {
            const int length = ascii_only ? int(CHARACTER_INVALID) : character_length(p, end);
            if (length == CHARACTER_INCOMPLETE) return Step::INCOMPLETE;
            if (length != 2 && length != 3) return Step::REFUSED;
            if (!NameCharacters::allow(short_character(p, length), first)) return Step::REFUSED;
            first = false;
            p += length;
        } else {
            return first ? Step::REFUSED : Step::DONE;
        }
    }
    return Step::INCOMPLETE;
}

// An attribute's value and its quotes. Moves `p` behind it.
inline Step Scanner::scan_value(const char*& p, bool& plain) {
    const char quote = *p++;
    const Stops& stops = quote == '"' ? DOUBLE_QUOTED_STOPS : SINGLE_QUOTED_STOPS;
    plain = true;
    for (;;) {
        p = find_stop(p, end, stops);
        if (p == end) return Step::INCOMPLETE;
        if (*p == quote) {
            ++p;
            return Step::DONE;
        }
        if (static_cast<signed char>(*p) < 0) {
            const Step step = skip_characters(p, stops);
            if (step != Step::DONE) return step;
        } else if (*p == '&') {
            uint32_t character;
            const Step step = scan_reference(p, character);
            if (step != Step::DONE) return step;
            plain = false;
        } else if (is_space(*p)) {
            plain = false;
            ++p;
        } else {
            return Step::REFUSED;
        }
    }
}

// `name="value"`, short and without anything unusual: what nearly all attributes are. Moves `p` behind it.
inline __attribute__((always_inline)) bool Scanner::scan_short_attribute(const char*& p) {
#ifdef XSIFT_X86
    if (end - p < 32 || !is_class(*p, BYTE_NAME_START)) return false;
    const uint32_t name_ends = name_ends_in_16(p);
    if (!name_ends) return false;
    const int length = __builtin_ctz(name_ends);
    if (p[length] != '=' || p[length + 1] != '"') return false;
    // One look at 32 bytes serves for the name and the value: no waiting for the one before the other is looked for.
    const uint32_t stops = stops_in_16(p, DOUBLE_QUOTED_STOPS) | stops_in_16(p + 16, DOUBLE_QUOTED_STOPS) << 16;
    const uint32_t behind_quote = stops & ~uint32_t(0) << (length + 2);
    if (!behind_quote) return false;
    const int stop = __builtin_ctz(behind_quote);
    if (p[stop] != '"') return false;
    add_attribute(p, size_t(length), 0, p + length + 2, size_t(stop - length - 2), true);
    p += stop + 1;
    return true;
#else
    return false;
#endif
}

inline __attribute__((noinline)) Step Scanner::scan_any_attribute(const char*& p) {
    const char* const name = p;
    size_t colon = 0;
    Step step = scan_name(p, colon);
    if (step != Step::DONE) return step;
    const size_t length = size_t(p - name);
    while (p != end && is_space(*p)) ++p;
    if (p == end) return Step::INCOMPLETE;
    if (*p++ != '=') return Step::REFUSED;
    while (p != end && is_space(*p)) ++p;
    if (p == end) return Step::INCOMPLETE;
    if (*p != '"' && *p != '\'') return Step::REFUSED;
    const char* const value = p + 1;
    bool plain;
    step = scan_value(p, plain);
    if (step == Step::DONE) add_attribute(name, length, colon, value, size_t(p - 1 - value), plain);
    return step;
}

inline __attribute__((always_inline)) void Scanner::add_attribute(const char* name, size_t length, size_t colon,
                                                                  const char* value, size_t value_length, bool plain) {
    // Filled in where it stays: a copy of what was just written would wait for the writing.
    attributes.emplace_back();
    ScannedAttribute& attribute = attributes.back();
    attribute.name = name;
    attribute.length = length;
    attribute.colon = colon;
    attribute.value = value;
    attribute.value_length = value_length;
    attribute.signature = ScannedNames::signature_of(name, length, end);
    attribute.plain = plain;
    attribute.declares = (colon == 5 || (length == 5 && !colon)) && std::memcmp(name, "xmlns", 5) == 0;
    declares |= attribute.declares;
    prefixed |= colon != 0;
    // Names that differ mostly have different bits: then they need not be compared.
    const uint64_t bit = uint64_t(1) << ScannedNames::number_of(attribute.signature);
    repeats |= (signature_bits & bit) != 0;
    signature_bits |= bit;
}

inline Step Scanner::scan_start_tag() {
    const char* p = at + 1;
    size_t colon = 0;
    Step step = scan_name(p, colon);
    if (step != Step::DONE) return step;
    const char* const name_end = p;
    attributes.clear();
    declares = prefixed = repeats = false;
    signature_bits = 0;
    for (;;) {
        if (p == end) return Step::INCOMPLETE;
        if (*p == '>') return take_start_tag(name_end, p + 1, false);
        if (*p == '/') {
            if (end - p < 2) return Step::INCOMPLETE;
            return p[1] == '>' ? take_start_tag(name_end, p + 2, true) : Step::REFUSED;
        }
        if (!is_space(*p)) return Step::REFUSED;
        do ++p;
        while (p != end && is_space(*p));
        if (p == end) return Step::INCOMPLETE;
        if (*p == '>' || *p == '/') continue;
        if (scan_short_attribute(p)) continue;
        step = scan_any_attribute(p);
        if (step != Step::DONE) return step;
    }
}

// The tag is complete: checks what concerns all of it, and writes its events. Before the first event nothing is changed that
// matters if the tag is refused.
inline Step Scanner::take_start_tag(const char* name_end, const char* behind, bool empty) {
    const size_t length = size_t(name_end - at - 1);
    if (size_t(behind - at) > most_token_bytes || int64_t(attributes.size()) > state->most_attributes ||
        int64_t(length) > state->most_name_bytes || state->depth >= state->most_depth || names.is_full())
        return refuse(REASON_LIMIT);
    if (repeats && has_duplicates()) return Step::REFUSED;
    const int32_t number = names.find(at + 1, length, end);
    if (declares) {
        const Step step = declare_namespaces();
        if (step != Step::DONE) return step;
    }
    if (prefixed) {
        const Step step = find_namespaces();
        if (step != Step::DONE) return step;
    }
    const int32_t space = names[names[number].prefix].binding;
    if (space == UNBOUND) return Step::REFUSED;
    const NameEntry* entry;
    if (find_entry(number, space, entry) != Step::DONE) return Step::REFUSED;

    ++state->depth;
    ++state->elements;
    if (!state->silent) {
        if (state->keep_names) keep_this_name(number, space);
        emit_start(state, entry, offset_of(at));
        // Where only attributes are asked for, and there are none, there is nothing to look at.
        if (entry->wants && (!attributes.empty() || !entry->plain || entry->wants != WANTS_ATTRIBUTES)) {
            ask_guides(state);
            if (entry->wants & WANTS_ATTRIBUTES) match_attributes(entry, space);
        }
        if (state->collects) open_text(state, entry);
    }
    if (empty) {
        take_end(behind);
        while (!bindings.empty() && bindings.back().level > open.size()) undo_binding();
        if (open.empty()) place = Place::EPILOG;
    } else {
        open.push_back(number);
    }
    if (stopped(state)) return refuse(REASON_LIMIT);
    at = behind;
    return Step::DONE;
}

// The innermost element ends before `behind`.
inline void Scanner::take_end(const char* behind) {
    if (state->silent) --state->depth;
    else emit_end(state, offset_of(behind));
}

inline Step Scanner::scan_end_tag() {
    const ScannedName& name = names[open.back()];
    const char* p = at + 2;
    if (size_t(end - p) <= name.length) return Step::INCOMPLETE;
    if (!names.matches(name, p, end)) return Step::REFUSED;
    p += name.length;
    if (*p != '>') {
        while (p != end && is_space(*p)) ++p;
        if (p == end) return Step::INCOMPLETE;
        if (*p != '>') return Step::REFUSED;
        if (size_t(p - at) >= most_token_bytes) return refuse(REASON_LIMIT);
    }
    ++p;
    take_end(p);
    if (stopped(state)) return refuse(REASON_LIMIT);
    open.pop_back();
    while (!bindings.empty() && bindings.back().level > open.size()) undo_binding();
    if (open.empty()) place = Place::EPILOG;
    at = p;
    return Step::DONE;
}

// Whether a start tag has an attribute twice.
inline bool Scanner::has_duplicates() {
    const auto same = [](const ScannedAttribute& a, const ScannedAttribute& b) {
        return a.signature == b.signature && a.length == b.length && std::memcmp(a.name, b.name, a.length) == 0;
    };
    if (attributes.size() <= FEW) {
        for (size_t i = 1; i < attributes.size(); ++i)
            for (size_t j = 0; j < i; ++j)
                if (same(attributes[i], attributes[j])) return true;
        return false;
    }
    // Sorted by name, so that no choice of names costs more than a sort.
    sorted.clear();
    for (const ScannedAttribute& attribute : attributes) sorted.push_back(&attribute);
    std::sort(sorted.begin(), sorted.end(), [](const ScannedAttribute* a, const ScannedAttribute* b) {
        return a->length != b->length ? a->length < b->length : std::memcmp(a->name, b->name, a->length) < 0;
    });
    for (size_t i = 1; i < sorted.size(); ++i)
        if (same(*sorted[i], *sorted[i - 1])) return true;
    return false;
}

// The namespaces that a start tag declares. They hold for the tag itself, and until its element ends.
inline Step Scanner::declare_namespaces() {
    const size_t level = open.size() + 1;
    for (const ScannedAttribute& attribute : attributes) {
        if (!attribute.declares) continue;
        unescaped.clear();
        if (attribute.plain) unescaped.assign(attribute.value, attribute.value_length);
        else unescape(attribute, unescaped);
        const std::string& uri = unescaped;
        const size_t from = attribute.colon ? attribute.colon + 1 : attribute.length;
        const char* const prefix = attribute.name + from;
        const size_t length = attribute.length - from;
        // What concerns reserved names is left to expat, right or wrong.
        const bool reserved = (length == 3 && std::memcmp(prefix, "xml", 3) == 0) ||
                              (length == 5 && std::memcmp(prefix, "xmlns", 5) == 0);
        if (reserved || uri == XML_URI || uri == XMLNS_URI || (length && uri.empty())) return Step::REFUSED;
        if (int64_t(std::max(uri.size(), length)) > state->most_name_bytes || names.is_full() ||
            bindings.size() > MOST_BINDINGS || size_t(uris.size()) > MOST_URIS || size_t(uris.blob_size()) > MOST_URI_BYTES)
            return refuse(REASON_LIMIT);
        const int32_t number = names.find(prefix, length, nullptr);
        const int32_t space = uri.empty() ? NO_NAMESPACE : uris.add(uri.data(), uri.size()) + 1;
        bindings.push_back({number, names[number].binding, space, level});
        names[number].binding = space;
    }
    return Step::DONE;
}

// The namespaces of attributes with a prefix. Two of them may be one attribute with different prefixes.
inline Step Scanner::find_namespaces() {
    sorted.clear();
    for (ScannedAttribute& attribute : attributes) {
        if (!attribute.colon || attribute.declares) continue;
        if (names.is_full() || int64_t(attribute.colon) > state->most_name_bytes) return refuse(REASON_LIMIT);
        attribute.space = names[names.find(attribute.name, attribute.colon, end)].binding;
        if (attribute.space == UNBOUND) return Step::REFUSED;
        sorted.push_back(&attribute);
    }
    if (sorted.size() < 2) return Step::DONE;
    const auto compare = [](const ScannedAttribute* a, const ScannedAttribute* b) {
        const size_t a_length = a->length - a->colon, b_length = b->length - b->colon;
        if (a->space != b->space) return a->space < b->space ? -1 : 1;
        if (a_length != b_length) return a_length < b_length ? -1 : 1;
        return std::memcmp(a->name + a->colon, b->name + b->colon, a_length);
    };
    std::sort(sorted.begin(), sorted.end(),
              [compare](const ScannedAttribute* a, const ScannedAttribute* b) { return compare(a, b) < 0; });
    for (size_t i = 1; i < sorted.size(); ++i)
        if (compare(sorted[i - 1], sorted[i]) == 0) return Step::REFUSED;
    return Step::DONE;
}

// What is asked about elements of a name, in a namespace.
inline Step Scanner::find_entry(int32_t number, int32_t space, const NameEntry*& entry) {
    ScannedName& name = names[number];
    if (name.memo_namespace != space) {
        const char* local = names.text_of(name) + (name.colon ? name.colon + 1 : 0);
        const size_t length = name.length - (name.colon ? name.colon + 1 : 0);
        key.clear();
        if (space != NO_NAMESPACE) {
            key.append(uris.data_of(space - 1), uris.length_of(space - 1));
            key.push_back(NAME_SEPARATOR);
        }
        key.append(local, length);
        // What is kept of a name also has its prefix.
        const size_t kept = key.size() + (state->keep_names && name.colon ? name.colon + 1 : 0);
        if (int64_t(kept) > state->most_name_bytes) return refuse(REASON_LIMIT);
        name.memo_entry = state->names->find(key.data(), key.size()) + 1;
        name.memo_namespace = space;
    }
    entry = &state->entries[name.memo_entry];
    return Step::DONE;
}

inline void Scanner::keep_this_name(int32_t number, int32_t space) {
    const ScannedName& name = names[number];
    const char* const text = names.text_of(name);
    key.assign(text + (name.colon ? name.colon + 1 : 0), text + name.length);
    if (name.colon) {
        key.push_back(NAME_SEPARATOR);
        key.append(text, name.colon);
    }
    if (space == NO_NAMESPACE) keep_name(state, nullptr, 0, key.data(), key.size());
    else keep_name(state, uris.data_of(space - 1), uris.length_of(space - 1), key.data(), key.size());
}

inline __attribute__((noinline)) void Scanner::match_unescaped(const ScannedAttribute& attribute, const AskedAttribute& asked) {
    unescaped.clear();
    unescape(attribute, unescaped);
    match_attribute(state, asked, unescaped.data(), unescaped.size());
}

// Writes the conditions on attributes that hold, where each is looked at by itself, and none has a prefix: only those that
// are asked for are touched.
inline void Scanner::match_plain_attributes(const NameEntry* entry) {
    const size_t begin = state->codes->size();
    // Nobody can guess which of them are asked for, nor can the processor: they are sorted out without a branch.
    if (looked_at.size() < attributes.size()) looked_at.resize(attributes.size());
    const ScannedAttribute** last = looked_at.data();
    const uint64_t asked_for = ScannedNames::numbers_of(state->subjects);
    size_t size = 0;
    for (const ScannedAttribute& attribute : attributes) {
        *last = &attribute;
        last += asked_for >> ScannedNames::number_of(attribute.signature) & 1;
        size += attribute.value_length;
    }
    if (!may_scan(state, size)) return;
    for (const ScannedAttribute** at = looked_at.data(); at != last; ++at) {
        const ScannedAttribute& attribute = **at;
        if (attribute.declares) continue;
        const AskedAttribute& asked = asked_of(state, entry, attribute.name, attribute.length, end);
        if (attribute.plain) match_attribute(state, asked, attribute.value, attribute.value_length);
        else match_unescaped(attribute, asked);
    }
    conditions_written(state, begin);
}

// Writes the conditions on attributes and on the namespace that hold.
inline void Scanner::match_attributes(const NameEntry* entry, int32_t space) {
    if (entry->plain && !prefixed) return match_plain_attributes(entry);
    size_t size = 0;
    for (const ScannedAttribute& attribute : attributes) {
        if (!attribute.plain) size += attribute.value_length;
        if (attribute.colon && !attribute.declares) size += uris.length_of(attribute.space - 1) + attribute.length;
    }
    unescaped.clear();
    unescaped.reserve(size);  // it must not move: values point into it
    state->values.clear();
    for (const ScannedAttribute& attribute : attributes) {
        if (attribute.declares) continue;
        AttributeValue value{attribute.name, attribute.length, attribute.value, attribute.value_length};
        if (attribute.colon) {
            value.name = unescaped.data() + unescaped.size();
            unescaped.append(uris.data_of(attribute.space - 1), uris.length_of(attribute.space - 1));
            unescaped.push_back(NAME_SEPARATOR);
            unescaped.append(attribute.name + attribute.colon + 1, attribute.length - attribute.colon - 1);
            value.name_length = size_t(unescaped.data() + unescaped.size() - value.name);
        }
        if (!attribute.plain) {
            value.value = unescaped.data() + unescaped.size();
            unescape(attribute, unescaped);
            value.value_length = size_t(unescaped.data() + unescaped.size() - value.value);
        }
        state->values.push_back(value);
    }
    if (space == NO_NAMESPACE) match_start(state, entry, "", 0);
    else match_start(state, entry, uris.data_of(space - 1), uris.length_of(space - 1));
}

}  // namespace xsift
