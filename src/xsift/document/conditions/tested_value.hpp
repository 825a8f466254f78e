// TestedValue: a value (an attribute's, a text's) that tests are tried on, and what is known of it before any is looked up.
#pragma once
#include <cstdint>
#include <cstring>

#include "bytes_table.hpp"
#include "number.hpp"

namespace xsift {

inline __attribute__((noinline)) double any_number_of(const char* data, size_t length) { return xpath_number(data, length); }

// Most numbers are a few digits: fifteen are exact, in whatever way they are added up.
inline double number_of(const char* data, size_t length) {
    if (length - 1 >= 15) return any_number_of(data, length);
    uint64_t value = 0;
    for (size_t i = 0; i < length; ++i) {
        if (!is_digit(data[i])) return any_number_of(data, length);
        value = value * 10 + uint64_t(data[i] - '0');
    }
    return double(value);
}

// Sets of operands as bits, for a look at the value before a look-up: a value whose bit is not there equals none of them.
// (Who writes values that have the bits gets the look-ups, and no more: here is no need for a salt.)
inline uint64_t text_bit(const char* data, size_t length) {
    uint64_t sample = length;
    if (length) {
        const auto byte = [data](size_t at) { return uint64_t(uint8_t(data[at])); };
        sample ^= byte(0) << 40 ^ byte(length / 2) << 48 ^ byte(length - 1) << 56;
    }
    return uint64_t(1) << (fold_product(sample, 0x9e3779b97f4a7c15ULL) >> 58);
}

inline uint64_t number_bit(double number) {
    uint64_t bits;
    number += 0.0;  // -0 is 0
    std::memcpy(&bits, &number, sizeof bits);
    return uint64_t(1) << (fold_product(bits, 0x9e3779b97f4a7c15ULL) >> 58);
}

// A value that is tested, with its hash and its number, each computed at most once.
class TestedValue {
    uint64_t hash = 0;
    uint64_t salt = 0;      // with which it was computed; 0: not yet
    double number = 0;
    bool numbered = false;

   public:
    const char* data;
    size_t length;

    TestedValue(const char* data, size_t length) : data(data), length(length) {}

    uint64_t text_hash(uint64_t with_salt) {
        if (salt != with_salt) hash = hash_bytes(data, length, with_salt);
        salt = with_salt;
        return hash;
    }
    double as_number() {
        if (!numbered) number = number_of(data, length);
        numbered = true;
        return number;
    }
};

}  // namespace xsift
