// AttributeSlots: which tests are asked of an attribute of an element, remembered by the two names.
//
// To find out takes two look-ups in each of the tables, for the element's name and for `*`. Elements of one name have the
// same few attributes, document after document. So what was found is kept, until it is too much.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "condition_tables.hpp"

namespace xsift {

struct AskedSlot {
    int32_t part;          // of the reader's parts
    int32_t slot;
    SlotEquality equality; // how to test it, if only equality is asked for
};

// What is asked of an attribute of an element. It fills a cache line.
struct alignas(64) AskedAttribute {
    uint64_t first = 0, second = 0;   // the first 16 bytes of its name, zeros after its end
    int32_t entry = -1;               // of the element's name; -1: nothing is known here
    uint32_t length = 0;              // of its name
    uint64_t texts = 0, numbers = 0;  // as a SlotEquality has them, of all slots together
    int32_t rest = 0;                 // where the rest of its name is
    int32_t begin = 0, count = 0;     // its slots
    bool equality_only = true;        // all of them ask for equality only

    // Whether the value may pass a test of some slot. Nearly always it is one that nobody asks for.
    bool may_hold(const char* data, size_t size) const {
        return !equality_only || (numbers && numbers & number_bit(number_of(data, size))) ||
               (texts && texts & text_bit(data, size));
    }
};

class AttributeSlots {
   public:
    // What is asked of an attribute, given by its expanded name, for an entry, if that is known: else nullptr. Bytes of the
    // name up to `readable` may be read. What is returned is valid until the next add().
    const AskedAttribute* find(int32_t entry, const char* name, size_t length, const char* readable) const {
        if (table.empty()) return nullptr;
        const Words words = words_of(name, length, readable);
        for (size_t i = place_of(entry, words, name + 16, length); table[i].entry >= 0; i = (i + 1) & (table.size() - 1)) {
            const AskedAttribute& asked = table[i];
            if (asked.entry == entry && asked.first == words.first && asked.second == words.second &&
                asked.length == length &&
                (length <= 16 || std::memcmp(&rests[asked.rest], name + 16, length - 16) == 0))
                return &asked;
        }
        return nullptr;
    }

    // Remembers the slots that an attribute has for an entry, which are not known yet.
    const AskedAttribute& add(int32_t entry, const char* name, size_t length, const std::vector<AskedSlot>& asked_slots) {
        make_room(length);
        const Words words = words_of(name, length, name + length);
        AskedAttribute asked;
        asked.first = words.first;
        asked.second = words.second;
        asked.entry = entry;
        asked.length = uint32_t(length);
        asked.rest = int32_t(rests.size());
        asked.begin = int32_t(slots.size());
        asked.count = int32_t(asked_slots.size());
        for (const AskedSlot& slot : asked_slots) {
            asked.equality_only = asked.equality_only && slot.equality.only;
            asked.texts |= slot.equality.texts;
            asked.numbers |= slot.equality.numbers;
        }
        slots.insert(slots.end(), asked_slots.begin(), asked_slots.end());
        if (length > 16) rests.insert(rests.end(), name + 16, name + length);
        ++used;
        return put(asked);
    }

    const AskedSlot* slots_of(const AskedAttribute& asked) const { return slots.data() + asked.begin; }

   private:
    static constexpr size_t FIRST_SIZE = 64, MOST = 2048, MOST_SLOTS = 1 << 14, MOST_BYTES = 1 << 18;
    std::vector<AskedAttribute> table;   // at most half of it is used
    size_t used = 0;
    std::vector<AskedSlot> slots;
    std::vector<char> rests;             // of names that are longer than 16 bytes
    uint64_t salt = process_salt();

    struct Words {
        uint64_t first, second;
    };

    static uint64_t eight_bytes(const void* from) {
        uint64_t word;
        std::memcpy(&word, from, 8);
        return word;
    }

    // ScannedNames has much the same. As one function for both the compiler makes a vector of the words, and waits for its own
    // store: a quarter more for every name.
    static Words words_of(const char* name, size_t length, const char* readable) {
        static constexpr unsigned char MASK[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                   255, 255, 255, 255, 255, 255, 255, 255};
        Words words{0, 0};
        if (readable - name >= 16) {
            const unsigned char* const mask = MASK + 16 - (length < 16 ? length : 16);
            words.first = eight_bytes(name) & eight_bytes(mask);
            words.second = eight_bytes(name + 8) & eight_bytes(mask + 8);
        } else {
            std::memcpy(&words, name, length < 16 ? length : 16);
        }
        return words;
    }

    __attribute__((noinline)) uint64_t hash_rest(const char* rest, size_t length) const { return hash_bytes(rest, length, salt); }

    size_t place_of(int32_t entry, Words words, const char* rest, size_t length) const {
        const uint64_t more = length > 16 ? hash_rest(rest, length - 16) : 0;
        return fold_product(words.first ^ salt, words.second ^ more ^ uint64_t(uint32_t(entry)) << 20 ^ 0x9e3779b97f4a7c15ULL) &
               (table.size() - 1);
    }

    AskedAttribute& put(const AskedAttribute& asked) {
        size_t i = place_of(asked.entry, {asked.first, asked.second}, rests.data() + asked.rest, asked.length);
        while (table[i].entry >= 0) i = (i + 1) & (table.size() - 1);
        return table[i] = asked;
    }

    // Makes room for an attribute: forgets all where there are too many, for a document may have any number of them.
    void make_room(size_t length) {
        if (used == MOST || slots.size() > MOST_SLOTS || rests.size() + length > MOST_BYTES) {
            used = 0;
            table.clear();
            slots.clear();
            rests.clear();
        }
        if ((used + 1) * 2 <= table.size()) return;
        std::vector<AskedAttribute> before(std::max(2 * table.size(), FIRST_SIZE));
        before.swap(table);
        for (const AskedAttribute& asked : before)
            if (asked.entry >= 0) put(asked);
    }
};

}  // namespace xsift
