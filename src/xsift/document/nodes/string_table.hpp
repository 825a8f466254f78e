// StringTable: numbers the distinct byte strings of one document, and is emptied for the next.
//
// BytesTable is made to be saved and mapped, and is thrown away whole. A tree is built for every document that has
// something to evaluate, so its tables keep their memory.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bytes_table.hpp"

namespace xsift {

class StringTable {
    static constexpr size_t KEPT = 1 << 12;  // slots that a document may leave behind

    std::string blob;
    std::vector<uint32_t> ends;
    std::vector<uint32_t> hashes;
    std::vector<int32_t> slots;  // number + 1, or 0 where empty

    SaltedHash salted;           // of the kernel that builds the tree, for that which evaluates

    uint32_t hash_of(std::string_view text) const { return uint32_t(salted(text)); }

    size_t locate(std::string_view text, uint32_t hash) const {
        const size_t mask = slots.size() - 1;
        size_t i = hash & mask;
        for (; slots[i]; i = (i + 1) & mask) {
            const int32_t number = slots[i] - 1;
            if (hashes[number] == hash && (*this)[number] == text) break;
        }
        return i;
    }

    void grow(size_t capacity) {
        slots.assign(capacity, 0);
        for (size_t number = 0; number < hashes.size(); ++number) {
            size_t i = hashes[number] & (capacity - 1);
            while (slots[i]) i = (i + 1) & (capacity - 1);
            slots[i] = int32_t(number) + 1;
        }
    }

   public:
    StringTable() : slots(64, 0) {}

    void clear() {
        if (slots.size() > KEPT) {
            *this = StringTable();
            return;
        }
        std::fill(slots.begin(), slots.end(), 0);
        blob.clear();
        ends.clear();
        hashes.clear();
    }

    int32_t size() const { return int32_t(ends.size()); }

    // Valid until the next string is added.
    std::string_view operator[](int32_t number) const {
        const uint32_t begin = number ? ends[number - 1] : 0;
        return {blob.data() + begin, ends[number] - begin};
    }

    // The number of the string, or -1.
    int32_t find(std::string_view text) const {
        return slots[locate(text, hash_of(text))] - 1;
    }

    // The number of the string, which is added if it is new.
    int32_t add(std::string_view text) {
        if ((ends.size() + 1) * 3 > slots.size() * 2) grow(slots.size() * 2);
        const uint32_t hash = hash_of(text);
        const size_t i = locate(text, hash);
        if (slots[i]) return slots[i] - 1;
        blob.append(text);
        ends.push_back(uint32_t(blob.size()));
        hashes.push_back(hash);
        return (slots[i] = int32_t(ends.size())) - 1;
    }

    size_t bytes() const {
        return blob.capacity() + (ends.capacity() + hashes.capacity() + slots.capacity()) * sizeof(int32_t);
    }
};

}  // namespace xsift
