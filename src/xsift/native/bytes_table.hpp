// BytesTable: numbers distinct byte strings 0, 1, 2, … and finds them again.
//
// The strings lie end to end in one blob, as in an Arrow string array, so that a table can be saved,
// mapped and handed to Arrow without making Python objects. Symbols, patterns and subscription ids
// are all kept this way. What is saved is the strings; the hash table over them is made anew, with this process's salt, when a
// restored table is first asked for one. (So a saved table has the same bytes whoever saves it.)
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "array.hpp"
#include "flat_map.hpp"
#include "salt.hpp"

namespace xsift {

inline uint64_t fold_product(uint64_t a, uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return uint64_t(product) ^ uint64_t(product >> 64);
}

inline uint32_t load_word(const char* from) {
    uint32_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

// Who does not know the salt cannot find strings with the same hash: each word is multiplied by a secret.
inline uint64_t hash_bytes(const char* data, size_t length, uint64_t salt = 0) {
    const uint64_t secret = (salt * 0x9e3779b97f4a7c15ULL) ^ 0xc4ceb9fe1a85ec53ULL;
    uint64_t h = salt ^ (0x9e3779b97f4a7c15ULL + length * 0xff51afd7ed558ccdULL);
    while (length >= 8) {
        uint64_t word;
        std::memcpy(&word, data, 8);
        h = fold_product(h ^ word, secret);
        data += 8;
        length -= 8;
    }
    // What is left, without a loop: the bytes at both ends of it may overlap.
    uint64_t tail = 0;
    if (length >= 4) tail = load_word(data) | uint64_t(load_word(data + length - 4)) << 32;
    else if (length) tail = uint8_t(data[0]) | uint8_t(data[length / 2]) << 8 | uint8_t(data[length - 1]) << 16;
    return mix64(fold_product(h ^ tail, secret));
}

// For the standard library's tables of strings that come from strangers.
class SaltedHash {
    uint64_t salt = process_salt();

   public:
    size_t operator()(std::string_view text) const { return hash_bytes(text.data(), text.size(), salt); }
};

class BytesTable {
   public:  // the arrays are public to be saved, and to be made views of saved ones
    Array<char> blob;
    Array<int64_t> ends;     // ends[i] is where string i ends; it begins at ends[i - 1], or 0

   private:
    // The hash table. `mutable`, for a restored table is indexed by the first look-up: its owner sees to it that no other
    // thread looks meanwhile.
    // A slot has the upper half of a string's hash beside its number + 1, or is 0: so a string is looked at only if it is most
    // likely the one that is looked for, and growing touches none of them.
    mutable Array<uint64_t> slots;
    uint64_t salt = process_salt();

    int64_t begin_of(int64_t i) const { return i ? ends[i - 1] : 0; }
    uint64_t hash_of(const char* data, size_t length) const { return hash_bytes(data, length, salt); }
    static uint32_t home_of(uint64_t hash_or_slot) { return static_cast<uint32_t>(hash_or_slot >> 32); }
    static int32_t number_of(uint64_t slot) { return static_cast<int32_t>(static_cast<uint32_t>(slot)) - 1; }

    size_t locate(const char* data, size_t length, uint64_t hash) const {
        const size_t mask = slots.size() - 1;
        const uint32_t home = home_of(hash);
        size_t i = home & mask;
        for (; slots[i]; i = (i + 1) & mask) {
            const int64_t index = number_of(slots[i]);
            if (home_of(slots[i]) == home && length_of(index) == length &&
                (length == 0 || std::memcmp(data_of(index), data, length) == 0))
                break;
        }
        return i;
    }

    void place(uint64_t slot) const {
        const size_t mask = slots.size() - 1;
        size_t i = home_of(slot) & mask;
        while (slots[i]) i = (i + 1) & mask;
        *slots.edit(i) = slot;
    }

    static uint64_t slot_of(uint64_t hash, size_t index) {
        return (hash >> 32 << 32) | static_cast<uint32_t>(index + 1);
    }

    __attribute__((noinline)) void grow(size_t capacity) const {
        Array<uint64_t> before;
        before.assign(capacity, 0);
        before.swap(slots);
        for (const uint64_t slot : before)
            if (slot) place(slot);
    }

    // Indexes what was restored.
    __attribute__((noinline)) void index() const {
        size_t capacity = 16;
        while ((ends.size() + 1) * 3 > capacity * 2) capacity *= 2;
        slots.assign(capacity, 0);
        for (size_t i = 0; i < ends.size(); ++i) place(slot_of(hash_of(data_of(i), length_of(i)), i));
    }

   public:
    int64_t size() const { return static_cast<int64_t>(ends.size()); }
    size_t length_of(int64_t i) const { return static_cast<size_t>(ends[i] - begin_of(i)); }
    const char* data_of(int64_t i) const { return blob.data() + begin_of(i); }
    int64_t offset_of(int64_t i) const { return begin_of(i); }
    int64_t blob_size() const { return static_cast<int64_t>(blob.size()); }
    size_t bytes() const {
        return blob.bytes() + ends.bytes() + slots.bytes();
    }

    // The number of the string, or -1.
    int32_t find(const char* data, size_t length) const {
        if (slots.empty()) {
            if (ends.empty()) return -1;
            index();
        }
        return number_of(slots[locate(data, length, hash_of(data, length))]);
    }

    // The number of the string, which is added if it is new (then it equals the former size()).
    int32_t add(const char* data, size_t length) {
        if (slots.empty()) index();
        if ((ends.size() + 1) * 3 > slots.size() * 2) grow(slots.size() * 2);
        const uint64_t hash = hash_of(data, length);
        const size_t i = locate(data, length, hash);
        if (slots[i]) return number_of(slots[i]);
        blob.resize(size_t(begin_of(size())));  // what one left there for which memory ran out
        blob.append(data, length);
        ends.push_back(static_cast<int64_t>(blob.size()));
        *slots.edit(i) = slot_of(hash, ends.size() - 1);
        return static_cast<int32_t>(ends.size() - 1);
    }

    // Becomes the table that was saved as these two. Whether the ends ascend within the blob is for the caller to check.
    void restore(Bytes saved_blob, Bytes saved_ends) {
        blob.restore(saved_blob);
        ends.restore(saved_ends);
        slots.release();
    }
};

}  // namespace xsift
