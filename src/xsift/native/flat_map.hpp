// FlatMap: an open-addressing hash map from a 64-bit key to a small value.
//
// The engines look up (state, symbol) pairs on every start tag. std::unordered_map follows a
// pointer for each look-up; this one touches one cache line. Linear probing, power-of-two
// capacity, at most 2/3 full, backward-shift deletion (so no tombstones slow later look-ups).
//
// Keys are salted (salt.hpp). A saved map is not: it has the same bytes whoever saves it, and can be used where it lies; it
// takes the salt of its process when it grows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "array.hpp"
#include "salt.hpp"

namespace xsift {

inline uint64_t mix64(uint64_t x) {  // finaliser of MurmurHash3: every input bit reaches every output bit
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    x ^= x >> 33;
    return x;
}

inline uint64_t pack(int32_t high, int32_t low) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32) | static_cast<uint32_t>(low);
}

template <class Value>
class FlatMap {
    struct Slot {
        uint64_t key;
        Value value;
    };
    Array<Slot> slots;
    static constexpr uint64_t EMPTY = ~0ULL;  // pack(-1, -1): never a key
    size_t used = 0;
    uint64_t salt = process_salt();

    size_t home(uint64_t key) const { return mix64(key ^ salt) & (slots.size() - 1); }

    void rehash(size_t capacity) {
        Array<Slot> old;
        old.assign(capacity, Slot{EMPTY, Value()});  // where there is no memory for it, all stays as it is
        old.swap(slots);
        salt = process_salt();
        for (const Slot& slot : old)
            if (slot.key != EMPTY) *slots.edit(locate(slot.key)) = slot;
    }

    // The slot that holds the key, or the empty one where it belongs.
    size_t locate(uint64_t key) const {
        size_t i = home(key);
        while (slots[i].key != EMPTY && slots[i].key != key) i = (i + 1) & (slots.size() - 1);
        return i;
    }

   public:
    FlatMap() = default;

    size_t size() const { return used; }
    size_t bytes() const { return slots.bytes(); }

    void clear() {
        slots.release();
        used = 0;
    }

    // A copy without salt, whose bytes depend on the keys and values alone: on the way from its home on, a key lets greater
    // ones pass, so each has its place whatever came before (Amble and Knuth's ordered hash tables).
    Bytes saved() const {
        const size_t size = slots.size();
        auto copy = std::make_shared<Array<char>>();
        copy->assign(size * sizeof(Slot), '\0');  // what lies between members is saved, too
        Slot* const to = size ? reinterpret_cast<Slot*>(copy->edit(0)) : nullptr;
        for (size_t i = 0; i < size; ++i) to[i].key = EMPTY;
        for (const Slot& slot : slots) {
            if (slot.key == EMPTY) continue;
            uint64_t key = slot.key;
            Value value = slot.value;
            size_t i = mix64(key) & (size - 1);
            for (; to[i].key != EMPTY; i = (i + 1) & (size - 1)) {
                if (to[i].key > key) {
                    std::swap(to[i].key, key);
                    std::swap(to[i].value, value);
                }
            }
            to[i].key = key;
            to[i].value = value;
        }
        return Bytes{copy->data(), copy->size(), copy};
    }
    void restore(Bytes saved) {
        slots.restore(saved);
        used = 0;
        for (const Slot& slot : slots) used += slot.key != EMPTY;
        if (slots.size() & (slots.size() - 1) || (used && used >= slots.size()))
            throw std::invalid_argument("a saved table has a wrong size");
        salt = 0;
    }
    // Whether all values are at least `low` and less than `end`: for those who restore.
    bool within(int64_t low, int64_t end) const {
        for (const Slot& slot : slots)
            if (slot.key != EMPTY && !(int64_t(slot.value) >= low && int64_t(slot.value) < end)) return false;
        return true;
    }

    // Marks all values, which are numbers less than `size`, in an array of that size. False if one is not, or was marked before.
    bool mark_values(uint8_t* marks, size_t size) const {
        for (const Slot& slot : slots) {
            if (slot.key == EMPTY) continue;
            if (!(slot.value >= 0 && size_t(slot.value) < size) || marks[slot.value]) return false;
            marks[slot.value] = 1;
        }
        return true;
    }

    // Whether is_fine(key, value) for all: likewise.
    template <class IsFine>
    bool all(IsFine&& is_fine) const {
        for (const Slot& slot : slots)
            if (slot.key != EMPTY && !is_fine(slot.key, slot.value)) return false;
        return true;
    }

    // Pointer to the value, or NULL. Valid until the next insertion or removal.
    const Value* find(uint64_t key) const {
        if (slots.empty()) return nullptr;
        const Slot& slot = slots[locate(key)];
        return slot.key == key ? &slot.value : nullptr;
    }

    // Asks for the memory that a look-up of the key will need.
    void prefetch(uint64_t key) const {
        if (!slots.empty()) __builtin_prefetch(slots.data() + home(key));
    }

    Value get(uint64_t key, Value otherwise) const {
        const Value* found = find(key);
        return found ? *found : otherwise;
    }

    void put(uint64_t key, Value value) {
        if (slots.size() < 8 || (used + 1) * 3 > slots.size() * 2) rehash(slots.empty() ? 8 : slots.size() * 2);
        Slot& slot = *slots.edit(locate(key));
        if (slot.key == EMPTY) {
            slot.key = key;
            ++used;
        }
        slot.value = value;
    }

    bool erase(uint64_t key) {
        if (slots.empty()) return false;
        size_t hole = locate(key);
        if (slots[hole].key != key) return false;
        const size_t mask = slots.size() - 1;
        for (size_t i = (hole + 1) & mask; slots[i].key != EMPTY; i = (i + 1) & mask) {
            if (((i - home(slots[i].key)) & mask) >= ((i - hole) & mask)) {
                *slots.edit(hole) = slots[i];
                hole = i;
            }
        }
        slots.edit(hole)->key = EMPTY;
        --used;
        return true;
    }
};

}  // namespace xsift
