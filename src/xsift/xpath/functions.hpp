// functions: XPath 1.0's core function library, with all that the parser has to check about each one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace xsift {

enum Type : uint8_t { TYPE_NODE_SET = 0, TYPE_BOOLEAN = 1, TYPE_NUMBER = 2, TYPE_STRING = 3 };

enum Function : uint8_t {
    FUNCTION_BOOLEAN,
    FUNCTION_CEILING,
    FUNCTION_CONCAT,
    FUNCTION_CONTAINS,
    FUNCTION_COUNT,
    FUNCTION_FALSE,
    FUNCTION_FLOOR,
    FUNCTION_ID,
    FUNCTION_LANG,
    FUNCTION_LAST,
    FUNCTION_LOCAL_NAME,
    FUNCTION_NAME,
    FUNCTION_NAMESPACE_URI,
    FUNCTION_NORMALIZE_SPACE,
    FUNCTION_NOT,
    FUNCTION_NUMBER,
    FUNCTION_POSITION,
    FUNCTION_ROUND,
    FUNCTION_STARTS_WITH,
    FUNCTION_STRING,
    FUNCTION_STRING_LENGTH,
    FUNCTION_SUBSTRING,
    FUNCTION_SUBSTRING_AFTER,
    FUNCTION_SUBSTRING_BEFORE,
    FUNCTION_SUM,
    FUNCTION_TRANSLATE,
    FUNCTION_TRUE,
};

struct Signature {
    const char* name;
    uint8_t least, most;  // number of arguments; a most of 255 means any number
    uint8_t result;       // a Type
    bool takes_node_set;  // the argument must be a node-set: nothing converts to one
    bool takes_context;   // without an argument it means the context node
};

// In the order of Function.
inline constexpr Signature FUNCTIONS[] = {
    {"boolean", 1, 1, TYPE_BOOLEAN, false, false},
    {"ceiling", 1, 1, TYPE_NUMBER, false, false},
    {"concat", 2, 255, TYPE_STRING, false, false},
    {"contains", 2, 2, TYPE_BOOLEAN, false, false},
    {"count", 1, 1, TYPE_NUMBER, true, false},
    {"false", 0, 0, TYPE_BOOLEAN, false, false},
    {"floor", 1, 1, TYPE_NUMBER, false, false},
    {"id", 1, 1, TYPE_NODE_SET, false, false},
    {"lang", 1, 1, TYPE_BOOLEAN, false, false},
    {"last", 0, 0, TYPE_NUMBER, false, false},
    {"local-name", 0, 1, TYPE_STRING, true, true},
    {"name", 0, 1, TYPE_STRING, true, true},
    {"namespace-uri", 0, 1, TYPE_STRING, true, true},
    {"normalize-space", 0, 1, TYPE_STRING, false, true},
    {"not", 1, 1, TYPE_BOOLEAN, false, false},
    {"number", 0, 1, TYPE_NUMBER, false, true},
    {"position", 0, 0, TYPE_NUMBER, false, false},
    {"round", 1, 1, TYPE_NUMBER, false, false},
    {"starts-with", 2, 2, TYPE_BOOLEAN, false, false},
    {"string", 0, 1, TYPE_STRING, false, true},
    {"string-length", 0, 1, TYPE_NUMBER, false, true},
    {"substring", 2, 3, TYPE_STRING, false, false},
    {"substring-after", 2, 2, TYPE_STRING, false, false},
    {"substring-before", 2, 2, TYPE_STRING, false, false},
    {"sum", 1, 1, TYPE_NUMBER, true, false},
    {"translate", 3, 3, TYPE_STRING, false, false},
    {"true", 0, 0, TYPE_BOOLEAN, false, false},
};

// The function's number, or -1.
inline int find_function(const char* name, size_t length) {
    for (size_t i = 0; i < std::size(FUNCTIONS); ++i)
        if (std::strlen(FUNCTIONS[i].name) == length && std::memcmp(FUNCTIONS[i].name, name, length) == 0)
            return static_cast<int>(i);
    return -1;
}

}  // namespace xsift
