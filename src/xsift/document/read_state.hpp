// ReadState: everything that changes while one document is read, by the scanner (scanner.hpp) or by the callbacks of expat
// (handlers.pyx). What both do with it is in emission.hpp.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "attribute_slots.hpp"
#include "bytes_table.hpp"
#include "condition_tables.hpp"
#include "declared_attributes.hpp"
#include "entity_depths.hpp"
#include "entity_names.hpp"
#include "expat_api.hpp"
#include "guide.hpp"

namespace xsift {

// One group of conditions (of `*`, or of a name) in one of the tables that a reader was given.
struct Part {
    const ConditionTables* tables;
    int32_t scratch;  // which of the reader's scratches belongs to the tables
    int32_t group;
    uint8_t wants;
    uint8_t plain;    // it asks for attributes that are there, each by itself, and for nothing else at the start tag
};

// What is asked about elements with one name.
struct NameEntry {
    int32_t symbol;      // the start tag's event code
    int32_t first_part;  // its parts: first_part .. end_part - 1
    int32_t end_part;
    uint8_t wants;       // of all its parts
    uint8_t plain;       // all its parts are
};

// Why a document was refused, beside what expat itself refuses. faults.py has a code and a sentence for each.
enum ReadFault : int32_t {
    FAULT_NONE = 0,
    FAULT_DEPTH = 1000,  // above all of expat's error numbers
    FAULT_BYTES,
    FAULT_ATTRIBUTES,
    FAULT_TEXT,
    FAULT_NAME,
    FAULT_TOKEN,
    FAULT_ENTITIES,
    FAULT_ENTITY_ELEMENTS,
    FAULT_SCAN,
    FAULT_PARAMETER_ENTITY,
    FAULT_EXTERNAL_ENTITY,
    FAULT_UNDECLARED_ENTITY,
    FAULT_VERSION,
    FAULT_TRUNCATED,
    FAULT_EMPTY,
    FAULT_SURROGATE,
    FAULT_ENTITY_DEPTH,
    FAULT_DECLARED_ATTRIBUTES,
};

// An open element that asks for its text.
struct TextFrame {
    size_t string_start;            // where its string-value begins in ReadState::text
    bool had_nodes;                 // whether it had a text node so far
    size_t sorted;                  // how many of `passed` were distinct when that was looked at
    std::vector<uint64_t> passed;   // pack(part, test) that its text nodes passed so far
};

// An open element, and what of its text is asked for.
struct OpenElement {
    int32_t entry;
    uint8_t wants;
};

struct ReadState {
    XML_Parser parser = nullptr;
    bool by_scanner = false;                 // the scanner reads the document, not the parser
    void (*relisten)(ReadState*) = nullptr;  // tells the parser what hears_text and hears_breaks are now

    // Where the parser's input begins in the document, if it took over from the scanner in the middle. See Handover.
    int64_t index_shift = 0, line_shift = 0, first_line = 0, first_column_shift = 0;

    // What is asked for; not changed here.
    const BytesTable* names = nullptr;       // expanded names; name i has entry i + 1
    const NameEntry* entries = nullptr;      // entry 0: names that nobody asks for
    const Part* parts = nullptr;
    bool several_tables = false;
    bool collects = false;                   // whether any entry wants text

    // Limits. See limits.py.
    int64_t most_depth = 0, most_attributes = 0, most_text_bytes = 0, most_name_bytes = 0, most_entities = 0,
            most_entity_elements = 0, most_entity_depth = 0, most_conditions = 0;

    // What was read.
    std::vector<int32_t>* codes = nullptr;
    std::vector<int64_t>* offsets = nullptr;
    bool positions = false;
    bool keep_names = false;                 // then expat's names are "uri\x1flocal\x1fprefix"
    BytesTable* kept_uris = nullptr;         // see names.pxd for these three
    BytesTable* kept_names = nullptr;
    std::vector<int32_t>* kept_elements = nullptr;
    std::string kept_key;

    int64_t depth = 0;                       // open elements
    int64_t elements = 0;                    // start tags so far
    int32_t fault = FAULT_NONE;              // and where it is, in expat's terms
    int64_t fault_line = 0, fault_column = 0, fault_offset = 0;
    bool silent = false;                     // no more events are wanted: the document is only checked
    bool failed = false;                     // a Python exception is set
    size_t most_codes = 0;                   // a chunk with so many codes ends, even in the middle of a slice:
    bool suspended = false;                  // expat waits to be told to go on
    int64_t slice_size = 0;                  // of the slice at hand,
    bool slice_is_last = false;              // and whether it is the document's last
    int64_t scan_left = 0;                   // bytes that conditions may still look at
    int64_t condition_work = 0;              // conditions that were found to hold, and what was tried for them
    bool narrow = false;                     // that is too much: only conditions that few elements can hold are tried now
    std::vector<ConditionScratch> scratches;
    std::vector<AttributeValue> values;
    AttributeSlots attribute_slots;

    // Who says which conditions can matter, if anybody does; and so many of `codes` they took.
    std::vector<Guide*> guides;
    size_t guided = 0;
    uint64_t subjects = ~uint64_t(0);        // what can matter at the innermost element

    // Text. `text` holds what the open frames with a string-value need, and the text node at hand.
    std::vector<OpenElement> open;           // the open elements, if `collects`
    std::vector<TextFrame> frames;           // the first `frames_open` are in use, innermost last
    size_t frames_open = 0;
    size_t strings_open = 0;                 // frames that want a string-value
    std::string text;
    size_t node_start = 0;                   // where the text node at hand begins in it
    bool node_exists = false;                // whether there is one: an empty CDATA section is a text node too
    bool hears_text = false;                 // whether expat calls us for text,
    bool hears_breaks = false;               // and for what separates text nodes

    // The document type declaration.
    int64_t entities = 0;                    // declared so far
    bool entity_markup = false;              // some entity contains elements
    int64_t last_start = -1;                 // byte index of the last start tag, kept if entity_markup
    int64_t entity_elements = 0;
    bool external_subset = false;            // there is one, which is not read
    EntityNames entity_names;                // kept if external_subset
    EntityDepths entity_depths;
    DeclaredAttributes declared_attributes;

    // The encoding under the name that expat knows, "" if it knows the name that the document gives, or no other.
    char proper_encoding[8] = "";

    std::atomic<bool> busy{false};           // some thread is reading

    // Whether the reader is free; it is taken then, until leave().
    bool enter() { return !busy.exchange(true, std::memory_order_acquire); }
    void leave() { busy.store(false, std::memory_order_release); }

    void begin_document() {
        depth = elements = entities = entity_elements = condition_work = 0;
        narrow = false;
        last_start = -1;
        fault = FAULT_NONE;
        proper_encoding[0] = 0;
        index_shift = line_shift = first_line = first_column_shift = 0;
        failed = suspended = entity_markup = external_subset = node_exists = hears_text = hears_breaks = false;
        open.clear();
        frames_open = strings_open = node_start = 0;
        text.clear();
        if (text.capacity() > (1 << 20)) text.shrink_to_fit();  // one huge text is not kept for ever
        entity_names.clear();
        entity_depths.clear();
        declared_attributes.clear();
    }

    TextFrame* push_frame() {
        if (frames_open == frames.size()) frames.emplace_back();
        TextFrame* frame = &frames[frames_open++];
        frame->had_nodes = false;
        frame->sorted = 0;
        frame->passed.clear();
        return frame;
    }
};

// Keeps a list from growing with the number of text nodes, at a cost that is linear over all calls: it acts once the list
// has doubled.
inline void keep_distinct(TextFrame* frame) {
    std::vector<uint64_t>& passed = frame->passed;
    if (passed.size() < 2 * frame->sorted + 1024) return;
    std::sort(passed.begin(), passed.end());
    passed.erase(std::unique(passed.begin(), passed.end()), passed.end());
    frame->sorted = passed.size();
}

// Makes codes from `begin` on distinct: several tables may report the same condition.
inline void keep_distinct_codes(std::vector<int32_t>* codes, size_t begin) {
    std::sort(codes->begin() + begin, codes->end());
    codes->erase(std::unique(codes->begin() + begin, codes->end()), codes->end());
}

}  // namespace xsift
