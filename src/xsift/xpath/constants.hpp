// constants: XPath 1.0's conversions and comparisons of values that are known beforehand.
//
// The compiler folds them away: [contains("abc", "b")] is true whatever the document, and a condition whose subject
// is missing is asked about the empty string.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "characters.hpp"
#include "condition.hpp"
#include "functions.hpp"
#include "number.hpp"
#include "recipe.hpp"

namespace xsift {

// A value, as far as it can be known before there is a document.
enum ValueKind : uint8_t {
    VALUE_CONSTANT,  // `number` (also a boolean's: 0 or 1) or `text`, by `type`
    VALUE_NODES,     // a node-set: the expression `node`
    VALUE_TEXT,      // string() of it, perhaps transformed; `node` is -1 for the context node
    VALUE_NUMBER,    // number() of it, or a length of its string
    VALUE_COUNT,     // count() of it
    VALUE_TRUTH,     // a boolean expression: `node`
    VALUE_OTHER,     // anything else; only `type` is known
};

struct Value {
    uint8_t kind = VALUE_OTHER;
    uint8_t type = TYPE_STRING;
    uint8_t transform = TRANSFORM_NONE;
    int32_t node = -1;
    double number = 0;
    std::string text;
    std::string recipe;  // what is done to the string before `transform` (recipe.hpp)

    bool constant() const { return kind == VALUE_CONSTANT; }

    static Value of_number(double number) {
        Value value;
        value.kind = VALUE_CONSTANT;
        value.type = TYPE_NUMBER;
        value.number = number;
        return value;
    }

    static Value of_boolean(bool truth) {
        Value value = of_number(truth);
        value.type = TYPE_BOOLEAN;
        return value;
    }

    static Value of_text(std::string text) {
        Value value;
        value.kind = VALUE_CONSTANT;
        value.type = TYPE_STRING;
        value.text = std::move(text);
        return value;
    }

    static Value of(int kind, int type, int32_t node, int transform) {
        Value value;
        value.kind = static_cast<uint8_t>(kind);
        value.type = static_cast<uint8_t>(type);
        value.node = node;
        value.transform = static_cast<uint8_t>(transform);
        return value;
    }

    // The conversions below are for constants only.
    double to_number() const { return type == TYPE_STRING ? xpath_number(text.data(), text.size()) : number; }

    bool to_boolean() const { return type == TYPE_STRING ? !text.empty() : number != 0 && !std::isnan(number); }

    // string() of it; false for numbers that are not simple integers, whose text depends on how libxml2 prints.
    bool to_text(std::string* result) const {
        if (type == TYPE_STRING) {
            *result = text;
        } else if (type == TYPE_BOOLEAN) {
            *result = number != 0 ? "true" : "false";
        } else {
            if (!(std::fabs(number) < 1e9) || number != std::floor(number)) return false;
            *result = std::to_string(static_cast<long>(number));
        }
        return true;
    }
};

inline bool compare_numbers(double left, int comparison, double right) {
    switch (comparison) {
        case COMPARE_EQUAL: return left == right;
        case COMPARE_NOT_EQUAL: return left != right;
        case COMPARE_LESS: return left < right;
        case COMPARE_LESS_EQUAL: return left <= right;
        case COMPARE_GREATER: return left > right;
        default: return left >= right;
    }
}

inline bool compare_constants(const Value& left, int comparison, const Value& right) {
    if (comparison > COMPARE_NOT_EQUAL) return compare_numbers(left.to_number(), comparison, right.to_number());
    const bool equal = comparison == COMPARE_EQUAL;
    if (left.type == TYPE_BOOLEAN || right.type == TYPE_BOOLEAN)
        return (left.to_boolean() == right.to_boolean()) == equal;
    if (left.type == TYPE_NUMBER || right.type == TYPE_NUMBER)
        return compare_numbers(left.to_number(), comparison, right.to_number());
    return (left.text == right.text) == equal;
}

// The comparison with its sides exchanged.
inline int mirrored(int comparison) {
    switch (comparison) {
        case COMPARE_LESS: return COMPARE_GREATER;
        case COMPARE_LESS_EQUAL: return COMPARE_GREATER_EQUAL;
        case COMPARE_GREATER: return COMPARE_LESS;
        case COMPARE_GREATER_EQUAL: return COMPARE_LESS_EQUAL;
        default: return comparison;
    }
}

// The comparison that is true where this one is not, of values that are numbers.
inline int opposite(int comparison) {
    switch (comparison) {
        case COMPARE_EQUAL: return COMPARE_NOT_EQUAL;
        case COMPARE_NOT_EQUAL: return COMPARE_EQUAL;
        case COMPARE_LESS: return COMPARE_GREATER_EQUAL;
        case COMPARE_LESS_EQUAL: return COMPARE_GREATER;
        case COMPARE_GREATER: return COMPARE_LESS_EQUAL;
        default: return COMPARE_LESS;
    }
}

inline std::string normalize_space(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (!is_xml_space(c))
            result.push_back(c);
        else if (!result.empty() && result.back() != ' ')
            result.push_back(' ');
    }
    if (!result.empty() && result.back() == ' ') result.pop_back();
    return result;
}

// Whether a condition holds for one value of its subject.
inline bool holds(const Condition& condition, const std::string& value) {
    const uint8_t transform = condition.transform;
    const bool normalize = transform == TRANSFORM_NORMALIZE || transform == TRANSFORM_NORMALIZE_LENGTH;
    const bool length = transform == TRANSFORM_LENGTH || transform == TRANSFORM_NORMALIZE_LENGTH;
    std::string buffer, other;
    const std::string changed(condition.recipe.empty() ? std::string_view(value)
                                                       : Recipe(condition.recipe).apply(value, buffer, other));
    const std::string text = normalize ? normalize_space(changed) : changed;
    bool result = true;
    if (length)
        result = compare_numbers(static_cast<double>(count_characters(text.data(), text.size())),
                                 condition.comparison, condition.number);
    else if (condition.numeric)
        result = compare_numbers(xpath_number(text.data(), text.size()), condition.comparison, condition.number);
    else if (condition.comparison == COMPARE_CONTAINS)
        result = text.find(condition.text) != std::string::npos;
    else if (condition.comparison == COMPARE_STARTS_WITH)
        result = text.compare(0, condition.text.size(), condition.text) == 0;
    else if (condition.comparison != COMPARE_EXISTS)
        result = (text == condition.text) == (condition.comparison == COMPARE_EQUAL);
    return result != (condition.negated != 0);
}

// Whether `n comparison number` is true for some numbers of nodes n >= 1 and false for others.
inline bool depends_on_count(int comparison, double number) {
    if (!std::isfinite(number)) return false;
    switch (comparison) {
        case COMPARE_EQUAL:
        case COMPARE_NOT_EQUAL: return number >= 1 && number == std::floor(number);
        case COMPARE_LESS:
        case COMPARE_GREATER_EQUAL: return number > 1;
        default: return number >= 1;
    }
}

}  // namespace xsift
