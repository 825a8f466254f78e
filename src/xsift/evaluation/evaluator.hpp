// Evaluator: runs expressions of a library over the nodes of a document. XPath 1.0 as libxml2 implements it.
//
// Values have static types, so there is a function for each: truth(), number(), string(), and each(), which
// enumerates a node-set. In layers, each a file:
//
//     library     the expressions of all programs
//     axes        from one node along an axis
//     node_sets   the nodes of an expression
//     this file   booleans, comparisons, numbers, strings
//
// Everything that takes time is charged: a step for each node looked at, and for each 16 bytes of text. When
// the budget is used up, OverBudget is thrown, and the caller goes on with the next expression. As memory is
// only taken where steps are charged, the budget bounds it as well.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "characters.hpp"
#include "node_sets.hpp"
#include "number.hpp"
#include "number_text.hpp"
#include "text_functions.hpp"

namespace xsift {

class Evaluator final : public NodeSets {
   public:
    int64_t steps = 1000000;      // the budget of one expression on one document,
    int64_t steps_per_node = 50;  // and how much it grows with the document

    // Makes a document the one to evaluate on. `target` is to stay as it is meanwhile.
    void begin(NodeTree* target) {
        tree = target;
        forget_names();
        begin_sets();
        lang_name = UNRESOLVED;
    }

    int32_t link(const char* data, size_t length) {
        const size_t before = library.expressions.size();
        const int32_t root = library.link(data, length);
        // What is remembered may lie among the texts of the library, which move.
        if (library.expressions.size() > before) clear_kept();
        extend_names();
        kept.resize(library.expressions.size());
        return root;
    }

    enum Outcome : uint8_t { FALSE = 0, TRUE = 1, OVER_BUDGET = 2 };

    // boolean() of an expression, with the document as its context.
    Outcome holds(int32_t root) {
        refill();
        try {
            return truth(root, Context{0}) ? TRUE : FALSE;
        } catch (const OverBudget&) {
            return OVER_BUDGET;
        }
    }

    // The nodes of an expression, ascending; none if it is no node-set. False if the budget does not allow it.
    bool select(int32_t root, NodeList* nodes) {
        nodes->clear();
        refill();
        if (library[root].type != TYPE_NODE_SET) return true;
        try {
            collect(root, Context{0}, *nodes);
        } catch (const OverBudget&) {
            nodes->clear();
            return false;
        }
        sort(root, *nodes);
        return true;
    }

   private:
    int32_t lang_name = UNRESOLVED;

    void refill() {
        if (kept_bytes() > MOST_KEPT) clear_kept();
        budget = steps + steps_per_node * tree->size();
    }

    bool accepts(int32_t predicate, const Context& context) override {
        const Expression& it = library[predicate];
        if (it.op == Op::NUMBER) return it.number == context.position;
        if (it.op == Op::LAST) return context.position == context.size;
        if (it.type == TYPE_NUMBER) return number(predicate, context) == context.position;
        return truth(predicate, context);
    }

    // --- booleans

    bool truth(int32_t number_of, const Context& context) {
        const Expression& it = library[number_of];
        if (it.type != TYPE_BOOLEAN) return converted_truth(number_of, it, context);
        if (it.shared || it.kept) return remembered_truth(number_of, it, context);
        return plain_truth(it, context);
    }

    bool converted_truth(int32_t number_of, const Expression& it, const Context& context) {
        if (it.type == TYPE_NODE_SET) return exists(number_of, context);
        if (it.type == TYPE_STRING) return !string(number_of, context).empty();
        const double value = number(number_of, context);
        return value != 0 && !std::isnan(value);
    }

    bool remembered_truth(int32_t number_of, const Expression& it, const Context& context) {
        if (it.shared) {
            const Local& known = local(number_of, context.node);
            if (is_known(known, number_of, context.node)) return known.number != 0;
            const bool value = plain_truth(it, context);
            remember(number_of, context.node).number = value;
            return value;
        }
        if (kept[size_t(number_of)].epoch != epoch) {
            const bool value = plain_truth(it, context);
            kept[size_t(number_of)].number = value;
            kept[size_t(number_of)].epoch = epoch;
        }
        return kept[size_t(number_of)].number != 0;
    }

    bool plain_truth(const Expression& it, const Context& context) {
        charge(1);
        switch (it.op) {
            case Op::OR:
                for (int32_t i = 0; i < it.count; ++i)
                    if (truth(arg(it, i), context)) return true;
                return false;
            case Op::AND:
                for (int32_t i = 0; i < it.count; ++i)
                    if (!truth(arg(it, i), context)) return false;
                return true;
            case Op::COMPARE: return compare(Relation(it.detail), it.parts[0], it.parts[1], context);
            default:
                if (it.detail == FUNCTION_NOT) return !truth(it.parts[0], context);
                return call_truth(it, context);
        }
    }

    bool call_truth(const Expression& it, const Context& context) {
        switch (it.detail) {
            case FUNCTION_TRUE: return true;
            case FUNCTION_BOOLEAN: return truth(arg(it, 0), context);
            case FUNCTION_LANG: return has_language(string(arg(it, 0), context), context.node);
            case FUNCTION_CONTAINS: {
                const std::string_view where = string(arg(it, 0), context), what = string(arg(it, 1), context);
                charge_text(where.size() + what.size());
                return is_in(what, where);
            }
            case FUNCTION_STARTS_WITH: {
                const std::string_view where = string(arg(it, 0), context), what = string(arg(it, 1), context);
                charge_text(what.size());
                return where.substr(0, what.size()) == what;
            }
            default: return false;
        }
    }

    bool has_language(std::string_view wanted, int32_t node) {
        if (lang_name == UNRESOLVED) lang_name = tree->find_expanded("http://www.w3.org/XML/1998/namespace", "lang");
        if (tree->kinds[node] == NodeKind::NAMESPACE || lang_name < 0) return false;
        for (; node >= 0; node = tree->parents[node]) {
            charge(1);
            if (tree->kinds[node] != NodeKind::ELEMENT) continue;
            for (int32_t own = node + 1; own < tree->size() && !tree->is_child(own); ++own) {
                charge(1);
                if (tree->kinds[own] == NodeKind::ATTRIBUTE && tree->names[own] == lang_name)
                    return is_language(tree->value(own), wanted);
            }
        }
        return false;
    }

    static bool is_language(std::string_view language, std::string_view wanted) {
        const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; };
        if (language.size() < wanted.size()) return false;
        for (size_t i = 0; i < wanted.size(); ++i)
            if (upper(language[i]) != upper(wanted[i])) return false;
        return language.size() == wanted.size() || language[wanted.size()] == '-';
    }

    // --- comparisons

    template <class Value>
    static bool holds(Relation comparison, const Value& left, const Value& right) {
        switch (comparison) {
            case Relation::EQUAL: return left == right;
            case Relation::NOT_EQUAL: return left != right;
            case Relation::LESS: return left < right;
            case Relation::LESS_EQUAL: return left <= right;
            case Relation::GREATER: return left > right;
            default: return left >= right;
        }
    }

    static Relation mirrored(Relation comparison) {
        switch (comparison) {
            case Relation::LESS: return Relation::GREATER;
            case Relation::LESS_EQUAL: return Relation::GREATER_EQUAL;
            case Relation::GREATER: return Relation::LESS;
            case Relation::GREATER_EQUAL: return Relation::LESS_EQUAL;
            default: return comparison;
        }
    }

    bool compare(Relation comparison, int32_t left, int32_t right, const Context& context) {
        const uint8_t left_type = library[left].type, right_type = library[right].type;
        const bool equality = comparison <= Relation::NOT_EQUAL;
        if (left_type == TYPE_NODE_SET && right_type == TYPE_NODE_SET)
            return compare_sets(comparison, left, right, context);
        if (left_type == TYPE_NODE_SET && right_type != TYPE_BOOLEAN)
            return compare_set(comparison, left, right, context);
        if (right_type == TYPE_NODE_SET && left_type != TYPE_BOOLEAN)
            return compare_set(mirrored(comparison), right, left, context);
        if (left_type == TYPE_BOOLEAN || right_type == TYPE_BOOLEAN) {
            if (equality) return (truth(left, context) == truth(right, context)) == (comparison == Relation::EQUAL);
            // Where the other one is a node-set, it counts as a boolean.
            const double one = left_type == TYPE_NODE_SET ? truth(left, context) : number(left, context);
            const double other = right_type == TYPE_NODE_SET ? truth(right, context) : number(right, context);
            return holds(comparison, one, other);
        }
        if (!equality || left_type == TYPE_NUMBER || right_type == TYPE_NUMBER)
            return holds(comparison, number(left, context), number(right, context));
        const std::string_view one = string(left, context), other = string(right, context);
        charge_text(std::min(one.size(), other.size()));
        return (one == other) == (comparison == Relation::EQUAL);
    }

    // Whether some node of a set compares so with a number or a string.
    bool compare_set(Relation comparison, int32_t set, int32_t other, const Context& context) {
        if (comparison <= Relation::NOT_EQUAL && library[other].type == TYPE_STRING) {
            const std::string_view text = string(other, context);
            const bool equal = comparison == Relation::EQUAL;
            return each(set, context, true, [&](int32_t node) {
                const std::string_view value = tree->value(node);
                charge_text(std::min(value.size(), text.size()));
                return (value == text) == equal;
            });
        }
        const double value = number(other, context);
        return each(set, context, true, [&](int32_t node) { return holds(comparison, number_of(node), value); });
    }

    bool compare_sets(Relation comparison, int32_t left, int32_t right, const Context& context) {
        if (comparison > Relation::NOT_EQUAL) return compare_extremes(comparison, left, right, context);
        Borrowed ours(lists), theirs(lists);
        collect(left, context, ours.list);
        if (ours.list.empty()) return false;
        collect(right, context, theirs.list);
        if (theirs.list.empty()) return false;
        if (comparison == Relation::NOT_EQUAL) return differ(ours.list, theirs.list);
        if (ours.list.size() * theirs.list.size() <= 64) {
            for (const int32_t one : ours.list)
                for (const int32_t other : theirs.list) {
                    charge(1);
                    const std::string_view a = tree->value(one), b = tree->value(other);
                    if (a.size() != b.size()) continue;
                    charge_text(a.size());
                    if (a == b) return true;
                }
            return false;
        }
        const NodeList& small = ours.list.size() < theirs.list.size() ? ours.list : theirs.list;
        const NodeList& large = &small == &ours.list ? theirs.list : ours.list;
        std::unordered_set<std::string_view, SaltedHash> values;
        for (const int32_t node : small) {
            charge_text(2 * tree->value(node).size() + 64);
            values.insert(tree->value(node));
        }
        for (const int32_t node : large) {
            charge_text(tree->value(node).size() + 32);
            if (values.count(tree->value(node))) return true;
        }
        return false;
    }

    // Whether some node of one list has another value than some of the other. Neither is empty.
    bool differ(const NodeList& ours, const NodeList& theirs) {
        const std::string_view value = tree->value(ours[0]);
        const auto is_other = [&](int32_t node) {
            charge_text(std::min(value.size(), tree->value(node).size()));
            return tree->value(node) != value;
        };
        for (const int32_t node : ours)
            if (is_other(node)) return true;
        for (const int32_t node : theirs)
            if (is_other(node)) return true;
        return false;
    }

    // `a < b` of two sets: whether the least number of one is less than the greatest of the other.
    bool compare_extremes(Relation comparison, int32_t left, int32_t right, const Context& context) {
        const bool less = comparison == Relation::LESS || comparison == Relation::LESS_EQUAL;
        double one = 0, other = 0;
        return extreme(left, less, context, &one) && extreme(right, !less, context, &other) &&
               holds(comparison, one, other);
    }

    bool extreme(int32_t set, bool least, const Context& context, double* result) {
        bool found = false;
        each(set, context, true, [&](int32_t node) {
            const double value = number_of(node);
            if (!std::isnan(value) && (!found || (least ? value < *result : value > *result))) {
                *result = value;
                found = true;
            }
            return false;
        });
        return found;
    }

    // --- numbers

    double number_of(int32_t node) {
        const std::string_view text = tree->value(node);
        charge_text(text.size());
        return xpath_number(text.data(), text.size());
    }

    double number(int32_t number_of, const Context& context) {
        const Expression& it = library[number_of];
        if (it.op == Op::NUMBER) return it.number;
        if (it.op == Op::POSITION) return context.position;
        if (it.op == Op::LAST) return context.size;
        if (it.type != TYPE_NUMBER) return plain_number(number_of, it, context);
        if (it.shared) {
            const Local& known = local(number_of, context.node);
            if (is_known(known, number_of, context.node)) return known.number;
            const double value = plain_number(number_of, it, context);
            remember(number_of, context.node).number = value;
            return value;
        }
        if (!it.kept) return plain_number(number_of, it, context);
        if (kept[size_t(number_of)].epoch != epoch) {
            const double value = plain_number(number_of, it, context);
            kept[size_t(number_of)].number = value;
            kept[size_t(number_of)].epoch = epoch;
        }
        return kept[size_t(number_of)].number;
    }

    double plain_number(int32_t expression, const Expression& it, const Context& context) {
        charge(1);
        switch (it.op) {
            case Op::ADD: return number(arg(it, 0), context) + number(arg(it, 1), context);
            case Op::SUBTRACT: return number(arg(it, 0), context) - number(arg(it, 1), context);
            case Op::MULTIPLY: return number(arg(it, 0), context) * number(arg(it, 1), context);
            case Op::DIVIDE: return number(arg(it, 0), context) / number(arg(it, 1), context);
            case Op::MODULO: return std::fmod(number(arg(it, 0), context), number(arg(it, 1), context));
            case Op::NEGATE: return -number(arg(it, 0), context);
            default: break;
        }
        if (it.type == TYPE_BOOLEAN) return truth(expression, context);
        if (it.type == TYPE_NODE_SET) {
            const int32_t first = first_of(expression, context);
            return first < 0 ? std::numeric_limits<double>::quiet_NaN() : number_of(first);
        }
        if (it.type == TYPE_STRING) {
            const std::string_view text = string(expression, context);
            charge_text(text.size());
            return xpath_number(text.data(), text.size());
        }
        switch (it.detail) {
            case FUNCTION_NUMBER: return number(arg(it, 0), context);
            case FUNCTION_COUNT: return double(count(arg(it, 0), context));
            case FUNCTION_SUM: return sum(arg(it, 0), context);
            case FUNCTION_FLOOR: return std::floor(number(arg(it, 0), context));
            case FUNCTION_CEILING: return std::ceil(number(arg(it, 0), context));
            case FUNCTION_ROUND: return rounded(number(arg(it, 0), context));
            default: {  // string-length()
                const std::string_view text = string(arg(it, 0), context);
                charge_text(text.size());
                return double(count_characters(text.data(), text.size()));
            }
        }
    }

    // In document order: in another one it would be rounded otherwise.
    double sum(int32_t set, const Context& context) {
        double total = 0;
        const auto add = [&](int32_t node) {
            total += number_of(node);
            return false;
        };
        if (library[set].ordered || library[set].kept) {
            each(set, context, false, add);
        } else {
            Borrowed found(lists);
            collect(set, context, found.list);
            sort(set, found.list);
            visit_all(found.list, add);
        }
        return total;
    }

    // To the nearest integer, upwards from the middle; what becomes zero keeps its sign.
    static double rounded(double value) {
        if (value >= -0.5 && value < 0.5) return value * 0.0;
        const double down = std::floor(value);
        return value - down >= 0.5 ? down + 1 : down;
    }

    // --- strings

    std::string_view string(int32_t number_of, const Context& context) override {
        const Expression& it = library[number_of];
        if (it.op == Op::STRING) return library.texts[it.name];
        if (it.type != TYPE_STRING) return plain_string(number_of, it, context);
        if (it.shared) {
            const Local& known = local(number_of, context.node);
            if (is_known(known, number_of, context.node)) return known.text();
            const std::string_view text = plain_string(number_of, it, context);
            Local& entry = remember(number_of, context.node);
            entry.data = text.data();
            entry.size = text.size();
            return text;
        }
        if (!it.kept) return plain_string(number_of, it, context);
        if (kept[size_t(number_of)].epoch != epoch) {
            const std::string_view text = arena.copy(plain_string(number_of, it, context));
            kept[size_t(number_of)].text = text;
            kept[size_t(number_of)].epoch = epoch;
        }
        return kept[size_t(number_of)].text;
    }

    std::string_view plain_string(int32_t expression, const Expression& it, const Context& context) {
        charge(1);
        if (it.type == TYPE_NODE_SET) {
            const int32_t first = first_of(expression, context);
            return first < 0 ? std::string_view() : tree->value(first);
        }
        if (it.type == TYPE_BOOLEAN) return truth(expression, context) ? "true" : "false";
        if (it.type == TYPE_NUMBER) {
            const double value = number(expression, context);
            charge(value == std::floor(value) ? 8 : 32);
            char* text = arena.take(NUMBER_TEXT);
            return {text, write_number(value, text)};
        }
        switch (it.detail) {
            case FUNCTION_STRING: return string(arg(it, 0), context);
            case FUNCTION_CONCAT: return concatenation(it, context);
            case FUNCTION_LOCAL_NAME: return local_name(first_of(arg(it, 0), context));
            case FUNCTION_NAME: return qualified_name(first_of(arg(it, 0), context));
            case FUNCTION_NAMESPACE_URI: return namespace_uri(first_of(arg(it, 0), context));
            case FUNCTION_NORMALIZE_SPACE: return normalized(string(arg(it, 0), context));
            case FUNCTION_SUBSTRING: return substring_of(it, context);
            case FUNCTION_SUBSTRING_BEFORE:
            case FUNCTION_SUBSTRING_AFTER: return divided(it, context);
            default: return translated(it, context);
        }
    }

    std::string_view concatenation(const Expression& it, const Context& context) {
        std::string_view parts[16];
        if (it.count > 16) return long_concatenation(it, context);
        size_t length = 0;
        for (int32_t i = 0; i < it.count; ++i) length += (parts[i] = string(arg(it, i), context)).size();
        charge_text(length);
        char* text = arena.take(length);
        size_t at = 0;
        for (int32_t i = 0; i < it.count; ++i) {
            if (!parts[i].empty()) std::memcpy(text + at, parts[i].data(), parts[i].size());
            at += parts[i].size();
        }
        return {text, length};
    }

    std::string_view long_concatenation(const Expression& it, const Context& context) {
        std::string joined;
        for (int32_t i = 0; i < it.count; ++i) {
            const std::string_view part = string(arg(it, i), context);
            charge_text(part.size());
            joined.append(part);
        }
        return arena.copy(joined);
    }

    std::string_view local_name(int32_t node) const {
        if (node < 0 || tree->names[node] < 0) return {};
        return tree->local_name(tree->names[node]);
    }

    std::string_view namespace_uri(int32_t node) const {
        if (node < 0 || tree->names[node] < 0) return {};
        return tree->uri(tree->names[node]);
    }

    std::string_view qualified_name(int32_t node) {
        const std::string_view local = local_name(node);
        if (node < 0 || tree->prefixes[node] == NodeTree::EMPTY) return local;
        const std::string_view prefix = tree->strings[tree->prefixes[node]];
        charge_text(prefix.size() + local.size());
        char* text = arena.take(prefix.size() + 1 + local.size());
        std::memcpy(text, prefix.data(), prefix.size());
        text[prefix.size()] = ':';
        if (!local.empty()) std::memcpy(text + prefix.size() + 1, local.data(), local.size());
        return {text, prefix.size() + 1 + local.size()};
    }

    std::string_view normalized(std::string_view text) {
        while (!text.empty() && is_xml_space(text.front())) text.remove_prefix(1);
        while (!text.empty() && is_xml_space(text.back())) text.remove_suffix(1);
        charge_text(text.size());
        bool is_plain = true;
        for (size_t i = 0; i < text.size() && is_plain; ++i)
            is_plain = !is_xml_space(text[i]) || (text[i] == ' ' && !is_xml_space(text[i + 1]));
        if (is_plain) return text;
        char* result = arena.take(text.size());
        size_t length = 0;
        for (const char c : text) {
            if (!is_xml_space(c)) result[length++] = c;
            else if (result[length - 1] != ' ') result[length++] = ' ';
        }
        return {result, length};
    }

    std::string_view substring_of(const Expression& it, const Context& context) {
        const std::string_view text = string(arg(it, 0), context);
        const double from = number(arg(it, 1), context);
        charge_text(text.size());
        return substring(text, from, it.count == 3, it.count == 3 ? number(arg(it, 2), context) : 0);
    }

    std::string_view divided(const Expression& it, const Context& context) {
        const std::string_view text = string(arg(it, 0), context), divider = string(arg(it, 1), context);
        charge_text(text.size() + divider.size());
        return divide(text, divider, it.detail == FUNCTION_SUBSTRING_BEFORE);
    }

    std::string_view translated(const Expression& it, const Context& context) {
        const std::string_view text = string(arg(it, 0), context);
        const std::string_view from = string(arg(it, 1), context), to = string(arg(it, 2), context);
        charge_text(from.size() + to.size() + 128);
        const Translation translation(from, to);
        charge_text(translation.is_plain() ? 2 * text.size() : 32 * (text.size() + from.size()));
        char* result = arena.take(translation.most_bytes(text.size()));
        return {result, translation.apply(text, result)};
    }
};

}  // namespace xsift
