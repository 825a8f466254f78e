// Names that fall into one place of an unsalted table are spread in a salted one. Prints how many places they take in each.
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "bytes_table.hpp"
#include "flat_map.hpp"

using namespace xsift;

int main() {
    const uint64_t mask = 0xfff;
    std::vector<std::string> names;
    for (int i = 0; names.size() < 100; ++i) {
        const std::string name = "a-name-that-is-long-" + std::to_string(i);
        if ((hash_bytes(name.data(), name.size()) & mask) == 7) names.push_back(name);
    }
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; keys.size() < 100; ++i)
        if ((mix64(i) & mask) == 7) keys.push_back(i);
    const uint64_t salt = process_salt();
    std::set<uint64_t> plain, salted, plain_keys, salted_keys;
    for (const std::string& name : names) {
        plain.insert(hash_bytes(name.data(), name.size()) & mask);
        salted.insert(hash_bytes(name.data(), name.size(), salt) & mask);
    }
    for (const uint64_t key : keys) {
        plain_keys.insert(mix64(key) & mask);
        salted_keys.insert(mix64(key ^ salt) & mask);
    }
    // The tables work all the same, before they are saved and after.
    BytesTable table;
    for (size_t i = 0; i < names.size(); ++i)
        if (table.add(names[i].data(), names[i].size()) != int32_t(i)) return 1;
    BytesTable again;
    again.restore(table.blob.saved(), table.ends.saved());
    for (size_t i = 0; i < names.size(); ++i)
        if (again.find(names[i].data(), names[i].size()) != int32_t(i)) return 2;
    if (again.find("x", 1) != -1 || again.add("x", 1) != int32_t(names.size())) return 3;
    FlatMap<int32_t> map;
    for (size_t i = 0; i < keys.size(); ++i) map.put(keys[i], int32_t(i));
    const Bytes saved = map.saved();
    FlatMap<int32_t> restored;
    restored.restore(saved);
    for (size_t i = 0; i < keys.size(); ++i)
        if (restored.get(keys[i], -1) != int32_t(i)) return 4;
    if (restored.get(1ULL << 40, -1) != -1 || !restored.within(0, 100) || restored.within(0, 99)) return 5;
    for (size_t i = 0; i < 1000; ++i) restored.put((1ULL << 40) + i, 1);  // it grows, and takes a salt
    for (size_t i = 0; i < keys.size(); ++i)
        if (restored.get(keys[i], -1) != int32_t(i)) return 6;
    for (size_t i = 0; i < keys.size(); ++i)
        if (!restored.erase(keys[i]) || restored.find(keys[i])) return 7;
    std::printf("%zu %zu %zu %zu\n", plain.size(), salted.size(), plain_keys.size(), salted_keys.size());
}
