// BytesTable: numbers distinct byte strings 0, 1, 2, … and finds them again.
//
// The strings lie end to end in one blob, as in an Arrow string array, so that a table can be saved,
// mapped and handed to Arrow without a Python object a string. Symbols, patterns and subscription ids
// are all kept this way.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "array.hpp"
#include "flat_map.hpp"

namespace xsift {

inline uint64_t hash_bytes(const char* data, size_t length) {
    uint64_t h = 0x9e3779b97f4a7c15ULL ^ (length * 0xff51afd7ed558ccdULL);
    while (length >= 8) {
        uint64_t word;
        std::memcpy(&word, data, 8);
        h = mix64(h ^ word);
        data += 8;
        length -= 8;
    }
    uint64_t tail = 0;
    if (length) std::memcpy(&tail, data, length);
    return mix64(h ^ tail);
}

class BytesTable {
   public:  // the arrays are public to be saved, and to be made views of saved ones
    Array<char> blob;
    Array<int64_t> ends;     // ends[i] is where string i ends; it begins at ends[i - 1], or 0
    Array<int32_t> slots;    // index + 1, or 0 where empty
    Array<uint32_t> hashes;  // of string i: spares most comparisons, and the hashing on growth

   private:
    int64_t begin_of(int64_t i) const { return i ? ends[i - 1] : 0; }

    size_t locate(const char* data, size_t length, uint32_t hash) const {
        const size_t mask = slots.size() - 1;
        size_t i = hash & mask;
        for (; slots[i]; i = (i + 1) & mask) {
            const int64_t index = slots[i] - 1;
            if (hashes[index] == hash && length_of(index) == length &&
                (length == 0 || std::memcmp(data_of(index), data, length) == 0))
                break;
        }
        return i;
    }

    void grow(size_t capacity) {
        slots.assign(capacity, 0);
        const size_t mask = capacity - 1;
        for (size_t index = 0; index < hashes.size(); ++index) {
            size_t i = hashes[index] & mask;
            while (slots[i]) i = (i + 1) & mask;
            *slots.edit(i) = static_cast<int32_t>(index + 1);
        }
    }

   public:
    int64_t size() const { return static_cast<int64_t>(ends.size()); }
    size_t length_of(int64_t i) const { return static_cast<size_t>(ends[i] - begin_of(i)); }
    const char* data_of(int64_t i) const { return blob.data() + begin_of(i); }
    int64_t offset_of(int64_t i) const { return begin_of(i); }
    int64_t blob_size() const { return static_cast<int64_t>(blob.size()); }
    size_t bytes() const {
        return blob.bytes() + ends.bytes() + slots.bytes() + hashes.bytes();
    }

    // The number of the string, or -1.
    int32_t find(const char* data, size_t length) const {
        if (slots.empty()) return -1;
        return slots[locate(data, length, static_cast<uint32_t>(hash_bytes(data, length)))] - 1;
    }

    // The number of the string, which is added if it is new (then it equals the former size()).
    int32_t add(const char* data, size_t length) {
        if (slots.size() < 16 || (ends.size() + 1) * 3 > slots.size() * 2)
            grow(slots.size() < 16 ? 16 : slots.size() * 2);
        const uint32_t hash = static_cast<uint32_t>(hash_bytes(data, length));
        const size_t i = locate(data, length, hash);
        if (slots[i]) return slots[i] - 1;
        blob.append(data, length);
        ends.push_back(static_cast<int64_t>(blob.size()));
        hashes.push_back(hash);
        *slots.edit(i) = static_cast<int32_t>(ends.size());
        return slots[i] - 1;
    }
};

}  // namespace xsift
