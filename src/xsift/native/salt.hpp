// Salt: a secret number of this process, which the hash tables mix into their keys.
//
// Names, values and ids come from strangers. Whoever knows how a table hashes can write a thousand names that all fall into one place,
// and each look-up then walks past a thousand entries. With a secret in the hash nobody knows how it hashes.
//
// Kernels are libraries of their own, and each has its own secret; so a table keeps the one that it was made with.
#pragma once
#include <cstdint>
#include <random>

namespace xsift {

inline uint64_t process_salt() {
    static const uint64_t salt = [] {
        std::random_device device;
        return (uint64_t(device()) << 32 | device()) | 1;
    }();
    return salt;
}

}  // namespace xsift
