// FreeNumbers: numbers that were given back, to be given out again.
//
// Patterns come and go, and an engine numbers what belongs to them: keys, paths, lists. The arrays by number stay small
// if a number is used again. This is for numbers whose entry has no room for a link: where an entry has, the free ones
// are chained through it, which costs no memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xsift {

class FreeNumbers {
    std::vector<int32_t> numbers;

   public:
    // The number that was given back last; without any, `next`, which was never given out.
    int32_t take(size_t next) {
        if (numbers.empty()) return static_cast<int32_t>(next);
        int32_t number = numbers.back();
        numbers.pop_back();
        return number;
    }

    void give_back(int32_t number) { numbers.push_back(number); }
    void clear() { numbers.clear(); }
    size_t bytes() const { return numbers.capacity() * sizeof(int32_t); }
};

}  // namespace xsift
