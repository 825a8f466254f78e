// Coverage-guided fuzzing of the scanner beside expat, with libFuzzer and sanitizers: `make fuzz`.
//
// What the scanner takes, expat must take, with the same events at the same offsets; and in pieces as in one. What a document
// means beyond its tags is compared by fuzz_scanner.py.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "handover.hpp"

using namespace xsift;

namespace {

struct Events {
    std::vector<int32_t> codes;
    std::vector<int64_t> offsets;
    bool operator==(const Events& other) const { return codes == other.codes && offsets == other.offsets; }
};

// What is asked for: some names, with and without a namespace; text wanted by some, though nothing is asked about it.
struct Question {
    BytesTable names;
    std::vector<NameEntry> entries;

    Question() {
        entries.push_back({0, 0, 0, 0});
        for (const char* name : {"a", "b", "c", "\xC3\xA9", "u\x1f" "a", "urn:n\x1f" "b", "longer-than-sixteen-bytes"}) {
            names.add(name, std::strlen(name));
            const uint8_t wants = uint8_t(entries.size() % 8);
            entries.push_back({int32_t(entries.size()), 0, 0, wants});
        }
    }

    void ask(ReadState& state, Events& events) const {
        state.names = &names;
        state.entries = entries.data();
        state.collects = true;
        state.codes = &events.codes;
        state.offsets = &events.offsets;
        state.positions = true;
        state.most_depth = 100;
        state.most_attributes = 1000;
        state.most_text_bytes = 1 << 20;
        state.most_name_bytes = 1000;
        state.most_codes = size_t(-1);
        state.begin_document();
        state.scan_left = 1 << 30;
    }
};

const Question& question() {
    static const Question asked;
    return asked;
}

// Reads with the scanner, in pieces that end at multiples of `step`; 0: in one. Whether it takes the document.
bool scan(const char* data, size_t size, size_t step, Events& events) {
    ReadState state;
    question().ask(state, events);
    state.by_scanner = true;
    Scanner scanner(12345);
    scanner.begin(&state, false, 1 << 20);
    size_t from = 0, until = step ? std::min(step, size) : size;
    for (;;) {
        // A copy of its own, so that the sanitizer sees a read beyond its end.
        const size_t length = until - from;
        const std::unique_ptr<char[]> piece(new char[length]);
        if (length) std::memcpy(piece.get(), data + from, length);
        const char* at = piece.get();
        ScanOutcome outcome;
        do {
            outcome = scanner.run(piece.get(), at, piece.get() + length, until == size, int64_t(from), 64);
            at = scanner.at;
        } while (outcome == SCAN_PAUSED);
        if (outcome == SCAN_ENDED) return true;
        if (outcome == SCAN_REFUSED) {
            std::string opening;
            if (from) write_opening(scanner, opening);
            return false;
        }
        if (outcome != SCAN_HUNGRY || until == size) abort();
        from += size_t(scanner.at - piece.get());
        until = std::min(until + step, size);
    }
}

void on_start(void* data, const XML_Char* name, const XML_Char**) {
    ReadState* state = static_cast<ReadState*>(data);
    emit_start(state, &state->entries[state->names->find(name, std::strlen(name)) + 1], current_offset(state));
}

void on_end(void* data, const XML_Char*) {
    ReadState* state = static_cast<ReadState*>(data);
    state->codes->push_back(END_CODE);
    state->offsets->push_back(current_offset(state) + XML_GetCurrentByteCount(state->parser));
}

int on_external(XML_Parser, const XML_Char*, const XML_Char*, const XML_Char*, const XML_Char*) { return 0; }

bool parse(const char* data, size_t size, Events& events) {
    ReadState state;
    question().ask(state, events);
    state.collects = false;
    state.parser = XML_ParserCreateNS("UTF-8", NAME_SEPARATOR);
    XML_SetUserData(state.parser, &state);
    XML_SetElementHandler(state.parser, on_start, on_end);
    XML_SetExternalEntityRefHandler(state.parser, on_external);
    const bool taken = XML_Parse(state.parser, data, int(size), 1) == XML_STATUS_OK;
    XML_ParserFree(state.parser);
    return taken;
}

[[noreturn]] void complain(const char* what) {
    std::fprintf(stderr, "difference: %s\n", what);
    abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    if (size < 1) return 0;
    const size_t step = bytes[0];
    const char* data = reinterpret_cast<const char*>(bytes) + 1;
    --size;
    Events scanned, in_pieces, parsed;
    const bool taken = scan(data, size, 0, scanned);
    if (taken) {
        if (!parse(data, size, parsed)) complain("expat refuses what the scanner takes");
        if (!(scanned == parsed)) complain("events");
    }
    if (step) {
        if (scan(data, size, step, in_pieces) != taken) complain("in pieces it is taken or refused otherwise");
        if (taken && !(scanned == in_pieces)) complain("events in pieces");
    }
    return 0;
}
