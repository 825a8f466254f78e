// ScannedNames: the distinct names that the scanner met, as they are written, with what is known of each.
//
// A name costs one hash of its first 16 bytes and one probe: no copy, no terminating zero, no search for a colon when
// it is met again. An end tag is compared with the record of the element that is open. The table stays from document to
// document, for names repeat; what belongs to one document (bindings) is undone by the scanner. It is emptied
// between documents once it has grown, and within one document it has a limit: the scanner then gives up.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "condition.hpp"

namespace xsift {

struct ScannedName {
    uint64_t words[2];           // the first 16 bytes, zeros after its end
    uint32_t hash;
    uint32_t length;
    size_t start;                // in the table's bytes
    uint32_t colon;              // where the colon is, 0: there is none
    int32_t prefix;              // the name that is before the colon, or 0, which is the empty name
    int32_t binding;             // as a prefix: the namespace that it stands for now, or -1
    int32_t memo_namespace;      // in this namespace, -1: none yet,
    int32_t memo_entry;          // an element of this name has this entry
};

class ScannedNames {
    std::vector<ScannedName> names;
    std::vector<char> bytes;
    std::vector<int32_t> slots;  // number + 1, or 0 where empty
    uint64_t salt = 0;           // so that nobody can write names that all have one hash

    struct Words {
        uint64_t first, second;
    };

    static uint64_t eight_bytes(const void* from) {
        uint64_t word;
        std::memcpy(&word, from, 8);
        return word;
    }

    // The first 16 bytes of a name, zeros after its end. Bytes up to `end` may be read.
    static Words words_of(const char* name, size_t length, const char* end) {
        static constexpr unsigned char MASK[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                   255, 255, 255, 255, 255, 255, 255, 255};
        Words words{0, 0};
        if (end - name >= 16) {
            const unsigned char* mask = MASK + 16 - (length < 16 ? length : 16);
            words.first = eight_bytes(name) & eight_bytes(mask);
            words.second = eight_bytes(name + 8) & eight_bytes(mask + 8);
        } else {
            std::memcpy(&words, name, length < 16 ? length : 16);
        }
        return words;
    }

    static uint64_t fold(uint64_t a, uint64_t b) {
        const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
        return uint64_t(product) ^ uint64_t(product >> 64);
    }

    uint32_t hash_of(const Words& words, const char* name, size_t length) const {
        uint64_t hash = fold(words.first ^ salt, words.second ^ (0x9e3779b97f4a7c15ULL + length));
        for (size_t i = 16; i < length; i += 8) {
            uint64_t word = 0;
            std::memcpy(&word, name + i, length - i < 8 ? length - i : 8);
            hash = fold(hash ^ word, salt ^ 0xff51afd7ed558ccdULL);
        }
        return uint32_t(hash);
    }

    void grow() {
        slots.assign(slots.size() * 2, 0);
        for (size_t number = 0; number < names.size(); ++number) {
            size_t i = names[number].hash & (slots.size() - 1);
            while (slots[i]) i = (i + 1) & (slots.size() - 1);
            slots[i] = int32_t(number + 1);
        }
    }

   public:
    enum : int32_t { EMPTY = 0, XML = 1 };  // two prefixes that every document has
    static constexpr size_t MOST = 1 << 16, MOST_BYTES = 4 << 20;

    explicit ScannedNames(uint64_t salt_ = 0) : slots(256), salt(salt_ | 1) {
        find("", 0, nullptr);
        find("xml", 3, nullptr);
    }

    // Different names have different signatures, unless both are longer than 16 bytes, or by rare chance.
    static uint64_t signature_of(const char* name, size_t length, const char* end) {
        const Words words = words_of(name, length, end);
        return signature_of_words(words.first, words.second, length);
    }

    // One of 64 numbers for a signature; and those of all names whose subjects are in a set. (Some names share a subject's bit:
    // see subject_bit_of_signature().)
    static unsigned number_of(uint64_t signature) { return unsigned(signature * 0x9e3779b97f4a7c15ULL >> 58); }
    static uint64_t numbers_of(uint64_t subjects) { return subjects << 3 >> 3 | subjects >> 58 << 61; }

    ScannedName& operator[](int32_t number) { return names[number]; }
    size_t size() const { return names.size(); }
    bool has_grown() const { return names.size() > MOST / 16 || bytes.size() > MOST_BYTES / 16; }
    bool is_full() const { return names.size() > MOST || bytes.size() > MOST_BYTES; }
    const char* text_of(const ScannedName& name) const { return bytes.data() + name.start; }

    // The number of a name, which is added if it is new. Bytes up to `end` may be read.
    int32_t find(const char* name, size_t length, const char* end) {
        const Words words = words_of(name, length, end ? end : name + length);
        const uint32_t hash = hash_of(words, name, length);
        size_t i = hash & (slots.size() - 1);
        for (; slots[i]; i = (i + 1) & (slots.size() - 1)) {
            const ScannedName& known = names[slots[i] - 1];
            if (known.words[0] == words.first && known.words[1] == words.second && known.length == length &&
                (length <= 16 || std::memcmp(text_of(known) + 16, name + 16, length - 16) == 0))
                return slots[i] - 1;
        }
        return add(words, hash, name, length);
    }

    // Whether `at` begins with a name.
    bool matches(const ScannedName& name, const char* at, const char* end) const {
        if (end - at >= 16) {
            const Words words = words_of(at, name.length, end);
            if (words.first != name.words[0] || words.second != name.words[1]) return false;
            if (name.length <= 16) return true;
        }
        return size_t(end - at) >= name.length && std::memcmp(text_of(name), at, name.length) == 0;
    }

   private:
    __attribute__((noinline)) int32_t add(const Words& words, uint32_t hash, const char* text, size_t length) {
        const char* colon = length ? static_cast<const char*>(std::memchr(text, ':', length)) : nullptr;
        ScannedName name{{words.first, words.second}, hash, uint32_t(length), bytes.size(), 0, EMPTY, -1, -1, 0};
        if (colon) {
            name.prefix = find(text, size_t(colon - text), nullptr);
            name.colon = uint32_t(colon - text);
            name.start = bytes.size();
        }
        bytes.insert(bytes.end(), text, text + length);
        names.push_back(name);
        const int32_t number = int32_t(names.size()) - 1;
        if (names.size() * 2 > slots.size()) {
            grow();
        } else {
            size_t i = hash & (slots.size() - 1);
            while (slots[i]) i = (i + 1) & (slots.size() - 1);
            slots[i] = number + 1;
        }
        return number;
    }
};

}  // namespace xsift
