// ConditionTables: the tests that are asked of elements, arranged by element name and by subject.
//
// The naive way tries each condition on each element. Here an element's name leads to a group, the group and an
// attribute's name to a slot, and the slot's ValueTests find what holds by the value. A name that nobody asks
// about has no group and costs nothing. Conditions asked of every element (`*`) are a group of their own.
//
//     group    what is asked of elements with one name, or of all
//     slot     what is asked of one subject in a group: @id, @*, text(), ., namespace-uri(); or of what a recipe makes
//              of its values: a slot of its own below the subject's, whose values are made once for all of its tests
//     test     one comparison; see value_tests.hpp
//
// Evaluation does not change the tables: many threads may share them, each with a ConditionScratch of its own.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bytes_table.hpp"
#include "condition.hpp"
#include "flat_map.hpp"
#include "recipe.hpp"
#include "value_tests.hpp"

namespace xsift {

// What a group asks for. Bits of one byte.
enum Wants : uint8_t {
    WANTS_ATTRIBUTES = 1,  // attributes, or the namespace: known at the start tag
    WANTS_TEXT = 2,        // text nodes
    WANTS_STRING = 4,      // the string-value
};

struct AttributeValue {
    const char* name;  // expanded
    size_t name_length;
    const char* value;
    size_t value_length;
};

// How to test a value of a slot of which only equality is asked: in one look-up for texts, and one for numbers.
struct SlotEquality {
    bool only = false;                  // all its tests are such
    uint64_t texts = 0, numbers = 0;    // their operands as bits, see tested_value.hpp; 0: there are none
    uint64_t kind = 0;                  // of these tests, for both

    bool may_equal_text(const TestedValue& value) const { return texts && texts & text_bit(value.data, value.length); }
    bool may_equal_number(TestedValue& value) const { return numbers && numbers & number_bit(value.as_number()); }
};

class ConditionTables {
    struct Slot {
        int32_t group;
        uint8_t subject;
        std::string uri;                // of an ANY_ATTRIBUTE slot; "": all
        std::unique_ptr<ValueTests> some, first;  // tests of any value; tests of the first value, or of ""
        std::vector<int32_t> negated;   // tests whose failure is asked for
        int32_t absent_place = -1;      // in its group's `absent`, if it is there
        SlotEquality equality;
        bool unprepared = false;        // whether it is in ConditionTables::unprepared
        int32_t base = -1;              // the slot whose values the recipe is applied to; -1: it is no such slot
        std::unique_ptr<Recipe> recipe;
        std::vector<int32_t> derived;   // slots below this one
        bool is_speaking = false;       // whether it was found to speak of absence,
        int32_t speaking = 0;           // and how many do so of this one and those below it

        bool speaks_of_absence() const { return first || !negated.empty(); }
    };
    struct Group {
        std::vector<int32_t> absent;    // attribute slots that say something also where the attribute is missing
        std::vector<int32_t> any;       // slots of ANY_ATTRIBUTE
        int32_t text = -1, string = -1, uri = -1;  // slots
        int32_t tests_of[5] = {0, 0, 0, 0, 0};     // how many, by subject
    };

    TestRegistry registry;
    std::vector<Group> groups;
    std::vector<Slot> slots;
    FlatMap<int32_t> group_of_name;     // element name symbol -> group
    FlatMap<int32_t> attribute_slots;   // pack(group, attribute number) -> slot
    BytesTable attributes;              // expanded names of attributes that were ever asked for
    FlatMap<int32_t> any_slots;         // pack(group, URI number) -> slot of ANY_ATTRIBUTE
    BytesTable uris;
    FlatMap<int32_t> derived_slots;     // pack(slot, recipe number) -> slot below it
    BytesTable recipes;
    std::vector<int32_t> unprepared;    // slots whose needles changed

    int32_t new_slot(int32_t group, const Condition& condition) {
        Slot slot;
        slot.group = group;
        slot.subject = condition.subject;
        if (condition.subject == SUBJECT_ANY_ATTRIBUTE) slot.uri = condition.attribute;
        slots.push_back(std::move(slot));
        return int32_t(slots.size()) - 1;
    }

    // The slot of a condition in a group, new or known.
    int32_t slot_for(int32_t group, const Condition& condition) {
        const int32_t base = base_slot_for(group, condition);
        if (condition.recipe.empty()) return base;
        const int32_t recipe = recipes.add(condition.recipe.data(), condition.recipe.size());
        const int32_t known = derived_slots.get(pack(base, recipe), -1);
        if (known >= 0) return known;
        const int32_t slot = new_slot(group, condition);
        slots[slot].base = base;
        slots[slot].recipe = std::make_unique<Recipe>(condition.recipe);
        slots[base].derived.push_back(slot);
        derived_slots.put(pack(base, recipe), slot);
        return slot;
    }

    int32_t base_slot_for(int32_t group, const Condition& condition) {
        if (condition.subject == SUBJECT_ATTRIBUTE) {
            const int32_t attribute = attributes.add(condition.attribute.data(), condition.attribute.size());
            int32_t slot = attribute_slots.get(pack(group, attribute), -1);
            if (slot < 0) attribute_slots.put(pack(group, attribute), slot = new_slot(group, condition));
            return slot;
        }
        if (condition.subject == SUBJECT_ANY_ATTRIBUTE) {
            const int32_t uri = uris.add(condition.attribute.data(), condition.attribute.size());
            int32_t slot = any_slots.get(pack(group, uri), -1);
            if (slot < 0) {
                slot = new_slot(group, condition);
                groups[group].any.push_back(slot);
                any_slots.put(pack(group, uri), slot);
            }
            return slot;
        }
        int32_t& slot = condition.subject == SUBJECT_TEXT     ? groups[group].text
                        : condition.subject == SUBJECT_STRING ? groups[group].string
                                                              : groups[group].uri;
        if (slot < 0) slot = new_slot(group, condition);
        return slot;
    }

    // Different conditions are different tests, also where they mean the same: each has a symbol to report.
    static Test test_of(const Condition& condition, int32_t slot) {
        Test test;
        test.slot = slot;
        test.converted = condition.converted != 0;
        test.comparison = condition.comparison;
        test.transform = condition.transform;
        test.numeric = condition.numeric != 0;
        test.text = condition.text;
        test.number = condition.number;
        if (!test.numeric && (test.orders() || test.of_length()))
            test.number = xpath_number(condition.text.data(), condition.text.size());
        return test;
    }

    // An attribute slot that has something to say about a missing attribute stands in its group's list of these.
    void keep_absent_list(int32_t number) {
        Slot& changed = slots[number];
        if (changed.base >= 0) number = changed.base;
        Slot& slot = slots[number];
        if (slot.subject != SUBJECT_ATTRIBUTE) return;
        std::vector<int32_t>& absent = groups[slot.group].absent;
        slot.speaking += changed.speaks_of_absence() - changed.is_speaking;
        changed.is_speaking = changed.speaks_of_absence();
        const bool speaks = slot.speaking > 0;
        if (speaks && slot.absent_place < 0) {
            slot.absent_place = int32_t(absent.size());
            absent.push_back(number);
        } else if (!speaks && slot.absent_place >= 0) {
            absent[slot.absent_place] = absent.back();
            slots[absent.back()].absent_place = slot.absent_place;
            absent.pop_back();
            slot.absent_place = -1;
        }
    }

    void note_kind(int32_t number) {
        if (slots[number].base >= 0) number = slots[number].base;
        Slot& slot = slots[number];
        slot.equality = SlotEquality();
        if (!slot.derived.empty() || !slot.some || slot.first || !slot.negated.empty() || !slot.some->asks_equality_only()) return;
        slot.equality.only = true;
        slot.equality.texts = slot.some->texts_equal_bits();
        slot.equality.numbers = slot.some->numbers_equal_bits();
        slot.equality.kind = TestRegistry::kind_of(number, false, TRANSFORM_NONE, COMPARE_EQUAL);
    }

    void needs_preparing(int32_t number) {
        if (slots[number].unprepared) return;
        slots[number].unprepared = true;
        unprepared.push_back(number);
    }

    static void append_code(int32_t symbol, std::vector<int32_t>& codes) { codes.push_back(-symbol - 1); }

    // Writes the conditions of a slot, whose tests that hold are in the scratch.
    void emit(const Slot& slot, ConditionScratch& scratch, std::vector<int32_t>& codes) const {
        for (const int32_t number : scratch.held)
            if (registry.tests[number].holds) append_code(registry.tests[number].holds, codes);
        if (scratch.narrow) return;
        emit_negated(slot, scratch, codes);
        for (const int32_t derived : slot.derived) emit_negated(slots[derived], scratch, codes);
    }

    void emit_negated(const Slot& slot, ConditionScratch& scratch, std::vector<int32_t>& codes) const {
        scratch.work += int64_t(slot.negated.size());
        for (const int32_t number : slot.negated)
            if (scratch.seen[number] != scratch.round) append_code(registry.tests[number].fails, codes);
    }

    // Notes the tests of a slot that a value passes, as it is and as recipes make it. `first`: it is the first value;
    // `any`: it is a value at all.
    void match_value(const Slot& slot, TestedValue& value, bool first, bool any, ConditionScratch& scratch) const {
        if (slot.some && any) slot.some->match(value, registry, scratch);
        if (slot.first && first) slot.first->match(value, registry, scratch);
        if (scratch.narrow) return;
        scratch.work += int64_t(slot.derived.size());
        for (const int32_t number : slot.derived) {
            const Slot& derived = slots[number];
            if (!(derived.some && any) && !(derived.first && first)) continue;
            const std::string_view text = derived.recipe->apply({value.data, value.length}, scratch.made, scratch.spare);
            TestedValue made(text.data(), text.size());
            if (derived.some && any) derived.some->match(made, registry, scratch);
            if (derived.first && first) derived.first->match(made, registry, scratch);
        }
    }

    void match_nothing(const Slot& slot, ConditionScratch& scratch) const {
        TestedValue nothing("", 0);
        match_value(slot, nothing, true, false, scratch);
    }

    void match_only(const Slot& slot, TestedValue& value, ConditionScratch& scratch, std::vector<int32_t>& codes) const {
        scratch.begin_round();
        match_value(slot, value, !(scratch.narrow && slot.subject == SUBJECT_ATTRIBUTE), true, scratch);
        emit(slot, scratch, codes);
    }

    void match_none(const Slot& slot, ConditionScratch& scratch, std::vector<int32_t>& codes) const {
        scratch.begin_round();
        match_nothing(slot, scratch);
        emit(slot, scratch, codes);
    }

    static bool in_namespace(const AttributeValue& attribute, const std::string& uri) {
        return uri.empty() || (attribute.name_length > uri.size() && attribute.name[uri.size()] == '\x1f' &&
                               std::memcmp(attribute.name, uri.data(), uri.size()) == 0);
    }

    void match_any(const Slot& slot, const std::vector<AttributeValue>& values, ConditionScratch& scratch,
                   std::vector<int32_t>& codes) const {
        bool found = false;
        scratch.begin_round();
        scratch.work += int64_t(values.size());
        for (const AttributeValue& attribute : values) {
            if (!in_namespace(attribute, slot.uri)) continue;
            TestedValue value(attribute.value, attribute.value_length);
            match_value(slot, value, !found, true, scratch);
            found = true;
        }
        if (!found) match_nothing(slot, scratch);
        emit(slot, scratch, codes);
    }

   public:
    // The group of an element name's symbol (0 is `*`), or -1.
    int32_t group_of(int32_t name) const { return group_of_name.get(uint64_t(uint32_t(name)), -1); }

    uint8_t wants(int32_t group) const {
        const int32_t* of = groups[group].tests_of;
        return (of[SUBJECT_ATTRIBUTE] || of[SUBJECT_ANY_ATTRIBUTE] || of[SUBJECT_NAMESPACE] ? WANTS_ATTRIBUTES : 0) |
               (of[SUBJECT_TEXT] ? WANTS_TEXT : 0) | (of[SUBJECT_STRING] ? WANTS_STRING : 0);
    }

    void install(int32_t name, int32_t symbol, const Condition& condition) {
        int32_t group = group_of(name);
        if (group < 0) {
            group = int32_t(groups.size());
            groups.emplace_back();
            group_of_name.put(uint64_t(uint32_t(name)), group);
        }
        const int32_t slot = slot_for(group, condition);
        const Test wanted = test_of(condition, slot);
        int32_t number = registry.find(wanted);
        if (number < 0) {
            number = registry.add(wanted);
            auto& values = condition.converted ? slots[slot].first : slots[slot].some;
            if (!values) values = std::make_unique<ValueTests>(slot, wanted.converted);
            values->add(number, registry.tests);
            ++groups[group].tests_of[condition.subject];
            if (condition.comparison == COMPARE_CONTAINS) needs_preparing(slot);
        }
        Test& test = registry.tests[number];
        if (condition.negated) {
            test.fails = symbol;
            test.negated_place = int32_t(slots[slot].negated.size());
            slots[slot].negated.push_back(number);
        } else {
            test.holds = symbol;
        }
        keep_absent_list(slot);
        note_kind(slot);
    }

    // The opposite of install(), which must have happened with these arguments.
    void uninstall(int32_t name, const Condition& condition) {
        const int32_t group = group_of(name);
        const int32_t slot = slot_for(group, condition);
        const int32_t number = registry.find(test_of(condition, slot));
        Test& test = registry.tests[number];
        if (condition.negated) {
            std::vector<int32_t>& negated = slots[slot].negated;
            negated[test.negated_place] = negated.back();
            registry.tests[negated.back()].negated_place = test.negated_place;
            negated.pop_back();
            test.fails = 0;
            test.negated_place = -1;
        } else {
            test.holds = 0;
        }
        if (!test.holds && !test.fails) {
            auto& values = condition.converted ? slots[slot].first : slots[slot].some;
            values->remove(number, registry.tests);
            if (values->size() == 0) values.reset();
            else if (condition.comparison == COMPARE_CONTAINS) needs_preparing(slot);
            --groups[group].tests_of[condition.subject];
            registry.remove(number);
        }
        keep_absent_list(slot);
        note_kind(slot);
    }

    void prepare() {
        for (const int32_t slot : unprepared) {
            if (slots[slot].some) slots[slot].some->prepare();
            if (slots[slot].first) slots[slot].first->prepare();
            slots[slot].unprepared = false;
        }
        unprepared.clear();
        unprepared.shrink_to_fit();
    }

    void make_ready(ConditionScratch& scratch) const {
        scratch.seen.resize(registry.tests.size(), 0);
        scratch.visited.resize(slots.size(), 0);
    }

    // The slot of an attribute, by its expanded name, in a group; or -1.
    int32_t slot_of(int32_t group, const char* name, size_t length) const {
        const int32_t number = attributes.find(name, length);
        return number < 0 ? -1 : attribute_slots.get(pack(group, number), -1);
    }

    // Whether a group asks for attributes that are there, each by itself, and for nothing else at the start tag.
    bool asks_attributes_only(int32_t group) const {
        return groups[group].uri < 0 && groups[group].absent.empty() && groups[group].any.empty();
    }

    // What holds of an element at its start tag: first begin_start(), then match_attribute() for each attribute that has a
    // slot, then finish_start(). A group that asks for attributes only needs but the second.
    void begin_start(int32_t group, const char* uri, size_t uri_length, ConditionScratch& scratch,
                     std::vector<int32_t>& codes) const {
        TestedValue value(uri, uri_length);
        if (groups[group].uri >= 0) match_only(slots[groups[group].uri], value, scratch, codes);
        scratch.begin_element();
    }

    SlotEquality equality_of(int32_t slot) const { return slots[slot].equality; }

    // match_attribute() for a slot of which only equality is asked.
    void match_equal(int32_t slot, const SlotEquality& how, TestedValue& value, std::vector<int32_t>& codes) const {
        const auto use = [&](int32_t test) { append_code(registry.tests[test].holds, codes); };
        if (how.may_equal_text(value)) registry.equal_text(slot, how.kind, value, use);
        if (how.may_equal_number(value)) registry.equal_number(slot, how.kind, value, use);
    }

    void match_attribute(int32_t slot, TestedValue& value, ConditionScratch& scratch, std::vector<int32_t>& codes) const {
        scratch.visited[slot] = scratch.element;
        match_only(slots[slot], value, scratch, codes);
    }

    void finish_start(int32_t group, const std::vector<AttributeValue>& values, ConditionScratch& scratch,
                      std::vector<int32_t>& codes) const {
        if (scratch.narrow) return;
        for (const int32_t slot : groups[group].absent)
            if (scratch.visited[slot] != scratch.element) match_none(slots[slot], scratch, codes);
        for (const int32_t slot : groups[group].any) match_any(slots[slot], values, scratch, codes);
    }

    // Leaves in scratch.held the tests that a text node passes; `first` if it is the element's first.
    void match_text_node(int32_t group, const char* data, size_t length, bool first, ConditionScratch& scratch) const {
        const Slot& slot = slots[groups[group].text];
        TestedValue value(data, length);
        scratch.begin_round();
        match_value(slot, value, first, true, scratch);
    }

    // Writes what holds of an element's text nodes, given what they passed: pack(part, test), of which one part's
    // tests belong to this group.
    void finish_text(int32_t group, const std::vector<uint64_t>& passed, int32_t part, bool had_nodes,
                     ConditionScratch& scratch, std::vector<int32_t>& codes) const {
        const Slot& slot = slots[groups[group].text];
        scratch.begin_round();
        for (const uint64_t entry : passed)
            if (int32_t(entry >> 32) == part) scratch.hold(int32_t(uint32_t(entry)));
        if (!had_nodes) match_nothing(slot, scratch);
        emit(slot, scratch, codes);
    }

    // Writes what holds of an element's string-value.
    void match_string(int32_t group, const char* data, size_t length, ConditionScratch& scratch,
                      std::vector<int32_t>& codes) const {
        TestedValue value(data, length);
        match_only(slots[groups[group].string], value, scratch, codes);
    }

    size_t test_bytes() const { return registry.bytes(); }

    size_t index_bytes() const {
        size_t sum = groups.capacity() * sizeof(Group) + slots.capacity() * sizeof(Slot) + group_of_name.bytes() +
                     attribute_slots.bytes() + attributes.bytes() + any_slots.bytes() + uris.bytes() +
                     derived_slots.bytes() + recipes.bytes() + unprepared.capacity() * 4;
        for (const Group& group : groups) sum += (group.absent.capacity() + group.any.capacity()) * 4;
        for (const Slot& slot : slots)
            sum += slot.uri.capacity() + (slot.negated.capacity() + slot.derived.capacity()) * 4 +
                   (slot.some ? slot.some->bytes() : 0) + (slot.first ? slot.first->bytes() : 0);
        return sum;
    }
};

}  // namespace xsift
