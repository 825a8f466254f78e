// Thresholds: the tests `value < n` for many n, kept sorted by n, so that those that hold are one range.
//
// One sorted array would move half of itself for each test that comes or goes. The array is cut into blocks of a
// few hundred entries: a change moves entries of one block, and a range is still read in memory order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xsift {

class Thresholds {
    struct Entry {
        double number;
        int32_t test;
        bool operator<(const Entry& other) const {
            return number != other.number ? number < other.number : test < other.test;
        }
    };
    static constexpr size_t LARGEST = 512;     // entries of a block
    std::vector<std::vector<Entry>> blocks;    // ascending, none empty

    // The first block whose last entry is not less: where the entry is, or belongs.
    size_t block_of(const Entry& entry) const {
        size_t low = 0, high = blocks.size();
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (blocks[middle].back() < entry) low = middle + 1;
            else high = middle;
        }
        return low;
    }

   public:
    void add(double number, int32_t test) {  // nothing is less or greater than NaN: it is left out
        if (number != number) return;
        const Entry entry{number, test};
        if (blocks.empty()) {
            blocks.push_back({entry});
            return;
        }
        const size_t i = std::min(block_of(entry), blocks.size() - 1);
        blocks[i].insert(std::lower_bound(blocks[i].begin(), blocks[i].end(), entry), entry);
        if (blocks[i].size() > LARGEST) {
            std::vector<Entry> upper(blocks[i].begin() + LARGEST / 2, blocks[i].end());
            blocks[i].resize(LARGEST / 2);
            blocks.insert(blocks.begin() + i + 1, std::move(upper));
        }
    }

    void remove(double number, int32_t test) {
        if (number != number) return;
        const Entry entry{number, test};
        const size_t i = block_of(entry);
        if (i == blocks.size()) return;
        const auto found = std::lower_bound(blocks[i].begin(), blocks[i].end(), entry);
        if (found == blocks[i].end() || entry < *found) return;
        blocks[i].erase(found);
        if (blocks[i].empty()) blocks.erase(blocks.begin() + i);
    }

    // The tests with thresholds above the value; also those at it if `equal`.
    template <class Hold>
    void above(double value, bool equal, Hold&& hold) const {
        for (size_t i = blocks.size(); i-- > 0;) {
            const auto& block = blocks[i];
            for (size_t k = block.size(); k-- > 0;) {
                if (!(block[k].number > value || (equal && block[k].number == value))) return;
                hold(block[k].test);
            }
        }
    }

    // The tests with thresholds below the value; also those at it if `equal`.
    template <class Hold>
    void below(double value, bool equal, Hold&& hold) const {
        for (const auto& block : blocks) {
            for (const Entry& entry : block) {
                if (!(entry.number < value || (equal && entry.number == value))) return;
                hold(entry.test);
            }
        }
    }

    size_t bytes() const {
        size_t sum = blocks.capacity() * sizeof(blocks[0]);
        for (const auto& block : blocks) sum += block.capacity() * sizeof(Entry);
        return sum;
    }
};

}  // namespace xsift
