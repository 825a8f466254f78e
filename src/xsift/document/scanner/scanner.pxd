from libcpp cimport bool as cpp_bool
from libcpp.string cimport string

from xsift.document.handlers cimport ReadState
from xsift.native.types cimport int32_t, int64_t, uint64_t

# Declarations of scanner.hpp and what goes with it, which explain each field. A kernel that uses them includes reading_counts.hpp
# and handover.hpp; to others they are names only.
cdef extern from * nogil:
    """
    namespace xsift { class Scanner; struct TextPlace; struct ReadingCounts; }
    """
    cdef cppclass TextPlace "xsift::TextPlace":
        int64_t line
        int64_t column
        void advance(const char* start, const char* end)

    cdef enum:
        SCAN_ENDED "xsift::SCAN_ENDED"
        SCAN_PAUSED "xsift::SCAN_PAUSED"
        SCAN_HUNGRY "xsift::SCAN_HUNGRY"
        SCAN_REFUSED "xsift::SCAN_REFUSED"
        SCAN_NO_MEMORY "xsift::SCAN_NO_MEMORY"
        REASON_OFF "xsift::REASON_OFF"
        REASON_ENCODING "xsift::REASON_ENCODING"
        REASON_LIMIT "xsift::REASON_LIMIT"
        REASON_COUNT "xsift::REASON_COUNT"

    cdef cppclass Scanner "xsift::Scanner":
        Scanner(uint64_t salt) except +
        const char* at
        cpp_bool ascii_only
        TextPlace passed
        int32_t reason
        void begin(ReadState* state, cpp_bool encoded, int64_t token_bytes) except +
        cpp_bool has_external_subset()
        int32_t run(const char* data, const char* start, const char* end, cpp_bool last, int64_t offset, size_t slice)

    cdef cppclass ReadingCounts "xsift::ReadingCounts":
        int64_t scanned_documents
        int64_t scanned_bytes
        int64_t expat_bytes
        int64_t* expat_documents
        void scanned(int64_t count)
        void given_to_expat(int32_t reason)
        void read_by_expat(int64_t count)

    ReadingCounts reading_counts "xsift::reading_counts"
    void write_opening "xsift::write_opening" (Scanner& scanner, string& opening) except +
