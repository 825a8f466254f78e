// AttributeSlots: which tests are asked of an attribute of an element, remembered by the two names.
//
// To find out takes two look-ups in each of the tables, for the element's name and for `*`. Elements of one name have the
// same few attributes, document after document. So what was found is kept, in a table of fixed size where a newer entry
// takes the place of an older one.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "condition.hpp"
#include "condition_tables.hpp"

namespace xsift {

struct AskedSlot {
    int32_t part;   // of the reader's parts
    int32_t slot;
};

class AttributeSlots {
   public:
    struct Asked {
        uint64_t subject;                 // the bit of conditions on this attribute
        const AskedSlot* begin;
        const AskedSlot* end;             // valid until the next look-up
    };

    // `find(name, length, list)` lists the slots of an attribute, given by its expanded name, for an entry. Bytes up to
    // `readable` may be read.
    template <class Find>
    Asked find(int32_t entry, const char* name, size_t length, const char* readable, Find&& find) {
        if (length > LONGEST) {
            list.clear();
            find(list);
            return Asked{subject_bit(SUBJECT_ATTRIBUTE, name, length), list.data(), list.data() + list.size()};
        }
        Known wanted{{0, 0}, entry, int32_t(length), 0, {}};
        if (readable - name >= 16 && length) {
            static constexpr unsigned char MASK[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                       255, 255, 255, 255, 255, 255, 255, 255};
            uint64_t words[2], masks[2];
            std::memcpy(words, name, 16);
            std::memcpy(masks, MASK + 16 - length, 16);
            wanted.name[0] = words[0] & masks[0];
            wanted.name[1] = words[1] & masks[1];
        } else {
            std::memcpy(wanted.name, name, length);
        }
        const uint64_t hash = fold(wanted.name[0] ^ uint64_t(uint32_t(entry)) << 20 ^ 0x9e3779b97f4a7c15ULL,
                                   wanted.name[1] ^ 0xff51afd7ed558ccdULL ^ length);
        if (table.empty()) table.resize(SIZE, Known{{0, 0}, -1, 0, 0, {}});
        Known& known = table[hash % SIZE];
        if (known.entry != entry || known.length != int32_t(length) || known.name[0] != wanted.name[0] ||
            known.name[1] != wanted.name[1]) {
            known = wanted;
            known.subject = subject_bit(SUBJECT_ATTRIBUTE, name, length);
            find(known.slots);
        }
        return Asked{known.subject, known.slots.data(), known.slots.data() + known.slots.size()};
    }

    void forget() { table.clear(); }

   private:
    static constexpr size_t LONGEST = 16, SIZE = 2048;
    struct Known {
        uint64_t name[2];
        int32_t entry;
        int32_t length;
        uint64_t subject;
        std::vector<AskedSlot> slots;
    };
    std::vector<Known> table;
    std::vector<AskedSlot> list;
};

}  // namespace xsift
