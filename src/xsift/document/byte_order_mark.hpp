// A byte order mark at the beginning of a document says which encoding it has. As for libxml2, it is right where the
// XML declaration says otherwise: editors that put one there do not change what is declared.
#pragma once
#include <cstddef>
#include <cstring>

namespace xsift {

// The encoding that the mark stands for, NULL if there is none.
inline const char* marked_encoding(const char* data, size_t length) {
    if (length >= 3 && std::memcmp(data, "\xEF\xBB\xBF", 3) == 0) return "UTF-8";
    if (length >= 2 && (std::memcmp(data, "\xFF\xFE", 2) == 0 || std::memcmp(data, "\xFE\xFF", 2) == 0)) return "UTF-16";
    return nullptr;
}

}  // namespace xsift
