// SeenTable: a set that is emptied at no cost, again and again: what was added in another round does not count.
#pragma once
#include <cstdint>
#include <vector>

#include "flat_map.hpp"

namespace xsift::sift {

class SeenTable {
    struct Slot {
        uint64_t first;
        int32_t second;
        uint64_t round;   // 0: never used
    };
    std::vector<Slot> slots;
    uint64_t current = 0;
    size_t used = 0;      // in the current round

    Slot& locate(uint64_t first, int32_t second) {
        size_t i = mix64(first * 31 + uint32_t(second)) & (slots.size() - 1);
        while (slots[i].round == current && (slots[i].first != first || slots[i].second != second))
            i = (i + 1) & (slots.size() - 1);
        return slots[i];
    }

   public:
    // Adds a pair in a round, which is not 0. Returns whether it is new there.
    bool add(uint64_t first, int32_t second, uint64_t round) {
        if (round != current) {
            current = round;
            used = 0;
        }
        if ((used + 1) * 2 > slots.size()) grow();
        Slot& slot = locate(first, second);
        if (slot.round == round) return false;
        slot = Slot{first, second, round};
        ++used;
        return true;
    }

   private:
    void grow() {
        std::vector<Slot> old(slots.empty() ? 64 : slots.size() * 2, Slot{0, 0, 0});
        old.swap(slots);
        for (const Slot& slot : old)
            if (slot.round == current && current) locate(slot.first, slot.second) = slot;
    }
};

}  // namespace xsift::sift
