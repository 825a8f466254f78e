// Program: an expression in the form in which it is stored, and from which the evaluator makes its own.
//
// A syntax tree refers to the text that it was parsed from, and to the prefixes that a set declares. A program stands
// alone: names are expanded, numbers are numbers, what a subscription means is made explicit (a relative path starts
// anywhere, the context node is the document). It is bytes, so that it can be kept in rows and saved in files.
//
//     version  flags  operation …  PROGRAM_END
//
// Operations come after their arguments; the last one is the whole. Each is
//
//     op  detail  test  number of arguments  arguments …  payload
//
// Numbers are varints; an argument is given by how many operations back it is. The payload is the value of a
// NUMBER (8 bytes), the text of a STRING (length, bytes), or the namespace and the local name that a STEP tests.
#pragma once
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace xsift {

inline constexpr uint8_t PROGRAM_VERSION = 1;
inline constexpr uint8_t PROGRAM_NAMESPACES = 1;  // flag: it uses the namespace axis

inline constexpr uint8_t PROGRAM_END = 0xff;

enum class Op : uint8_t {
    NUMBER,
    STRING,
    CONTEXT,   // the context node
    ROOT,      // the document
    STEP,      // from the nodes of the first argument along an axis (detail), to those that pass the test, and of
               // which the further arguments are true in turn: its predicates
    FILTER,    // the first argument's nodes, filtered by the further ones
    UNION,
    OR,
    AND,
    COMPARE,   // detail: an operator of syntax.pxd, OPERATOR_EQUAL … OPERATOR_GREATER_EQUAL
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    MODULO,
    NEGATE,
    CALL,      // detail: a function (functions.hpp); what would be the context node is given as an argument
    POSITION,
    LAST,
};

inline void put_varint(std::string* bytes, uint32_t number) {
    for (; number >= 0x80; number >>= 7) bytes->push_back(char(number | 0x80));
    bytes->push_back(char(number));
}

inline void put_text(std::string* bytes, const char* data, size_t length) {
    put_varint(bytes, uint32_t(length));
    bytes->append(data, length);
}

// Reads a program, and throws if it is none.
class ProgramReader {
    const char* at;
    const char* end;

   public:
    ProgramReader(const char* data, size_t length) : at(data), end(data + length) {}

    bool ended() const { return at == end; }

    uint8_t byte() {
        if (at == end) throw std::invalid_argument("a stored expression is cut off");
        return uint8_t(*at++);
    }

    uint32_t varint() {
        uint32_t number = 0;
        for (int shift = 0; shift < 32; shift += 7) {
            const uint8_t part = byte();
            number |= uint32_t(part & 0x7f) << shift;
            if (part < 0x80) return number;
        }
        throw std::invalid_argument("a stored expression has a wrong number");
    }

    std::string_view text() {
        const uint32_t length = varint();
        if (size_t(end - at) < length) throw std::invalid_argument("a stored expression is cut off");
        at += length;
        return {at - length, length};
    }

    double number() {
        double value;
        if (end - at < 8) throw std::invalid_argument("a stored expression is cut off");
        std::memcpy(&value, at, 8);
        at += 8;
        return value;
    }
};

}  // namespace xsift
