// Tests on a value (an attribute's, a text's), and how to find those that hold without trying each.
//
// A Test is a condition without its negation: `@id = 4` and `not(@id = 4)` are one test, asked both ways.
// ValueTests arranges the tests that are asked of one kind of value:
//
//     =   string or number      one look-up in the registry, the hash table of all tests
//     !=                        a list, for nearly all of them hold
//     <, <=, >, >=              Thresholds: a range of a sorted list
//     contains                  Needles: one pass over the value
//     starts-with               one look-up in the registry for each length that a prefix has
//
// Tests are numbered; a number is given again after its test was dropped.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bytes_table.hpp"
#include "characters.hpp"
#include "condition.hpp"
#include "flat_map.hpp"
#include "needles.hpp"
#include "tested_value.hpp"
#include "thresholds.hpp"

namespace xsift {

inline void normalize_space(const char* data, size_t length, std::string& result) {
    result.clear();
    bool gap = false;
    for (size_t i = 0; i < length; ++i) {
        if (is_xml_space(data[i])) {
            gap = !result.empty();
        } else {
            if (gap) result.push_back(' ');
            gap = false;
            result.push_back(data[i]);
        }
    }
}

// From hashes to numbers. The hashes are good ones, and are not mixed once more.
class HashTable {
    struct Slot {
        uint64_t hash;
        int32_t number;   // -1: the slot is empty
    };
    std::vector<Slot> slots;
    size_t used = 0;

    size_t locate(uint64_t hash) const {
        size_t i = hash & (slots.size() - 1);
        while (slots[i].number >= 0 && slots[i].hash != hash) i = (i + 1) & (slots.size() - 1);
        return i;
    }

   public:
    int32_t get(uint64_t hash) const {
        if (slots.empty()) return -1;
        return slots[locate(hash)].number;
    }

    void put(uint64_t hash, int32_t number) {
        if ((used + 1) * 2 > slots.size()) {
            std::vector<Slot> old(slots.empty() ? 8 : slots.size() * 2, Slot{0, -1});
            old.swap(slots);
            for (const Slot& slot : old)
                if (slot.number >= 0) slots[locate(slot.hash)] = slot;
        }
        Slot& slot = slots[locate(hash)];
        used += slot.number < 0;
        slot = Slot{hash, number};
    }

    void erase(uint64_t hash) {
        if (slots.empty()) return;
        const size_t mask = slots.size() - 1;
        size_t hole = locate(hash);
        if (slots[hole].number < 0) return;
        for (size_t i = (hole + 1) & mask; slots[i].number >= 0; i = (i + 1) & mask) {
            if (((i - slots[i].hash) & mask) < ((i - hole) & mask)) continue;
            slots[hole] = slots[i];
            hole = i;
        }
        slots[hole].number = -1;
        --used;
    }

    size_t bytes() const { return slots.capacity() * sizeof(Slot); }
};

struct Test {
    std::string text;        // the operand, if it is text
    double number = 0.0;     // the operand as a number, if numbers are compared
    int32_t slot = -1;       // what it is asked of: see ConditionTables; -1: this test's number is free
    int32_t holds = 0;       // the condition that this test is, 0: none
    int32_t fails = 0;       // the negated condition, 0: none
    int32_t next = -1;       // the next test with the same hash in the registry
    int32_t place = -1;      // where it stands in a list of ValueTests, if it is in one
    int32_t negated_place = -1;  // where it stands in its slot's list of negated tests
    uint8_t converted = 0, transform = 0, comparison = 0, numeric = 0;

    bool of_length() const { return transform == TRANSFORM_LENGTH || transform == TRANSFORM_NORMALIZE_LENGTH; }
    bool orders() const { return comparison >= COMPARE_LESS && comparison <= COMPARE_GREATER_EQUAL; }
    // Whether numbers are compared. (Text with `<` is a number too, but keeps its text as its identity.)
    bool by_number() const { return numeric || of_length(); }
    bool same_number(double other) const { return std::memcmp(&number, &other, sizeof other) == 0; }
};

// What changes while a document is read: which tests were found to hold for the element at hand.
struct ConditionScratch {
    std::vector<uint32_t> seen;     // by test: the round in which it held last
    std::vector<uint32_t> visited;  // by slot: the element whose attributes reached it last
    std::vector<int32_t> held;      // the tests that hold in this round, each once
    uint32_t round = 0;
    uint32_t element = 0;
    std::string normalized;
    std::string made, spare;        // what a recipe makes of a value
    int64_t work = 0;               // tests that held, and what else grows with the number of tests
    bool narrow = false;            // only narrow tests are wanted: see Condition::is_broad()

    void begin_round() {
        held.clear();
        ++work;
        if (++round == 0) {  // once in four billion rounds the marks of long ago must go
            std::fill(seen.begin(), seen.end(), 0);
            round = 1;
        }
    }
    void begin_element() {
        if (++element == 0) {
            std::fill(visited.begin(), visited.end(), 0);
            element = 1;
        }
    }
    bool hold(int32_t test) {
        if (seen[test] == round) return false;
        seen[test] = round;
        held.push_back(test);
        ++work;
        return true;
    }
};

// All tests, and a hash table that finds one by what it says.
class TestRegistry {
    HashTable first;         // hash -> first test with it; the others follow by Test::next
    std::vector<int32_t> free_numbers;
    uint64_t salt = process_salt();

    static uint64_t place(uint64_t operand, int32_t slot, int converted, int transform, int comparison) {
        return place(operand, kind_of(slot, converted, transform, comparison));
    }
    static uint64_t place(uint64_t operand, uint64_t kind) {
        return fold_product(operand ^ 0xc4ceb9fe1a85ec53ULL, kind);
    }
    uint64_t hash_number(double number) const {
        uint64_t bits;
        if (number == 0.0) number = 0.0;  // -0 is 0
        std::memcpy(&bits, &number, sizeof bits);
        return fold_product(bits ^ salt, salt);
    }
    uint64_t key_of(const Test& test) const {
        const uint64_t operand =
            test.by_number() ? hash_number(test.number) : hash_bytes(test.text.data(), test.text.size(), salt);
        return place(operand, test.slot, test.converted, test.transform, test.comparison);
    }

   public:
    std::vector<Test> tests;

    static uint64_t kind_of(int32_t slot, int converted, int transform, int comparison) {
        const uint64_t kind = pack(slot, converted << 16 | transform << 8 | comparison);
        return kind * 0x9e3779b97f4a7c15ULL + 0xff51afd7ed558ccdULL;
    }

    int32_t find(const Test& wanted) const {
        for (int32_t i = first.get(key_of(wanted)); i >= 0; i = tests[i].next) {
            const Test& test = tests[i];
            if (test.slot == wanted.slot && test.converted == wanted.converted && test.transform == wanted.transform &&
                test.comparison == wanted.comparison && test.numeric == wanted.numeric &&
                test.same_number(wanted.number) && test.text == wanted.text)
                return i;
        }
        return -1;
    }

    int32_t add(const Test& test) {
        int32_t number;
        if (free_numbers.empty()) {
            number = int32_t(tests.size());
            tests.push_back(test);
        } else {
            number = free_numbers.back();
            free_numbers.pop_back();
            tests[number] = test;
        }
        const uint64_t key = key_of(test);
        tests[number].next = first.get(key);
        first.put(key, number);
        return number;
    }

    void remove(int32_t number) {
        const uint64_t key = key_of(tests[number]);
        int32_t at = first.get(key);
        if (at == number) {
            if (tests[number].next < 0) first.erase(key);
            else first.put(key, tests[number].next);
        } else {
            while (tests[at].next != number) at = tests[at].next;
            tests[at].next = tests[number].next;
        }
        tests[number] = Test();
        free_numbers.push_back(number);
    }

    // The tests of a kind whose text is this: at most one, for text is compared in one way only.
    int32_t by_text(int32_t slot, int converted, int transform, int comparison, TestedValue& value) const {
        const uint64_t key = place(value.text_hash(salt), slot, converted, transform, comparison);
        for (int32_t i = first.get(key); i >= 0; i = tests[i].next) {
            const Test& test = tests[i];
            if (test.slot == slot && test.converted == converted && test.transform == transform &&
                test.comparison == comparison && !test.by_number() && test.text.size() == value.length &&
                (value.length == 0 || std::memcmp(test.text.data(), value.data, value.length) == 0))
                return i;
        }
        return -1;
    }

    // The same for the kind of `=` tests of a slot (kind_of), for text or for numbers: calls use(test).
    template <class Use>
    void equal_text(int32_t slot, uint64_t kind, TestedValue& value, Use&& use) const {
        for (int32_t i = first.get(place(value.text_hash(salt), kind)); i >= 0; i = tests[i].next) {
            const Test& test = tests[i];
            if (test.slot == slot && test.comparison == COMPARE_EQUAL && !test.by_number() &&
                test.text.size() == value.length && std::memcmp(test.text.data(), value.data, value.length) == 0)
                use(i);
        }
    }
    template <class Use>
    void equal_number(int32_t slot, uint64_t kind, TestedValue& value, Use&& use) const {
        const double number = value.as_number();
        if (number != number) return;
        for (int32_t i = first.get(place(hash_number(number), kind)); i >= 0; i = tests[i].next) {
            const Test& test = tests[i];
            if (test.slot == slot && test.comparison == COMPARE_EQUAL && test.by_number() && test.number == number)
                use(i);
        }
    }

    // Calls use(test) for the tests of a kind whose number this is.
    template <class Use>
    void by_number(int32_t slot, int converted, int transform, int comparison, double number, Use&& use) const {
        const uint64_t key = place(hash_number(number), slot, converted, transform, comparison);
        for (int32_t i = first.get(key); i >= 0; i = tests[i].next) {
            const Test& test = tests[i];
            if (test.slot == slot && test.converted == converted && test.transform == transform &&
                test.comparison == comparison && test.by_number() && test.number == number)
                use(i);
        }
    }

    size_t bytes() const {
        size_t sum = first.bytes() + tests.capacity() * sizeof(Test) + free_numbers.capacity() * 4;
        for (const Test& test : tests)
            if (test.text.capacity() > 15) sum += test.text.capacity() + 1;  // longer than what a string keeps inside
        return sum;
    }
};

// The tests of one slot that take values one way: `converted` or not.
class ValueTests {
    struct OfNumber {
        int32_t equal = 0;               // how many `=` tests,
        uint64_t equal_bits = 0;         // and their operands; those of tests that are gone may stay
        std::vector<int32_t> not_equal;  // the `!=` tests
        Thresholds order[4];             // by comparison, from COMPARE_LESS on
    };
    struct OfText {
        int32_t equal = 0;
        uint64_t equal_bits = 0;
        std::vector<int32_t> not_equal;
        std::vector<int32_t> always;     // contains("") and starts-with("") hold for every value
        Needles needles;
        std::vector<std::pair<uint32_t, int32_t>> prefixes;  // lengths of starts-with operands, ascending, and how many
        std::unique_ptr<OfNumber> numbers;
        int32_t size = 0;
    };
    int32_t slot, converted;
    int32_t number_of_tests = 0;
    std::vector<int32_t> exists;
    std::unique_ptr<OfText> plain, normalized;
    std::unique_ptr<OfNumber> lengths, normalized_lengths;

    static void append(std::vector<int32_t>& list, int32_t number, std::vector<Test>& tests) {
        tests[number].place = int32_t(list.size());
        list.push_back(number);
    }
    static void drop(std::vector<int32_t>& list, int32_t number, std::vector<Test>& tests) {
        const int32_t place = tests[number].place;
        list[place] = list.back();
        tests[list[place]].place = place;
        list.pop_back();
        tests[number].place = -1;
    }

    static void change(OfNumber& numbers, int32_t number, std::vector<Test>& tests, bool added) {
        const Test& test = tests[number];
        if (test.comparison == COMPARE_EQUAL) {
            numbers.equal += added ? 1 : -1;
            numbers.equal_bits |= number_bit(test.number);
        } else if (test.comparison == COMPARE_NOT_EQUAL) {
            added ? append(numbers.not_equal, number, tests) : drop(numbers.not_equal, number, tests);
        } else {
            Thresholds& order = numbers.order[test.comparison - COMPARE_LESS];
            added ? order.add(test.number, number) : order.remove(test.number, number);
        }
    }

    static void change_prefix(OfText& texts, uint32_t length, int by) {
        auto at = std::lower_bound(texts.prefixes.begin(), texts.prefixes.end(), std::make_pair(length, 0));
        if (at == texts.prefixes.end() || at->first != length) at = texts.prefixes.insert(at, {length, 0});
        at->second += by;
        if (at->second == 0) texts.prefixes.erase(at);
    }

    static void change(OfText& texts, int32_t number, std::vector<Test>& tests, bool added) {
        const Test& test = tests[number];
        texts.size += added ? 1 : -1;
        if (test.numeric || test.orders()) {
            if (!texts.numbers) texts.numbers = std::make_unique<OfNumber>();
            change(*texts.numbers, number, tests, added);
        } else if (test.comparison == COMPARE_EQUAL) {
            texts.equal += added ? 1 : -1;
            texts.equal_bits |= text_bit(test.text.data(), test.text.size());
        } else if (test.comparison == COMPARE_NOT_EQUAL) {
            added ? append(texts.not_equal, number, tests) : drop(texts.not_equal, number, tests);
        } else if (test.text.empty()) {
            added ? append(texts.always, number, tests) : drop(texts.always, number, tests);
        } else if (test.comparison == COMPARE_CONTAINS) {
            added ? texts.needles.add(test.text, number) : texts.needles.remove(test.text);
        } else {
            change_prefix(texts, uint32_t(test.text.size()), added ? 1 : -1);
        }
    }

    void change(int32_t number, std::vector<Test>& tests, bool added) {
        const Test& test = tests[number];
        number_of_tests += added ? 1 : -1;
        if (test.comparison == COMPARE_EXISTS) {
            added ? append(exists, number, tests) : drop(exists, number, tests);
        } else if (test.of_length()) {
            auto& numbers = test.transform == TRANSFORM_LENGTH ? lengths : normalized_lengths;
            if (!numbers) numbers = std::make_unique<OfNumber>();
            change(*numbers, number, tests, added);
        } else {
            auto& texts = test.transform == TRANSFORM_NONE ? plain : normalized;
            if (!texts) texts = std::make_unique<OfText>();
            change(*texts, number, tests, added);
            if (texts->size == 0) texts.reset();
        }
    }

    void match(const OfNumber& numbers, double value, int transform, const TestRegistry& registry,
               ConditionScratch& scratch) const {
        const auto hold = [&](int32_t test) { scratch.hold(test); };
        if (numbers.equal && value == value && numbers.equal_bits & number_bit(value))
            registry.by_number(slot, converted, transform, COMPARE_EQUAL, value, hold);
        if (scratch.narrow) return;
        for (const int32_t test : numbers.not_equal)  // NaN differs from all
            if (registry.tests[test].number != value) scratch.hold(test);
        if (value != value) return;
        numbers.order[COMPARE_LESS - COMPARE_LESS].above(value, false, hold);
        numbers.order[COMPARE_LESS_EQUAL - COMPARE_LESS].above(value, true, hold);
        numbers.order[COMPARE_GREATER - COMPARE_LESS].below(value, false, hold);
        numbers.order[COMPARE_GREATER_EQUAL - COMPARE_LESS].below(value, true, hold);
    }

    void match(const OfText& texts, TestedValue& value, int transform, const TestRegistry& registry,
               ConditionScratch& scratch) const {
        if (texts.equal && texts.equal_bits & text_bit(value.data, value.length)) {
            const int32_t test = registry.by_text(slot, converted, transform, COMPARE_EQUAL, value);
            if (test >= 0) scratch.hold(test);
        }
        if (texts.numbers) match(*texts.numbers, value.as_number(), transform, registry, scratch);
        if (scratch.narrow) return;
        for (const int32_t test : texts.always) scratch.hold(test);
        if (!texts.not_equal.empty()) {
            const int32_t same = registry.by_text(slot, converted, transform, COMPARE_NOT_EQUAL, value);
            for (const int32_t test : texts.not_equal)
                if (test != same) scratch.hold(test);
        }
        for (const auto& [prefix, number] : texts.prefixes) {
            if (prefix > value.length) break;
            scratch.work += 1 + (prefix >> 4);
            TestedValue beginning(value.data, prefix);
            const int32_t test = registry.by_text(slot, converted, transform, COMPARE_STARTS_WITH, beginning);
            if (test >= 0) scratch.hold(test);
        }
        if (texts.needles.size())
            texts.needles.scan(value.data, value.length, [&](int32_t test) { return scratch.hold(test); });
    }

   public:
    ValueTests(int32_t slot, int32_t converted) : slot(slot), converted(converted) {}

    int32_t size() const { return number_of_tests; }
    void add(int32_t number, std::vector<Test>& tests) { change(number, tests, true); }
    void remove(int32_t number, std::vector<Test>& tests) { change(number, tests, false); }

    void prepare() {
        if (plain) plain->needles.prepare();
        if (normalized) normalized->needles.prepare();
    }

    // How many tests ask if a value, as it is, equals a text, and how many if it equals a number; whether these are all.
    bool asks_equality_only() const { return plain && texts_equal() + numbers_equal() == number_of_tests; }
    int32_t texts_equal() const { return plain->equal; }
    int32_t numbers_equal() const { return plain->numbers ? plain->numbers->equal : 0; }
    uint64_t texts_equal_bits() const { return texts_equal() ? plain->equal_bits : 0; }
    uint64_t numbers_equal_bits() const { return numbers_equal() ? plain->numbers->equal_bits : 0; }

    // Has the scratch hold the tests that this value passes.
    void match(TestedValue& value, const TestRegistry& registry, ConditionScratch& scratch) const {
        for (const int32_t test : exists) scratch.hold(test);
        if (plain) match(*plain, value, TRANSFORM_NONE, registry, scratch);
        if (lengths)
            match(*lengths, double(count_characters(value.data, value.length)), TRANSFORM_LENGTH, registry, scratch);
        if (!normalized && !normalized_lengths) return;
        normalize_space(value.data, value.length, scratch.normalized);
        TestedValue changed(scratch.normalized.data(), scratch.normalized.size());
        if (normalized) match(*normalized, changed, TRANSFORM_NORMALIZE, registry, scratch);
        if (normalized_lengths)
            match(*normalized_lengths, double(count_characters(changed.data, changed.length)),
                  TRANSFORM_NORMALIZE_LENGTH, registry, scratch);
    }

    size_t bytes() const {
        size_t sum = sizeof *this + exists.capacity() * 4;
        for (const OfText* texts : {plain.get(), normalized.get()}) {
            if (!texts) continue;
            sum += sizeof *texts + (texts->not_equal.capacity() + texts->always.capacity()) * 4 + texts->needles.bytes() +
                   texts->prefixes.capacity() * 8 + bytes(texts->numbers.get());
        }
        return sum + bytes(lengths.get()) + bytes(normalized_lengths.get());
    }

   private:
    static size_t bytes(const OfNumber* numbers) {
        if (!numbers) return 0;
        size_t sum = sizeof *numbers + numbers->not_equal.capacity() * 4;
        for (const Thresholds& order : numbers->order) sum += order.bytes();
        return sum;
    }
};

}  // namespace xsift
