// Condition: a test on one element alone, such as [@id = 4] or [contains(., "Spark")].
//
// Read it as:  [not] comparison( transform( recipe( subject ) ), operand ).
//
// A subject yields values. Without `converted` the test holds if some value passes it, as XPath's
// comparisons of node-sets do ([@id = 4], [text() = "x"]): no value, no match. With `converted` there is
// always exactly one value, XPath's string() of the subject: the first node's, or "" when there is none
// ([contains(text(), "x")], [string-length(@id) < 5]).
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

namespace xsift {

enum Subject : uint8_t {
    SUBJECT_ATTRIBUTE = 0,      // the attribute whose key is `attribute`
    SUBJECT_ANY_ATTRIBUTE = 1,  // every attribute; those of one namespace if `attribute` is its URI
    SUBJECT_TEXT = 2,           // every text node that is a child of the element
    SUBJECT_STRING = 3,         // the string-value: all text inside, in document order
    SUBJECT_NAMESPACE = 4,      // the namespace URI of the element's name, for tests such as n:*
};

enum Transform : uint8_t {
    TRANSFORM_NONE = 0,
    TRANSFORM_NORMALIZE = 1,         // normalize-space()
    TRANSFORM_LENGTH = 2,            // string-length(); the comparison is of numbers
    TRANSFORM_NORMALIZE_LENGTH = 3,  // string-length(normalize-space())
};

enum Comparison : uint8_t {
    COMPARE_EXISTS = 0,  // the subject has a value at all
    COMPARE_EQUAL = 1,
    COMPARE_NOT_EQUAL = 2,
    COMPARE_LESS = 3,
    COMPARE_LESS_EQUAL = 4,
    COMPARE_GREATER = 5,
    COMPARE_GREATER_EQUAL = 6,
    COMPARE_CONTAINS = 7,
    COMPARE_STARTS_WITH = 8,
};

// Sets of subjects as bits. Attributes have a bit by their name, which several may share: it comes from the first 16 bytes of
// the name and its length, so that who scans a name has it at hand.
constexpr uint64_t OTHER_SUBJECT_BIT = uint64_t(1) << 61, TEXT_SUBJECT_BIT = uint64_t(1) << 62,
                   STRING_SUBJECT_BIT = uint64_t(1) << 63;

inline uint64_t signature_of_words(uint64_t first, uint64_t second, size_t length) {
    return first ^ (second << 29 | second >> 35) ^ uint64_t(length) << 56;
}

inline uint64_t subject_bit_of_signature(uint64_t signature) {
    const uint64_t number = signature * 0x9e3779b97f4a7c15ULL >> 58;
    return uint64_t(1) << (number < 61 ? number : number - 3);
}

inline uint64_t subject_bit(uint8_t subject, const char* attribute, size_t length) {
    if (subject == SUBJECT_TEXT) return TEXT_SUBJECT_BIT;
    if (subject == SUBJECT_STRING) return STRING_SUBJECT_BIT;
    if (subject != SUBJECT_ATTRIBUTE) return OTHER_SUBJECT_BIT;
    uint64_t words[2] = {0, 0};
    if (length) std::memcpy(words, attribute, length < 16 ? length : 16);
    return subject_bit_of_signature(signature_of_words(words[0], words[1], length));
}

struct Condition {
    uint8_t subject = SUBJECT_ATTRIBUTE;
    uint8_t converted = 0;
    uint8_t transform = TRANSFORM_NONE;
    uint8_t comparison = COMPARE_EXISTS;
    uint8_t numeric = 0;  // the operand is `number`, else `text` (UTF-8)
    uint8_t negated = 0;
    double number = 0.0;
    std::string attribute;  // expanded name: "local", or "uri\x1flocal"; a URI for ANY_ATTRIBUTE; may be ""
    std::string text;
    std::string recipe;  // what is done to a value first (recipe.hpp); "": nothing

    static constexpr uint8_t HAS_RECIPE = 0x80;  // beside the transform in a key

    // Whether an element can hold many conditions like this one at a time, or many must be looked at to find that it holds none.
    // (Of `=` there is one at most, which one look-up finds.)
    bool is_broad() const {
        return negated || comparison > COMPARE_EQUAL || subject == SUBJECT_ANY_ATTRIBUTE || !recipe.empty() ||
               (converted && subject == SUBJECT_ATTRIBUTE);
    }

    // Equal conditions have equal encodings: the encoding is the condition's key in Symbols.
    std::string encode() const {
        std::string key;
        const double canonical = number == 0.0 ? 0.0 : number;  // -0 compares like 0
        const uint32_t length = static_cast<uint32_t>(attribute.size());
        const char head[6] = {char(subject), char(converted), char(transform | (recipe.empty() ? 0 : HAS_RECIPE)),
                              char(comparison), char(numeric), char(negated)};
        key.reserve(sizeof head + 8 + 4 + attribute.size() + 4 + recipe.size() + text.size());
        key.append(head, sizeof head);
        key.append(reinterpret_cast<const char*>(&canonical), 8);
        key.append(reinterpret_cast<const char*>(&length), 4);
        key.append(attribute);
        if (!recipe.empty()) {
            const uint32_t size = static_cast<uint32_t>(recipe.size());
            key.append(reinterpret_cast<const char*>(&size), 4);
            key.append(recipe);
        }
        key.append(text);
        return key;
    }

    static Condition decode(const char* key, size_t size) {
        Condition c;
        c.subject = key[0];
        c.converted = key[1];
        c.transform = key[2] & ~HAS_RECIPE;
        c.comparison = key[3];
        c.numeric = key[4];
        c.negated = key[5];
        uint32_t length;
        std::memcpy(&c.number, key + 6, 8);
        std::memcpy(&length, key + 14, 4);
        c.attribute.assign(key + 18, length);
        size_t at = 18 + length;
        if (static_cast<uint8_t>(key[2]) & HAS_RECIPE) {
            std::memcpy(&length, key + at, 4);
            c.recipe.assign(key + at + 4, length);
            at += 4 + length;
        }
        c.text.assign(key + at, size - at);
        return c;
    }
};

}  // namespace xsift
