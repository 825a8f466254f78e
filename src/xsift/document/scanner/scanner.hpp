// Scanner: reads the usual kind of document much faster than a parser that is made for every kind.
//
// expat looks at each byte two or three times: to find the token's end, to copy names and values, to normalize them.
// Filtering needs few of the bytes. The scanner goes over a document once: wide comparisons find where text and values end
// (markup_search.hpp), a name is looked up as it stands (scanned_names.hpp), values are unescaped only where a condition
// looks at them, and byte offsets are differences of pointers.
//
// It takes UTF-8 or ASCII without an internal DTD subset, and checks all that expat checks. Whatever it does not take, it
// does not judge: it stops before the token (`at`), and expat reads the document, from its start or from there (handover.hpp).
// So errors are expat's own, and the one thing that must be proven is: what the scanner takes, expat takes too, with
// the same events. tests/document/fuzz_scanner.py does that.
//
// A document may come in pieces: what is not complete at the end of a piece is to be given again, with more.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "xml_characters.hpp"
#include "declarations.hpp"
#include "emission.hpp"
#include "markup_search.hpp"
#include "read_state.hpp"
#include "scanned_names.hpp"
#include "text_place.hpp"
#include "utf8_run.hpp"

namespace xsift {

// How a call of Scanner::run() ended.
enum ScanOutcome : int32_t {
    SCAN_ENDED,      // the document is complete
    SCAN_PAUSED,     // there are events enough; call again
    SCAN_HUNGRY,     // more input is needed
    SCAN_REFUSED,    // `reason` says why; or there is a fault in the ReadState
    SCAN_NO_MEMORY,
};

// Why a document is read by expat. statistics.py has a word for each.
enum ScanReason : int32_t {
    REASON_OFF,          // the reader was told not to scan
    REASON_ENCODING,     // neither UTF-8 nor ASCII
    REASON_SUBSET,       // a document type declaration with an internal subset
    REASON_ENTITY,       // a reference to an entity that is not predefined
    REASON_LIMIT,        // it is near a limit: expat decides
    REASON_SYNTAX,       // not well-formed, or something unusual
    REASON_COUNT,
};

struct ScannedAttribute {
    const char* name;
    size_t length;
    size_t colon;         // where the colon is in the name, 0: there is none
    const char* value;
    size_t value_length;
    uint64_t signature;   // different names have different ones, mostly
    bool plain;           // the value stands as it is: no reference, no white space but blanks
    bool declares;        // a namespace: it is `xmlns` or `xmlns:…`
    int32_t space;        // its namespace, if it has a prefix
};

// A namespace that an open element declares.
struct ScannedBinding {
    int32_t prefix;
    int32_t former;       // what the prefix stood for before
    int32_t now;
    size_t level;         // of the element
};

class Scanner {
   public:
    enum class Place { START, PROLOG, CONTENT, CDATA, EPILOG };

    // Where it is, and what is open: what a handover needs to know.
    const char* at = nullptr;              // the first byte that was not taken
    Place place = Place::START;
    std::vector<int32_t> open;             // names of the open elements
    std::vector<ScannedBinding> bindings;  // of the open elements, innermost last
    BytesTable uris;                       // namespace n is uris[n - 1]; namespace 0 is none
    ScannedNames names;
    DoctypeKind doctype = DoctypeKind::NONE;
    bool ascii_only = false;
    TextPlace passed;                      // where the input at hand begins: what was before it is gone
    ScanReason reason = REASON_SYNTAX;

    explicit Scanner(uint64_t salt_) : names(salt_), salt(salt_) { forget_names(); }

    // Makes ready for a document. `encoded`: it is in UTF-8 whatever it declares.
    void begin(ReadState* for_state, bool encoded, int64_t token_bytes) {
        while (!bindings.empty()) undo_binding();
        if (names.has_grown() || uris.size() > 1000 || uris.blob_size() > (1 << 18)) forget_names();
        if (unescaped.capacity() > (1 << 20)) unescaped = std::string();  // one huge value is not kept for ever
        open.clear();
        state = for_state;
        place = Place::START;
        doctype = DoctypeKind::NONE;
        ascii_only = false;
        passed = TextPlace();
        is_encoded = encoded;
        most_token_bytes = size_t(token_bytes);
    }

    bool has_external_subset() const { return doctype == DoctypeKind::EXTERNAL; }

    // Scans the bytes from `data` on, which begin at `offset` in the document, up to a good place to pause. If they are not
    // the `last` ones, what is left at `at` is to be given again with more behind it.
    ScanOutcome run(const char* data, const char* from, const char* stop, bool last, int64_t offset, size_t slice) {
        shift = offset - int64_t(reinterpret_cast<uintptr_t>(data));
        at = from;
        end = stop;
        is_last = last;
        pause = size_t(end - at) > slice ? at + slice : end;
        reason = REASON_SYNTAX;
        state->suspended = false;
        try {
            const Step step = scan();
            if (step == Step::DONE) return finished(last);
            if (step == Step::INCOMPLETE && !last && size_t(end - at) <= most_token_bytes) return SCAN_HUNGRY;
            if (step == Step::INCOMPLETE && !last) reason = REASON_LIMIT;
            return SCAN_REFUSED;
        } catch (const std::exception&) {  // bad_alloc, or a container that cannot become so large
            return SCAN_NO_MEMORY;
        }
    }

   private:
    ReadState* state = nullptr;
    const char* end = nullptr;
    bool is_last = false;                  // the document ends at `end`
    const char* pause = nullptr;           // once `at` is here, it is time for a pause
    int64_t shift = 0;                     // from addresses to offsets in the document
    size_t most_token_bytes = 0;
    bool is_encoded = false;
    uint64_t salt;
    std::vector<ScannedAttribute> attributes;  // of the start tag at hand
    bool declares = false, prefixed = false;   // whether one of them declares a namespace, has a prefix
    bool repeats = false;                      // whether two of them may have the same name
    uint64_t signature_bits = 0;
    std::vector<const ScannedAttribute*> sorted, looked_at;
    std::string unescaped, key;

    static constexpr const char* XML_URI = "http://www.w3.org/XML/1998/namespace";
    static constexpr const char* XMLNS_URI = "http://www.w3.org/2000/xmlns/";
    static constexpr int32_t UNBOUND = -1, NO_NAMESPACE = 0;
    static constexpr size_t FEW = 16;      // attributes, whose names are compared in pairs
    static constexpr size_t MOST_BINDINGS = 1 << 16, MOST_URIS = 1 << 16, MOST_URI_BYTES = 8 << 20;

    int64_t offset_of(const char* p) const { return int64_t(reinterpret_cast<uintptr_t>(p)) + shift; }

    Step refuse(ScanReason why) {
        reason = why;
        return Step::REFUSED;
    }

    void forget_names() {
        names = ScannedNames(salt);
        uris = BytesTable();
        uris.add(XML_URI, std::strlen(XML_URI));
        names[ScannedNames::EMPTY].binding = NO_NAMESPACE;
        names[ScannedNames::XML].binding = 1;
    }

    void undo_binding() {
        names[bindings.back().prefix].binding = bindings.back().former;
        bindings.pop_back();
    }

    ScanOutcome finished(bool last) {
        if (place == Place::EPILOG && at == end) return last ? SCAN_ENDED : SCAN_HUNGRY;
        return at == end && !last ? SCAN_HUNGRY : SCAN_PAUSED;
    }

    Step scan() {
        Step step = Step::DONE;
        if (place == Place::START) step = scan_start();
        if (step == Step::DONE && place == Place::PROLOG) step = scan_misc();
        while (step == Step::DONE && (place == Place::CONTENT || place == Place::CDATA)) {
            if (at >= pause || state->suspended || state->codes->size() >= state->most_codes)
                return at == end ? Step::INCOMPLETE : Step::DONE;
            step = place == Place::CDATA ? scan_cdata() : scan_content();
        }
        if (step == Step::DONE && place == Place::EPILOG) step = scan_misc();
        return step;
    }

    // Text, CDATA sections and references: scan_text.hpp.
    Step leave_text(const char* p, Step step);
    Step scan_text();
    Step scan_cdata();
    Step scan_reference(const char*& p, uint32_t& character);
    Step skip_characters(const char*& p, const Stops& stops);
    void unescape(const ScannedAttribute& attribute, std::string& to);

    // Tags and namespaces: scan_tags.hpp.
    Step scan_name(const char*& p, size_t& colon);
    Step scan_any_name(const char*& p, size_t& colon);
    Step scan_value(const char*& p, bool& plain);
    bool scan_short_attribute(const char*& p);
    Step scan_any_attribute(const char*& p);
    void add_attribute(const char* name, size_t length, size_t colon, const char* value, size_t value_length, bool plain);
    Step scan_start_tag();
    Step take_start_tag(const char* name_end, const char* behind, bool empty);
    Step scan_end_tag();
    void take_end(const char* behind);
    bool has_duplicates();
    Step declare_namespaces();
    Step find_namespaces();
    Step find_entry(int32_t number, int32_t space, const NameEntry*& entry);
    void keep_this_name(int32_t number, int32_t space);
    void match_unescaped(const ScannedAttribute& attribute, const AskedAttribute& asked);
    void match_plain_attributes(const NameEntry* entry);
    void match_attributes(const NameEntry* entry, int32_t space);

    // Everything else: scan_misc.hpp.
    Step scan_start();
    Step scan_misc();
    Step scan_content();
    Step scan_comment();
    Step scan_instruction();
    Step begins(const char* word) const;
    Step take_token(const char* behind);
};

}  // namespace xsift

#include "scan_misc.hpp"
#include "scan_tags.hpp"
#include "scan_text.hpp"
