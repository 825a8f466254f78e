// Needles: which of many needles occur in a text, in one pass over it (Aho and Corasick, 1975).
//
// The naive way searches the text once for each needle. Here the needles are one trie; each state has a failure
// link to the longest proper suffix of what was read that is itself a beginning of some needle, so the text is
// read once, whatever the number of needles.
//
// A new needle changes failure links all over an automaton, so one automaton cannot be extended cheaply.
// Needles are kept in levels instead (a log-structured merge, as in databases): what was added since the last
// prepare() becomes a small automaton of its own, and automata of similar size are merged. Adding one needle to
// 100,000 builds an automaton of one; adding n one by one rebuilds each needle O(log n) times.
//
// An automaton is compact: states are numbered breadth-first, so a state's children are a range of numbers, and
// a transition is a search for a byte in that range (mostly one byte long). 17 bytes per state, no hash table. The
// first states, near the root, where most of the time is spent, also have a full row of transitions; they are so few that
// the rows take at most twice as much again.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bytes_table.hpp"

namespace xsift {

class Needles {
    static constexpr int RATIO = 4;      // a level is merged into the one before unless that is 4 times as large
    static constexpr int FEW = 12;       // up to this many children are searched one after the other
    static constexpr int STATES_PER_ROW = 32;  // one state in this many has a row,
    static constexpr int MOST_ROWS = 2048;     // up to this many

    using Entry = std::pair<std::string, int32_t>;  // a needle and its test

    struct Level {
        std::vector<char> blob;         // the needles, sorted, end to end
        std::vector<uint32_t> ends;     // where needle i ends in it
        std::vector<int32_t> tests;     // of needle i; -1 once it was removed
        size_t removed = 0;
        // The automaton; state 0 is the root. Children of state s: first_child[s] .. first_child[s + 1] - 1,
        // ascending by label.
        std::vector<int32_t> first_child;
        std::vector<uint8_t> label;     // the byte that leads to a state
        std::vector<int32_t> failure;
        std::vector<int32_t> needle;    // that ends at a state, or -1
        std::vector<int32_t> report;    // the state, or the first on its way of failure links, that ends a needle; 0: none
        int32_t rows = 1;               // states 0 .. rows - 1 have a row:
        std::vector<int32_t> row;       // row[256 * state + byte] is where a byte leads, failure links and all

        const char* begin_of(size_t i) const { return blob.data() + (i ? ends[i - 1] : 0); }
        size_t length_of(size_t i) const { return ends[i] - (i ? ends[i - 1] : 0); }

        int32_t child(int32_t state, uint8_t byte) const {
            int32_t low = first_child[state], high = first_child[state + 1];
            if (high - low <= FEW) {
                for (; low < high; ++low)
                    if (label[low] == byte) return low;
                return -1;
            }
            const auto found = std::lower_bound(label.begin() + low, label.begin() + high, byte);
            return found != label.begin() + high && *found == byte ? int32_t(found - label.begin()) : -1;
        }

        int32_t next(int32_t state, uint8_t byte) const {
            while (state >= rows) {
                const int32_t there = child(state, byte);
                if (there >= 0) return there;
                state = failure[state];
            }
            return row[256 * size_t(state) + byte];
        }

        // The trie of sorted needles, breadth-first: each state is a range of needles that agree so far.
        void build_trie() {
            struct Range { uint32_t low, high, depth; };
            std::vector<Range> ranges{{0, uint32_t(ends.size()), 0}};
            label.assign(1, 0);
            needle.assign(1, -1);
            first_child.clear();
            for (size_t state = 0; state < ranges.size(); ++state) {
                Range range = ranges[state];
                first_child.push_back(int32_t(ranges.size()));
                if (range.low < range.high && length_of(range.low) == range.depth) needle[state] = int32_t(range.low++);
                while (range.low < range.high) {
                    const char byte = begin_of(range.low)[range.depth];
                    uint32_t high = range.low + 1;
                    while (high < range.high && begin_of(high)[range.depth] == byte) ++high;
                    ranges.push_back({range.low, high, range.depth + 1});
                    label.push_back(uint8_t(byte));
                    needle.push_back(-1);
                    range.low = high;
                }
            }
            first_child.push_back(int32_t(ranges.size()));
        }

        // A failure link leads to a state nearer to the root, whose links and row are there already.
        void link() {
            const int32_t states = int32_t(label.size());
            failure.assign(states, 0);
            report.assign(states, 0);
            rows = std::clamp(states / STATES_PER_ROW, 1, MOST_ROWS);
            row.assign(256 * size_t(rows), 0);
            for (int32_t state = 0; state < states; ++state) {
                if (state && state < rows)
                    std::copy_n(row.begin() + 256 * size_t(failure[state]), 256, row.begin() + 256 * size_t(state));
                for (int32_t s = first_child[state]; s < first_child[state + 1]; ++s) {
                    if (state) failure[s] = next(failure[state], label[s]);
                    report[s] = needle[s] >= 0 ? s : report[failure[s]];
                }
                if (state < rows)
                    for (int32_t s = first_child[state]; s < first_child[state + 1]; ++s)
                        row[256 * size_t(state) + label[s]] = s;
            }
        }

        explicit Level(std::vector<Entry>& entries) {
            std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
                // As unsigned bytes: the order of the labels.
                const int order = std::memcmp(a.first.data(), b.first.data(), std::min(a.first.size(), b.first.size()));
                return order ? order < 0 : a.first.size() < b.first.size();
            });
            for (const Entry& entry : entries) {
                blob.insert(blob.end(), entry.first.begin(), entry.first.end());
                ends.push_back(uint32_t(blob.size()));
                tests.push_back(entry.second);
            }
            build_trie();
            link();
        }

        void drain(std::vector<Entry>& entries) const {
            for (size_t i = 0; i < tests.size(); ++i)
                if (tests[i] >= 0) entries.emplace_back(std::string(begin_of(i), length_of(i)), tests[i]);
        }

        bool remove(const std::string& text) {
            size_t low = 0, high = ends.size();
            while (low < high) {
                const size_t middle = (low + high) / 2;
                const size_t length = length_of(middle);
                int order = std::memcmp(begin_of(middle), text.data(), std::min(length, text.size()));
                if (order == 0) order = length < text.size() ? -1 : length > text.size();
                if (order == 0) {
                    if (tests[middle] < 0) return false;
                    tests[middle] = -1;
                    ++removed;
                    return true;
                }
                if (order < 0) low = middle + 1;
                else high = middle;
            }
            return false;
        }

        size_t bytes() const {
            return sizeof(Level) + blob.capacity() + label.capacity() + 4 * (ends.capacity() + tests.capacity() +
                   first_child.capacity() + failure.capacity() + needle.capacity() + report.capacity() + row.capacity());
        }
    };

    std::vector<std::unique_ptr<Level>> levels;  // each at least RATIO times as large as the next
    std::unordered_map<std::string, int32_t, SaltedHash> pending;  // added since prepare()
    size_t used = 0;

   public:
    size_t size() const { return used; }

    // Adds a needle, which must not be empty, nor be there already. It is found after the next prepare().
    void add(const std::string& text, int32_t test) {
        pending.emplace(text, test);
        ++used;
    }

    void remove(const std::string& text) {
        --used;
        if (pending.erase(text)) return;
        for (const auto& level : levels)
            if (level->remove(text)) return;
    }

    void prepare() {
        std::vector<Entry> entries(pending.begin(), pending.end());
        std::unordered_map<std::string, int32_t, SaltedHash>().swap(pending);  // gives the memory back too
        for (size_t i = levels.size(); i-- > 0;) {
            if (levels[i]->removed * 2 <= levels[i]->tests.size()) continue;
            levels[i]->drain(entries);  // mostly removed ones: what is left is built anew
            levels.erase(levels.begin() + i);
        }
        if (entries.empty()) return;
        while (!levels.empty() && levels.back()->tests.size() < entries.size() * RATIO) {
            levels.back()->drain(entries);
            levels.pop_back();
        }
        levels.push_back(std::make_unique<Level>(entries));
    }

    // Calls hold(test) for the needles in the text. hold() says whether the test is new to it: once a needle was
    // reported, so were all its suffixes, and the walk along the failure links can stop.
    template <class Hold>
    void scan(const char* data, size_t length, Hold&& hold) const {
        for (const auto& level : levels) {
            const Level& automaton = *level;
            int32_t state = 0;
            for (size_t i = 0; i < length; ++i) {
                state = automaton.next(state, uint8_t(data[i]));
                for (int32_t at = automaton.report[state]; at; at = automaton.report[automaton.failure[at]]) {
                    const int32_t test = automaton.tests[automaton.needle[at]];
                    if (test >= 0 && !hold(test)) break;
                }
            }
        }
    }

    size_t bytes() const {
        size_t sum = pending.size() * (sizeof(Entry) + 4 * sizeof(void*));
        for (const auto& level : levels) sum += level->bytes();
        return sum;
    }
};

}  // namespace xsift
