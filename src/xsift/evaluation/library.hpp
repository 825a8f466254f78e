// Library: the expressions of all programs that were linked, each distinct one once.
//
// Subscriptions share most of what they are made of: `//invoice`, `cbc:ID`, `sum(line/amount)`. Here equal
// sub-expressions of different programs are one, so that what one subscription found out about a document is
// there for the next.
//
// What can be known of an expression before there is a document is noted with it. Node-sets are enumerated where that
// yields each node once, and built otherwise:
//
//     single     it has at most one node
//     apart      none of its nodes is below another
//     ordered    its nodes come in document order
//     streams    stepping from node to node yields no node twice
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "functions.hpp"
#include "program.hpp"
#include "string_table.hpp"

namespace xsift {

// As in syntax.pxd.
enum class Axis : uint8_t {
    ANCESTOR, ANCESTOR_OR_SELF, ATTRIBUTE, CHILD, DESCENDANT, DESCENDANT_OR_SELF, FOLLOWING, FOLLOWING_SIBLING,
    NAMESPACE, PARENT, PRECEDING, PRECEDING_SIBLING, SELF,
};
enum class Test : uint8_t { NAME, ANY, NAMESPACE, NODE, TEXT, COMMENT, INSTRUCTION, TARGET };
enum class Relation : uint8_t { EQUAL = 3, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL };

// 32 bytes: when thousands of expressions are run on a document, bringing them into the cache is most of the cost.
struct Expression {
    Op op = Op::NUMBER;
    uint8_t detail = 0;
    Test test = Test::NODE;
    uint8_t type : 2;
    bool uses_context : 1;
    bool uses_position : 1;  // position() or last() of the predicate that it stands in
    bool uses_last : 1;
    bool counts : 1;         // of a STEP or FILTER: a predicate depends on positions,
    bool wants_last : 1;     // or on last()
    bool namespaces : 1;     // uses the namespace axis
    bool single : 1, apart : 1, ordered : 1, streams : 1;
    bool kept : 1;           // does not depend on the context: worth remembering until the next document
    bool shared : 1;         // depends on the context node, and others use it: worth remembering for a while
    bool is_repeated : 1;    // stands within a predicate
    uint16_t height = 0;     // how deep expressions nest in it
    int32_t count = 0;       // number of arguments
    int32_t parts[2] = {};   // they themselves, if they are two at most; else where they begin in `arguments`
    int32_t name = -1;       // of a STEP: a number in `names`, for Test::NAMESPACE in `uris`; of a STRING: in `texts`
    double number = 0;

    Expression()
        : type(TYPE_NUMBER), uses_context(false), uses_position(false), uses_last(false), counts(false),
          wants_last(false), namespaces(false), single(false), apart(false), ordered(false), streams(false), kept(false), shared(false),
          is_repeated(false) {}

    Axis axis() const { return Axis(detail); }
};
static_assert(sizeof(Expression) <= 40, "an expression is meant to be small");

class Library {
    static constexpr int32_t MOST_STREAMED = 64;  // height up to which sets are enumerated: each step takes stack

   public:
    std::vector<Expression> expressions;
    std::vector<int32_t> arguments;
    StringTable texts;
    StringTable uris;
    StringTable names;  // the 4-byte number of the URI, then the local name

    const Expression& operator[](int32_t number) const { return expressions[number]; }
    int32_t argument(const Expression& it, int32_t i) const {
        const int32_t* all = it.count <= 2 ? it.parts : arguments.data() + it.parts[0];
        return all[i];
    }

    // The expression that a program stands for. Throws std::invalid_argument if it is no program.
    int32_t link(const char* data, size_t length) {
        ProgramReader reader(data, length);
        if (reader.byte() != PROGRAM_VERSION) throw std::invalid_argument("a stored expression has another version");
        reader.byte();
        linked.clear();
        for (uint8_t op = reader.byte(); op != PROGRAM_END; op = reader.byte())
            linked.push_back(link_operation(op, reader));
        if (!reader.ended()) throw std::invalid_argument("a stored expression goes on after its end");
        if (linked.empty()) throw std::invalid_argument("a stored expression is empty");
        return linked.back();
    }

    std::string_view name_uri(int32_t name) const {
        int32_t number;
        std::memcpy(&number, names[name].data(), 4);
        return uris[number];
    }
    std::string_view name_local(int32_t name) const { return names[name].substr(4); }

    size_t bytes() const {
        return expressions.capacity() * sizeof(Expression) + arguments.capacity() * sizeof(int32_t) + texts.bytes() +
               uris.bytes() + names.bytes() + known.bytes() + uses.capacity() * sizeof(int32_t);
    }

   private:
    StringTable known;          // expressions by their contents
    std::vector<int32_t> uses;  // by expression: of how many others it is an argument
    std::vector<int32_t> linked, given;
    std::string key;

    int32_t link_operation(uint8_t op, ProgramReader& reader) {
        Expression it;
        if (op > uint8_t(Op::LAST)) throw std::invalid_argument("a stored expression has an unknown operation");
        it.op = Op(op);
        it.detail = reader.byte();
        const uint8_t test = reader.byte();
        if (test > uint8_t(Test::TARGET)) throw std::invalid_argument("a stored expression has an unknown test");
        it.test = Test(test);
        given.clear();
        for (uint32_t left = reader.varint(); left > 0; --left) {
            const uint32_t distance = reader.varint();
            if (distance == 0 || distance > linked.size())
                throw std::invalid_argument("a stored expression refers to what it does not have");
            given.push_back(linked[linked.size() - distance]);
        }
        if (it.op == Op::NUMBER) it.number = reader.number();
        if (it.op == Op::STRING) it.name = texts.add(reader.text());
        if (it.op == Op::STEP && (it.test == Test::NAME || it.test == Test::NAMESPACE || it.test == Test::TARGET)) {
            const int32_t uri = uris.add(reader.text());
            const std::string_view local = reader.text();
            it.name = it.test == Test::NAMESPACE ? uri : add_name(uri, local);
        }
        check(it);
        return add(it);
    }

    int32_t add_name(int32_t uri, std::string_view local) {
        key.assign(reinterpret_cast<const char*>(&uri), 4);
        key.append(local);
        return names.add(key);
    }

    // Programs come from files too: what the evaluator relies on is checked once, here.
    void check(const Expression& it) const {
        const size_t count = given.size();
        const auto needs = [](bool good) {
            if (!good) throw std::invalid_argument("a stored expression has wrong arguments");
        };
        const auto is_set = [this](size_t i) { return expressions[given[i]].type == TYPE_NODE_SET; };
        switch (it.op) {
            case Op::STEP: needs(count >= 1 && is_set(0) && it.detail <= uint8_t(Axis::SELF)); break;
            case Op::FILTER: needs(count >= 1 && is_set(0)); break;
            case Op::UNION:
                needs(count >= 1);
                for (size_t i = 0; i < count; ++i) needs(is_set(i));
                break;
            case Op::OR:
            case Op::AND: needs(count >= 1); break;
            case Op::COMPARE:
                needs(count == 2 && it.detail >= uint8_t(Relation::EQUAL) &&
                      it.detail <= uint8_t(Relation::GREATER_EQUAL));
                break;
            case Op::ADD:
            case Op::SUBTRACT:
            case Op::MULTIPLY:
            case Op::DIVIDE:
            case Op::MODULO: needs(count == 2); break;
            case Op::NEGATE: needs(count == 1); break;
            case Op::CALL: {
                needs(it.detail <= FUNCTION_TRUE);
                const Signature& signature = FUNCTIONS[it.detail];
                const size_t least = signature.takes_context ? 1 : signature.least;
                needs(count >= least && (signature.most == 255 || count <= signature.most));
                needs(!signature.takes_node_set || is_set(0));
                break;
            }
            default: needs(count == 0);
        }
    }

    int32_t add(Expression& it) {
        if (it.op == Op::STEP || it.op == Op::FILTER)
            for (size_t i = 1; i < given.size(); ++i) given[i] = plain_position(given[i]);
        const char head[3] = {char(it.op), char(it.detail), char(it.test)};
        key.assign(head, 3);
        key.append(reinterpret_cast<const char*>(&it.name), 4);
        key.append(reinterpret_cast<const char*>(&it.number), 8);
        key.append(reinterpret_cast<const char*>(given.data()), given.size() * sizeof(int32_t));
        const int32_t number = known.add(key);
        if (size_t(number) == expressions.size()) {
            it.count = int32_t(given.size());
            if (given.size() <= 2) {
                std::copy(given.begin(), given.end(), it.parts);
            } else {
                it.parts[0] = int32_t(arguments.size());
                arguments.insert(arguments.end(), given.begin(), given.end());
            }
            derive(it);
            expressions.push_back(it);
            uses.push_back(0);
            for (const int32_t argument : given) note_use(argument);
            if (it.op == Op::STEP || it.op == Op::FILTER)
                for (size_t i = 1; i < given.size(); ++i) note_repetition(given[i]);
        } else {
            note_use(number);  // some other program has it too
        }
        return number;
    }

    // `position() = 3` and `position() = last()` are what `3` and `last()` abbreviate.
    int32_t plain_position(int32_t predicate) const {
        const Expression& it = expressions[predicate];
        if (it.op != Op::COMPARE || Relation(it.detail) != Relation::EQUAL) return predicate;
        const int32_t left = argument(it, 0), right = argument(it, 1);
        const auto is_place = [this](int32_t e) {
            return expressions[e].op == Op::NUMBER || expressions[e].op == Op::LAST;
        };
        if (expressions[left].op == Op::POSITION && is_place(right)) return right;
        if (expressions[right].op == Op::POSITION && is_place(left)) return left;
        return predicate;
    }

    static bool is_worth_keeping(const Expression& it) {
        if (it.uses_context || it.uses_position) return false;
        if (it.op == Op::NUMBER || it.op == Op::STRING || it.op == Op::ROOT) return false;
        return !(it.op == Op::CALL && it.count == 0);
    }

    void note_use(int32_t number) {
        Expression& it = expressions[number];
        if (++uses[number] < 2) return;
        if (is_worth_keeping(it)) it.kept = true;
        const bool is_plain = it.op == Op::CONTEXT || it.op == Op::OR || it.op == Op::AND;  // as cheap as to remember
        const bool is_ready = it.type != TYPE_NODE_SET || it.ordered;
        if (it.uses_context && !it.uses_position && !is_plain && is_ready) it.shared = true;
    }

    void note_repetition(int32_t number) {
        if (expressions[number].is_repeated) return;
        expressions[number].is_repeated = true;
        if (is_worth_keeping(expressions[number])) {
            expressions[number].kept = true;
            return;
        }
        for (int32_t i = 0; i < expressions[number].count; ++i) note_repetition(argument(expressions[number], i));
    }

    // What is known before there is a document.
    void derive(Expression& it) {
        it.type = type_of(it);
        it.uses_context = it.op == Op::CONTEXT || (it.op == Op::CALL && it.detail == FUNCTION_LANG);
        it.uses_position = it.op == Op::POSITION || it.op == Op::LAST;
        it.uses_last = it.op == Op::LAST;
        it.namespaces = it.op == Op::STEP && it.axis() == Axis::NAMESPACE;
        const bool filters = it.op == Op::STEP || it.op == Op::FILTER;
        for (int32_t i = 0; i < it.count; ++i) {
            const Expression& part = expressions[size_t(argument(it, i))];
            it.height = uint16_t(std::max(int(it.height), part.height + 1));
            it.namespaces |= part.namespaces;
            if (filters && i > 0) {  // a predicate has a context of its own
                it.counts |= part.uses_position || part.type == TYPE_NUMBER;
                it.wants_last |= part.uses_last;
            } else {
                it.uses_context |= part.uses_context;
                it.uses_position |= part.uses_position;
                it.uses_last |= part.uses_last;
            }
        }
        if (it.type == TYPE_NODE_SET) derive_set(it);
    }

    uint8_t type_of(const Expression& it) const {
        switch (it.op) {
            case Op::STRING: return TYPE_STRING;
            case Op::CONTEXT:
            case Op::ROOT:
            case Op::STEP:
            case Op::FILTER:
            case Op::UNION: return TYPE_NODE_SET;
            case Op::OR:
            case Op::AND:
            case Op::COMPARE: return TYPE_BOOLEAN;
            case Op::CALL: return FUNCTIONS[it.detail].result;
            default: return TYPE_NUMBER;
        }
    }

    void derive_set(Expression& it) {
        if (it.op == Op::CONTEXT || it.op == Op::ROOT) {
            it.single = it.apart = it.ordered = it.streams = true;
            return;
        }
        if (it.op != Op::STEP) {
            it.ordered = it.op != Op::UNION;
            it.apart = it.op == Op::FILTER && expressions[size_t(argument(it, 0))].apart;
            it.single = it.op == Op::FILTER && takes_one(it);
            return;
        }
        const Expression& from = expressions[size_t(argument(it, 0))];
        switch (it.axis()) {
            case Axis::CHILD:
                it.streams = true;
                it.apart = from.apart;
                it.ordered = from.apart && from.ordered;
                break;
            case Axis::ATTRIBUTE:
            case Axis::NAMESPACE:
                it.streams = it.apart = true;
                it.ordered = from.ordered;
                break;
            case Axis::SELF:
                it.streams = true;
                it.single = from.single;
                it.apart = from.apart;
                it.ordered = from.ordered;
                break;
            case Axis::DESCENDANT:
            case Axis::DESCENDANT_OR_SELF:
                it.streams = from.apart;
                it.ordered = from.apart && from.ordered;
                break;
            case Axis::PARENT:
                it.streams = it.single = it.apart = it.ordered = from.single;
                break;
            case Axis::FOLLOWING: it.streams = it.ordered = from.single; break;
            case Axis::FOLLOWING_SIBLING: it.streams = it.apart = it.ordered = from.single; break;
            case Axis::PRECEDING_SIBLING: it.streams = it.apart = from.single; break;
            default: it.streams = from.single;
        }
        if (from.single && takes_one(it)) it.single = it.apart = it.ordered = true;
        if (it.height > MOST_STREAMED) it.streams = it.ordered = false;
    }

    // Whether a predicate leaves one node at most, of those that come from one.
    bool takes_one(const Expression& it) const {
        for (int32_t i = 1; i < it.count; ++i) {
            const Expression& predicate = expressions[size_t(argument(it, i))];
            if (predicate.op == Op::NUMBER || predicate.op == Op::LAST) return true;
        }
        return false;
    }
};

}  // namespace xsift
