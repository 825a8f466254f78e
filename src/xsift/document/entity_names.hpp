// EntityNames: the entities that a document declares itself, to find references to entities that it does not.
//
// Only for documents with an external DTD subset, which is never read. There a reference to an undeclared entity is
// no error to expat: it skips the reference, and in an attribute value it does not even say so. The value would
// silently differ from what the author wrote, so the reader looks at the raw start tag here, and refuses.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bytes_table.hpp"

namespace xsift {

class EntityNames {
    static bool predefined(const char* name, size_t length) {
        for (const char* known : {"lt", "gt", "amp", "quot", "apos"})
            if (length == std::strlen(known) && std::memcmp(name, known, length) == 0) return true;
        return false;
    }

    BytesTable names;
    std::vector<std::string> texts;  // what an entity stands for; references in it are still references
    std::vector<char> incomplete;    // whether its text leads to an entity that is not declared; empty: not known yet

    // An entity is incomplete if it refers to one that is undeclared or incomplete: spread backwards from those.
    void find_incomplete() {
        const size_t number = texts.size();
        std::vector<std::vector<int32_t>> referred_by(number);
        std::vector<int32_t> todo;
        incomplete.assign(number, 0);
        for (size_t i = 0; i < number; ++i) {
            const bool known = each_reference(texts[i].data(), texts[i].size(), [&](const char* name, size_t length) {
                const int32_t other = names.find(name, length);
                if (other >= 0) referred_by[other].push_back(int32_t(i));
                return other >= 0;
            });
            if (!known) {
                incomplete[i] = 1;
                todo.push_back(int32_t(i));
            }
        }
        while (!todo.empty()) {
            const int32_t i = todo.back();
            todo.pop_back();
            for (const int32_t other : referred_by[i]) {
                if (incomplete[other]) continue;
                incomplete[other] = 1;
                todo.push_back(other);
            }
        }
    }

   public:
    // Calls use(name, length) for each reference in a text, until use() is false. Returns whether it always was true.
    template <class Use>
    static bool each_reference(const char* data, size_t length, Use&& use) {
        const char* end = data + length;
        for (const char* at = data; (at = static_cast<const char*>(std::memchr(at, '&', end - at))) != nullptr;) {
            ++at;
            const char* stop = static_cast<const char*>(std::memchr(at, ';', end - at));
            if (!stop) break;
            if (*at != '#' && !predefined(at, stop - at) && !use(at, size_t(stop - at))) return false;
        }
        return true;
    }

    void clear() {
        if (texts.empty() && incomplete.empty()) return;
        *this = EntityNames();
    }

    void declare(const char* name, const char* text, size_t length) {
        if (names.add(name, std::strlen(name)) < int32_t(texts.size())) return;  // the first declaration counts
        texts.emplace_back(text, length);
    }

    // Whether all references in a piece of the document's own bytes lead to declared entities. In UTF-16 each second
    // byte of an ASCII name is 0; names beyond ASCII count as undeclared unless the document is in UTF-8.
    bool covers(const char* raw, size_t length) {
        std::string narrow;
        if (length >= 2 && (raw[0] == 0 || raw[1] == 0)) {
            const size_t low = raw[0] == 0;
            for (size_t i = 0; i + 1 < length; i += 2) narrow.push_back(raw[i + 1 - low] ? '?' : raw[i + low]);
            raw = narrow.data();
            length = narrow.size();
        }
        return each_reference(raw, length, [&](const char* name, size_t size) {
            if (incomplete.empty() && !texts.empty()) find_incomplete();
            const int32_t number = names.find(name, size);
            return number >= 0 && !incomplete[number];
        });
    }
};

}  // namespace xsift
