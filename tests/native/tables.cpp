// Names that fall into one place of an unsalted table are spread in a salted one. Prints how many places they take in each.
#include <cstdio>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <vector>

#include <sys/resource.h>

#include "bytes_table.hpp"
#include "flat_map.hpp"

using namespace xsift;

// An array grows far, is copied and moved, and copies what it views before it changes it.
int check_arrays() {
    Array<int64_t> numbers;
    const int64_t many = 3 << 20;  // 24 MB: large pages, and moves
    for (int64_t i = 0; i < many; ++i) numbers.push_back(i);
    for (int64_t i = 0; i < many; ++i)
        if (numbers[i] != i) return 20;
    while (numbers.size() < numbers.bytes() / sizeof(int64_t)) numbers.push_back(0);
    numbers.push_back(numbers[7]);  // its own element, when it has to grow
    if (numbers.back() != 7) return 21;
    numbers.resize(3);
    Array<int64_t> view;
    view.restore(numbers.saved());
    if (view.bytes() != 0 || view.data() != numbers.data()) return 22;
    Array<int64_t> copy(view), moved(std::move(view));
    if (!view.empty() || moved.data() != numbers.data() || copy.data() == numbers.data() || copy[2] != 2) return 23;
    *moved.edit(1) = 10;
    moved.append(copy.data(), 3);
    if (numbers[1] != 1 || moved[1] != 10 || moved.size() != 6 || moved[5] != 2) return 24;
    copy = moved;
    moved.clear();
    moved.push_back(5);
    if (copy.size() != 6 || copy[1] != 10 || moved.size() != 1 || moved[0] != 5) return 25;
    copy.restore(moved.saved());
    copy.push_back(6);
    copy.pop_back();
    if (copy.size() != 1 || copy[0] != 5 || moved.size() != 1) return 26;
    copy.assign(4, 9);
    copy.swap(moved);
    if (moved.size() != 4 || moved[3] != 9 || copy[0] != 5) return 27;
    copy.restore(Bytes{nullptr, 0, nullptr});
    copy.push_back(1);
    return copy.size() == 1 && copy[0] == 1 ? 0 : 28;
}

// Adds to a table until there is no memory for more.
template <class Add>
bool runs_out(Add&& add) {
    struct rlimit usual, none;
    getrlimit(RLIMIT_AS, &usual);
    none = usual;
    none.rlim_cur = 1 << 16;
    setrlimit(RLIMIT_AS, &none);
    bool failed = false;
    try {
        for (int i = 0; i < 1 << 20; ++i) add();
    } catch (const std::bad_alloc&) {
        failed = true;
    }
    setrlimit(RLIMIT_AS, &usual);
    return failed;
}

// A table that could not grow holds what it held, and can be used.
int check_memory() {
    FlatMap<int32_t> map;
    int32_t number = 0;
    const auto put = [&] {
        map.put(uint64_t(number), number);
        ++number;
    };
    while (number < 200'000) put();
    if (!runs_out(put)) return 30;
    for (int32_t i = 0; i < number; ++i)
        if (map.get(uint64_t(i), -1) != i) return 31;
    BytesTable table;
    table.add("abc", 3);
    const auto add = [&] {
        const std::string text = std::to_string(100'000 + table.size());
        table.add(text.data(), text.size());
    };
    while (table.size() < 1 << 16) add();  // where numbers take more memory, and what they are about does not
    if (!runs_out(add)) return 32;
    const int32_t last = table.add("another", 7);
    return std::string(table.data_of(last), table.length_of(last)) == "another" ? 0 : 33;
}

int main() {
    const uint64_t mask = 0xfff;
    std::vector<std::string> names;
    for (int i = 0; names.size() < 100; ++i) {
        const std::string name = "a-name-that-is-long-" + std::to_string(i);
        if ((hash_bytes(name.data(), name.size()) >> 32 & mask) == 7) names.push_back(name);
    }
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; keys.size() < 100; ++i)
        if ((mix64(i) & mask) == 7) keys.push_back(i);
    const uint64_t salt = process_salt();
    std::set<uint64_t> plain, salted, plain_keys, salted_keys;
    for (const std::string& name : names) {
        plain.insert(hash_bytes(name.data(), name.size()) >> 32 & mask);
        salted.insert(hash_bytes(name.data(), name.size(), salt) >> 32 & mask);
    }
    for (const uint64_t key : keys) {
        plain_keys.insert(mix64(key) & mask);
        salted_keys.insert(mix64(key ^ salt) & mask);
    }
    const SaltedHash of_string;
    std::set<uint64_t> others;
    for (const std::string& name : names) others.insert(of_string(name) >> 32 & mask);
    if (others.size() < 80) return 9;
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
    // What is saved does not depend on the order in which keys came, nor on the salt.
    FlatMap<int32_t> backwards;
    for (size_t i = keys.size(); i-- > 0;) backwards.put(keys[i], int32_t(i));
    const Bytes other = backwards.saved();
    if (other.size != saved.size || std::memcmp(other.data, saved.data, saved.size)) return 8;
    if (const int wrong = check_arrays()) return wrong;
    if (const int wrong = check_memory()) return wrong;
    std::printf("%zu %zu %zu %zu\n", plain.size(), salted.size(), plain_keys.size(), salted_keys.size());
}
