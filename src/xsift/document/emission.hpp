// Emission: from what a document says to event codes. The scanner and the callbacks of expat both end here, so that a
// document has the same events whichever of the two reads it.
//
// Text is collected in one buffer, and only where it is asked for.
//
//     open element that wants its string-value    remembers where in the buffer it begins
//     open element that wants its text nodes      is the innermost one while a text node is read; the node is the end
//                                                 of the buffer, and is tried where it ends: at a tag, comment or PI
//
// A fault ends the document. While the scanner reads it is only noted: the parser then reads the document again, and
// says what is wrong, and where.
#pragma once
#include <cstdint>
#include <cstring>

#include "read_state.hpp"

namespace xsift {

inline constexpr char NAME_SEPARATOR = '\x1f';  // between the namespace and the local name, as the keys of symbols have it
inline constexpr int32_t END_CODE = -1;         // events.pxd has all codes

// The document's byte offset of the parser's current event.
inline int64_t current_offset(const ReadState* state) {
    return XML_GetCurrentByteIndex(state->parser) + state->index_shift;
}

// Refuses the document: for a fault, or (0) because a Python exception is set.
inline void stop(ReadState* state, int32_t fault) {
    if (!fault) state->failed = true;
    else state->fault = fault;
    if (state->by_scanner) return;
    if (fault) {  // the place is that of the event at hand: expat moves on from here
        const int64_t line = int64_t(XML_GetCurrentLineNumber(state->parser));
        state->fault_line = line + state->line_shift;
        state->fault_column = int64_t(XML_GetCurrentColumnNumber(state->parser));
        if (line == state->first_line) state->fault_column += state->first_column_shift;
        state->fault_offset = current_offset(state);
    }
    XML_StopParser(state->parser, 0);
}

inline bool stopped(const ReadState* state) { return state->fault != 0 || state->failed; }

// From here on the document is only checked.
inline void be_silent(ReadState* state) {
    state->silent = true;
    state->hears_text = state->hears_breaks = false;
    if (!state->by_scanner && state->parser) state->relisten(state);
}

// Whether conditions may look at so many more bytes: at most a multiple of what the document has. However many conditions
// look, a value counts once: they are not the document's fault, unlike its nesting.
inline bool may_scan(ReadState* state, size_t size) {
    state->scan_left -= int64_t(size);
    if (state->scan_left >= 0) return true;
    stop(state, FAULT_SCAN);
    return false;
}

// The scratch for a part's conditions. What they cost is counted by count_work().
inline ConditionScratch& scratch_of(ReadState* state, const Part& part) {
    ConditionScratch& scratch = state->scratches[part.scratch];
    scratch.narrow = state->narrow;
    return scratch;
}

// Counts what conditions cost. Beyond the limit only those are tried that few elements can hold, till the document's end; the
// subscriptions that ask for others cannot be decided then, unless they matched before.
inline void count_work(ReadState* state, ConditionScratch& scratch) {
    state->condition_work += scratch.work;
    scratch.work = 0;
    if (state->condition_work > state->most_conditions + 64 * state->elements) state->narrow = true;
}

// To be called when conditions may have been written from `begin` on.
inline void conditions_written(ReadState* state, size_t begin) {
    if (state->codes->size() == begin) return;
    if (state->codes->size() >= state->most_codes && !state->suspended) {
        // Many conditions on many elements: the chunk must not grow with their product.
        state->suspended = true;
        if (!state->by_scanner) XML_StopParser(state->parser, 1);
    }
    if (state->several_tables && state->codes->size() > begin + 1) keep_distinct_codes(state->codes, begin);
    if (state->positions) state->offsets->resize(state->codes->size(), 0);
}

// Asks the guides what can matter at the element whose start tag was just written. Without a guide, everything can.
inline void ask_guides(ReadState* state) {
    if (state->guides.empty()) return;
    state->subjects = 0;
    for (Guide* guide : state->guides)
        state->subjects |= guide->take(state->codes->data() + state->guided, state->codes->size() - state->guided);
    state->guided = state->codes->size();
}

inline __attribute__((noinline)) const AskedAttribute& find_asked(ReadState* state, const NameEntry* entry, const char* name,
                                                                  size_t length) {
    std::vector<AskedSlot> slots;
    for (int32_t i = entry->first_part; i < entry->end_part; ++i) {
        const Part& part = state->parts[i];
        if (!(part.wants & WANTS_ATTRIBUTES)) continue;
        const int32_t slot = part.tables->slot_of(part.group, name, length);
        // Where something is told of missing attributes too, it must be noted that this one is there.
        if (slot >= 0) slots.push_back({i, slot, part.plain ? part.tables->equality_of(slot) : SlotEquality()});
    }
    return state->attribute_slots.add(int32_t(entry - state->entries), name, length, slots);
}

// What is asked of an attribute of an element. Bytes of its name up to `readable` may be read.
inline const AskedAttribute& asked_of(ReadState* state, const NameEntry* entry, const char* name, size_t length,
                                      const char* readable) {
    const AskedAttribute* const known =
        state->attribute_slots.find(int32_t(entry - state->entries), name, length, readable);
    return known ? *known : find_asked(state, entry, name, length);
}

// Writes the conditions on one attribute that hold.
inline __attribute__((noinline)) void match_slots(ReadState* state, const AskedAttribute& asked, const char* data,
                                                  size_t length) {
    TestedValue value(data, length);
    const AskedSlot* const slots = state->attribute_slots.slots_of(asked);
    for (const AskedSlot* at = slots; at != slots + asked.count; ++at) {
        const Part& part = state->parts[at->part];
        // (Equality is not counted as work: a value costs a look-up or two, whatever is asked.)
        if (at->equality.only) {
            part.tables->match_equal(at->slot, at->equality, value, *state->codes);
            continue;
        }
        ConditionScratch& scratch = scratch_of(state, part);
        part.tables->match_attribute(at->slot, value, scratch, *state->codes);
        count_work(state, scratch);
    }
}

inline void match_attribute(ReadState* state, const AskedAttribute& asked, const char* data, size_t length) {
    if (asked.may_hold(data, length)) match_slots(state, asked, data, length);
}

// Writes the conditions on attributes (`state->values`) and on the namespace that hold.
inline void match_start(ReadState* state, const NameEntry* entry, const char* uri, size_t uri_length) {
    const size_t begin = state->codes->size();
    size_t size = uri_length;
    for (const AttributeValue& value : state->values) size += value.value_length;
    if (!may_scan(state, size)) return;
    if (!entry->plain)
        for (int32_t i = entry->first_part; i < entry->end_part; ++i) {
            const Part& part = state->parts[i];
            if (part.wants & WANTS_ATTRIBUTES)
                part.tables->begin_start(part.group, uri, uri_length, scratch_of(state, part), *state->codes);
        }
    for (const AttributeValue& value : state->values) {
        // An entry that is not plain also tells what is missing: it has to see all that is there.
        if (entry->plain && !(subject_bit(SUBJECT_ATTRIBUTE, value.name, value.name_length) & state->subjects)) continue;
        const AskedAttribute& asked =
            asked_of(state, entry, value.name, value.name_length, value.name + value.name_length);
        match_attribute(state, asked, value.value, value.value_length);
    }
    if (!entry->plain)
        for (int32_t i = entry->first_part; i < entry->end_part; ++i) {
            const Part& part = state->parts[i];
            if (!(part.wants & WANTS_ATTRIBUTES)) continue;
            ConditionScratch& scratch = scratch_of(state, part);
            part.tables->finish_start(part.group, state->values, scratch, *state->codes);
            count_work(state, scratch);
        }
    conditions_written(state, begin);
}

// Records an element's name. `rest` is "local", or "local\x1fprefix" for a name with a prefix.
inline void keep_name(ReadState* state, const char* uri, size_t uri_length, const char* rest, size_t rest_length) {
    const int32_t number = uri ? state->kept_uris->add(uri, uri_length) : -1;
    state->kept_key.assign(reinterpret_cast<const char*>(&number), sizeof(number));
    state->kept_key.append(rest, rest_length);
    state->kept_elements->push_back(state->kept_names->add(state->kept_key.data(), state->kept_key.size()));
}

inline void forget_kept_names(ReadState* state) {
    if (!state->keep_names) return;
    *state->kept_uris = BytesTable();
    *state->kept_names = BytesTable();
    state->kept_elements->clear();
}

// Says where text is wanted, and nowhere else.
inline void listen(ReadState* state) {
    const bool nodes = !state->open.empty() && (state->open.back().wants & WANTS_TEXT);
    const bool texts = nodes || state->strings_open > 0;
    if (texts == state->hears_text && nodes == state->hears_breaks) return;
    state->hears_text = texts;
    state->hears_breaks = nodes;
    if (!state->by_scanner) state->relisten(state);
}

// The next text node begins here; earlier text is kept only for open string-values.
inline void forget_text(ReadState* state) {
    if (state->strings_open == 0) state->text.clear();
    state->node_start = state->text.size();
    state->node_exists = false;
}

inline void take_text(ReadState* state, const char* text, size_t length) {
    if (int64_t(state->text.size() + length) > state->most_text_bytes) return stop(state, FAULT_TEXT);
    state->text.append(text, length);
    state->node_exists = true;
}

// Notes the tests that a text node passes.
inline void match_text_node(ReadState* state, const NameEntry* entry, TextFrame* frame, const char* text,
                            size_t length) {
    for (int32_t i = entry->first_part; i < entry->end_part; ++i) {
        const Part& part = state->parts[i];
        if (!(part.wants & WANTS_TEXT)) continue;
        ConditionScratch& scratch = scratch_of(state, part);
        part.tables->match_text_node(part.group, text, length, !frame->had_nodes, scratch);
        count_work(state, scratch);
        for (const int32_t test : scratch.held) frame->passed.push_back(pack(i, test));
    }
    keep_distinct(frame);
}

// A text node ends here, if there is one: tries it if the element wants text nodes.
inline void end_text_node(ReadState* state) {
    if (!state->node_exists || state->open.empty()) return;
    const OpenElement& element = state->open.back();
    const size_t length = state->text.size() - state->node_start;
    if (element.wants & WANTS_TEXT) {
        if (!may_scan(state, length)) return;
        TextFrame* frame = &state->frames[state->frames_open - 1];
        match_text_node(state, &state->entries[element.entry], frame, state->text.data() + state->node_start, length);
        frame->had_nodes = true;
    }
    forget_text(state);
}

// Notes what an element that begins here wants of its text.
inline void open_text(ReadState* state, const NameEntry* entry) {
    const uint8_t wants = entry->wants & ((state->subjects & TEXT_SUBJECT_BIT ? WANTS_TEXT : 0) |
                                          (state->subjects & STRING_SUBJECT_BIT ? WANTS_STRING : 0));
    // Filled in where it stays: a copy of what was just written would wait for the writing.
    state->open.emplace_back();
    state->open.back().entry = int32_t(entry - state->entries);
    state->open.back().wants = wants;
    if (wants) {
        state->push_frame()->string_start = state->text.size();
        if (wants & WANTS_STRING) ++state->strings_open;
    }
    listen(state);
}

// Writes the conditions on text that hold for the innermost open element, which ends here.
inline void close_text(ReadState* state, const NameEntry* entry, uint8_t wants) {
    TextFrame* frame = &state->frames[state->frames_open - 1];
    const size_t begin = state->codes->size();
    const size_t string_length = state->text.size() - frame->string_start;
    if ((wants & WANTS_STRING) && !may_scan(state, string_length)) return;
    for (int32_t i = entry->first_part; i < entry->end_part; ++i) {
        const Part& part = state->parts[i];
        ConditionScratch& scratch = scratch_of(state, part);
        if (part.wants & wants & WANTS_TEXT)
            part.tables->finish_text(part.group, frame->passed, i, frame->had_nodes, scratch, *state->codes);
        if (part.wants & wants & WANTS_STRING)
            part.tables->match_string(part.group, state->text.data() + frame->string_start, string_length, scratch,
                                      *state->codes);
        count_work(state, scratch);
    }
    conditions_written(state, begin);
    --state->frames_open;
    if (wants & WANTS_STRING) --state->strings_open;
    forget_text(state);
}

// The start tag of an element whose name has an entry. If anything is asked of it, ask_guides() follows, attributes through
// match_start(), then open_text().
inline void emit_start(ReadState* state, const NameEntry* entry, int64_t offset) {
    if (state->hears_text) end_text_node(state);
    state->codes->push_back(entry->symbol);
    if (state->positions) state->offsets->push_back(offset);
}

// The end tag, which ends before `offset`.
inline void emit_end(ReadState* state, int64_t offset) {
    --state->depth;
    if (state->collects) {
        if (state->hears_text) end_text_node(state);
        const OpenElement& element = state->open.back();
        if (element.wants) close_text(state, &state->entries[element.entry], element.wants);
        state->open.pop_back();
        listen(state);
    }
    state->codes->push_back(END_CODE);
    if (state->positions) state->offsets->push_back(offset);
}

}  // namespace xsift
