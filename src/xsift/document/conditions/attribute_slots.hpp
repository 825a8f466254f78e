// AttributeSlots: which tests are asked of an attribute of an element, remembered by the two names.
//
// To find out takes two look-ups in each of the tables, for the element's name and for `*`. Elements of one name have the
// same few attributes, document after document. So what was found is kept, in a table of fixed size where a newer entry
// takes the place of an older one.
#pragma once
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

class AttributeSlots {
   public:
    struct Asked {
        const AskedSlot* begin;
        const AskedSlot* end;             // both valid until the next look-up
    };

    // `find(list)` lists the slots of an attribute, given by its expanded name, for an entry. Bytes of the name up to
    // `readable` may be read.
    template <class Find>
    Asked find(int32_t entry, const char* name, size_t length, const char* readable, Find&& find) {
        if (length > LONGEST || length == 0) {
            list.clear();
            find(list);
            return Asked{list.data(), list.data() + list.size()};
        }
        uint64_t words[2] = {0, 0};
        if (readable - name >= ptrdiff_t(LONGEST)) {
            static constexpr unsigned char MASK[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                       255, 255, 255, 255, 255, 255, 255, 255};
            uint64_t masks[2];
            std::memcpy(words, name, LONGEST);
            std::memcpy(masks, MASK + LONGEST - length, LONGEST);
            words[0] &= masks[0];
            words[1] &= masks[1];
        } else {
            std::memcpy(words, name, length);
        }
        // A name has no zero bytes: the words tell its length.
        const uint64_t hash = fold_product(words[0] ^ uint64_t(uint32_t(entry)) << 20 ^ 0x9e3779b97f4a7c15ULL,
                                           words[1] ^ 0xff51afd7ed558ccdULL);
        if (table.empty()) table.resize(SIZE, Known{{0, 0}, -1, 0, 0});
        Known& known = table[hash % SIZE];
        if (known.entry != entry || known.name[0] != words[0] || known.name[1] != words[1]) {
            if (pool.size() > MOST) {
                pool.clear();
                table.assign(SIZE, Known{{0, 0}, -1, 0, 0});
            }
            list.clear();
            find(list);
            known = Known{{words[0], words[1]}, entry, int32_t(pool.size()), int32_t(list.size())};
            pool.insert(pool.end(), list.begin(), list.end());
        }
        return Asked{pool.data() + known.begin, pool.data() + known.begin + known.count};
    }

   private:
    static constexpr size_t LONGEST = 16, SIZE = 1024, MOST = 1 << 14;
    struct Known {
        uint64_t name[2];                 // zeros after its end
        int32_t entry;                    // -1: nothing is known here
        int32_t begin, count;             // in `pool`
    };
    std::vector<Known> table;
    std::vector<AskedSlot> pool, list;
};

}  // namespace xsift
