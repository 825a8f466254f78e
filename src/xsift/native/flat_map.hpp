// FlatMap: an open-addressing hash map from a 64-bit key to a small value.
//
// The engines look up (state, symbol) pairs on every start tag. std::unordered_map follows a
// pointer for each look-up; this one touches one cache line. Linear probing, power-of-two
// capacity, at most 2/3 full, backward-shift deletion (so no tombstones slow later look-ups).
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "array.hpp"

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

    size_t home(uint64_t key) const { return mix64(key) & (slots.size() - 1); }

    void rehash(size_t capacity) {
        Array<Slot> old;
        old.swap(slots);
        slots.assign(capacity, Slot{EMPTY, Value()});
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

    Bytes saved() const { return slots.saved(); }
    void restore(Bytes saved) {
        slots.restore(saved);
        if (slots.size() & (slots.size() - 1)) throw std::invalid_argument("a saved table has a wrong size");
        used = 0;
        for (const Slot& slot : slots) used += slot.key != EMPTY;
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
