// Evaluator: runs expressions of a library over the nodes of a document. XPath 1.0 as libxml2 implements it.
//
// Values have static types, so there is a function for each: truth(), number(), string(), and each(), which enumerates a
// node-set. A set is built only where nodes could come twice, where positions are counted from the end, or where it is
// kept: what does not depend on the context node is found once a document (Expression.kept), for all subscriptions. What
// does depend on it, and is part of several expressions (Expression.shared), is remembered in a table that forgets.
//
// Everything that takes time is charged: a step for each node looked at, and for each 16 bytes of text. When the budget is
// used up, OverBudget is thrown, and the caller goes on with the next expression. As memory is only taken where steps
// are charged, the budget bounds it as well.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "characters.hpp"
#include "library.hpp"
#include "node_tree.hpp"
#include "number.hpp"
#include "number_text.hpp"
#include "scratch.hpp"
#include "text_functions.hpp"

namespace xsift {

struct OverBudget {};

struct Context {
    int32_t node;
    int32_t position = 1;
    int32_t size = 1;
};

class Evaluator {
   public:
    Library library;
    int64_t steps = 1000000;      // the budget of one expression on one document,
    int64_t steps_per_node = 50;  // and how much it grows with the document

    // Makes a document the one to evaluate on. `target` is to stay as it is meanwhile.
    void begin(NodeTree* target) {
        tree = target;
        clear_kept();
        doc_names.assign(size_t(library.names.size()), UNRESOLVED);
        doc_uris.assign(size_t(library.uris.size()), UNRESOLVED);
        lang_name = UNRESOLVED;
        has_ids = false;
        if (marks.size() < size_t(tree->size())) {
            marks.assign(size_t(tree->size()), 0);
            mark = 0;
        }
    }

    int32_t link(const char* data, size_t length) {
        const size_t before = library.expressions.size();
        const int32_t root = library.link(data, length);
        // What is remembered may lie among the texts of the library, which move.
        if (library.expressions.size() > before) clear_kept();
        doc_names.resize(size_t(library.names.size()), UNRESOLVED);
        doc_uris.resize(size_t(library.uris.size()), UNRESOLVED);
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

    int64_t steps_left() const { return budget; }

   private:
    static constexpr int32_t UNRESOLVED = -2;
    static constexpr size_t MOST_KEPT = 64 << 20;  // bytes of strings and sets that are kept for a document

    struct Kept {
        int32_t epoch = 0;
        int32_t set = -1;  // a number in kept_sets
        double number = 0;
        std::string_view text;
    };

    // What a shared expression was for some context node. A new entry takes the place of an old one. 32 bytes, and not
    // many of them: the table is to stay in the cache.
    struct alignas(32) Local {
        int32_t expression = -1;
        int32_t node = 0;
        int32_t epoch = 0;
        int32_t first = 0;  // of a node-set
        union {
            double number = 0;  // or a boolean; of a node-set: whether it has no second node
            const char* data;
        };
        size_t size = 0;

        bool is_only() const { return number != 0; }
        std::string_view text() const { return {data, size}; }
    };
    static_assert(sizeof(Local) == 32, "two to a cache line");
    static constexpr int LOCAL_BITS = 14;

    NodeTree* tree = nullptr;
    std::vector<Local> locals = std::vector<Local>(size_t(1) << LOCAL_BITS);
    int64_t budget = 0;
    std::vector<int32_t> doc_names;  // by name of the library: the document's number for it, NONE, or UNRESOLVED
    std::vector<int32_t> doc_uris;
    int32_t lang_name = UNRESOLVED;
    std::vector<Kept> kept;          // by expression: what it is in this document
    std::deque<NodeList> kept_sets;  // which do not move while one is being visited
    size_t kept_sets_used = 0, kept_nodes = 0;
    int32_t epoch = 1;
    Arena arena;
    ListPool lists;
    std::vector<uint32_t> marks;     // by node: the last search that met it
    uint32_t mark = 0;
    bool has_ids = false;
    std::unordered_map<std::string_view, int32_t> ids;

    void charge(int64_t work) {
        budget -= work;
        if (budget < 0) throw OverBudget();
    }

    void charge_text(size_t length) { charge(1 + int64_t(length >> 4)); }

    void refill() {
        if (arena.bytes() + kept_nodes * sizeof(int32_t) > MOST_KEPT) clear_kept();
        budget = steps + steps_per_node * tree->size();
    }

    void clear_kept() {
        arena.clear();
        ++epoch;
        if (kept_nodes > (size_t(1) << 20)) kept_sets.clear();
        kept_sets_used = kept_nodes = 0;
    }

    int32_t arg(const Expression& it, int32_t i) const { return library.argument(it, i); }

    Local& local(int32_t expression, int32_t node) {
        const uint32_t hash = uint32_t(expression) * 0x9e3779b1u + uint32_t(node) * 0x85ebca6bu;
        return locals[(hash ^ hash >> 15) * 0x2c1b3c6du >> (32 - LOCAL_BITS)];
    }

    bool is_known(const Local& entry, int32_t expression, int32_t node) {
        charge(1);
        return entry.expression == expression && entry.node == node && entry.epoch == epoch;
    }

    Local& remember(int32_t expression, int32_t node) {
        Local& entry = local(expression, node);
        entry.expression = expression;
        entry.node = node;
        entry.epoch = epoch;
        return entry;
    }

    // --- node tests

    int32_t resolved_name(int32_t name) {
        int32_t& found = doc_names[size_t(name)];
        if (found == UNRESOLVED) found = tree->find_expanded(library.name_uri(name), library.name_local(name));
        return found;
    }

    int32_t resolved_uri(int32_t uri) {
        int32_t& found = doc_uris[size_t(uri)];
        if (found == UNRESOLVED) found = tree->strings.find(library.uris[uri]);
        return found;
    }

    // A node test in terms of the document.
    struct NodeTest {
        Test test;
        NodeKind principal;
        int32_t name;  // of the document; of a URI for Test::NAMESPACE
    };

    NodeTest node_test(const Expression& step) {
        const NodeKind principal = step.axis() == Axis::ATTRIBUTE   ? NodeKind::ATTRIBUTE
                                   : step.axis() == Axis::NAMESPACE ? NodeKind::NAMESPACE
                                                                    : NodeKind::ELEMENT;
        int32_t name = NodeTree::NONE;
        if (step.test == Test::NAME || step.test == Test::TARGET) name = resolved_name(step.name);
        if (step.test == Test::NAMESPACE) name = resolved_uri(step.name);
        return {step.test, principal, name};
    }

    bool passes(const NodeTest& it, int32_t node) const {
        const NodeKind kind = tree->kinds[node];
        switch (it.test) {
            case Test::NAME: return kind == it.principal && tree->names[node] == it.name;
            case Test::ANY: return kind == it.principal;
            case Test::NAMESPACE: {
                if (kind != it.principal) return false;
                if (kind == NodeKind::NAMESPACE) return true;
                int32_t uri;
                std::memcpy(&uri, tree->expanded[tree->names[node]].data(), 4);
                return uri == it.name;
            }
            case Test::NODE: return true;
            case Test::TEXT: return kind == NodeKind::TEXT;
            case Test::COMMENT: return kind == NodeKind::COMMENT;
            case Test::INSTRUCTION: return kind == NodeKind::INSTRUCTION;
            default: return kind == NodeKind::INSTRUCTION && tree->names[node] == it.name;
        }
    }

    // --- axes: enumerate the nodes that a step leads to from one node, nearest first, before its predicates

    bool walk(const Expression& step, int32_t from, Visitor visit) {
        const NodeTest test = node_test(step);
        if (test.name < 0 && (test.test == Test::NAME || test.test == Test::TARGET || test.test == Test::NAMESPACE) &&
            !(test.test == Test::NAMESPACE && test.principal == NodeKind::NAMESPACE)) {
            charge(1);
            return false;
        }
        switch (step.axis()) {
            case Axis::CHILD: return walk_children(test, from, visit);
            case Axis::DESCENDANT: return walk_range(test, from + 1, tree->lasts[from], visit);
            case Axis::DESCENDANT_OR_SELF:
                charge(1);
                if (passes(test, from) && visit(from)) return true;
                return walk_range(test, from + 1, tree->lasts[from], visit);
            case Axis::ATTRIBUTE: return walk_own(test, NodeKind::ATTRIBUTE, from, visit);
            case Axis::NAMESPACE: return walk_own(test, NodeKind::NAMESPACE, from, visit);
            case Axis::SELF:
                charge(1);
                return passes(test, from) && visit(from);
            case Axis::PARENT: {
                charge(1);
                const int32_t parent = tree->parents[from];
                return parent >= 0 && passes(test, parent) && visit(parent);
            }
            case Axis::ANCESTOR_OR_SELF:
                charge(1);
                if (passes(test, from) && visit(from)) return true;
                [[fallthrough]];
            case Axis::ANCESTOR:
                for (int32_t node = tree->parents[from]; node >= 0; node = tree->parents[node]) {
                    charge(1);
                    if (passes(test, node) && visit(node)) return true;
                }
                return false;
            case Axis::FOLLOWING_SIBLING: {
                if (from == 0 || !tree->is_child(from)) return false;
                const int32_t end = tree->lasts[tree->parents[from]];
                for (int32_t node = tree->lasts[from] + 1; node <= end; node = tree->lasts[node] + 1) {
                    charge(1);
                    if (passes(test, node) && visit(node)) return true;
                }
                return false;
            }
            case Axis::PRECEDING_SIBLING:
                for (int32_t node = tree->befores[from]; node >= 0; node = tree->befores[node]) {
                    charge(1);
                    if (passes(test, node) && visit(node)) return true;
                }
                return false;
            case Axis::FOLLOWING:  // of an attribute, libxml2 takes it to be its element's
                if (!tree->is_child(from)) from = tree->parents[from];
                return walk_range(test, tree->lasts[from] + 1, tree->size() - 1, visit);
            default:
                if (!tree->is_child(from)) from = tree->parents[from];
                return walk_preceding(test, from, visit);
        }
    }

    bool walk_children(const NodeTest& test, int32_t from, Visitor visit) {
        const int32_t first = tree->firsts[from];
        if (first < 0) {
            charge(1);
            return false;
        }
        const int32_t end = tree->lasts[from];
        if (test.test == Test::NAME) {
            // Where there are many children and few of that name, its list is shorter.
            const ElementList named = tree->elements_named(test.name);
            if (named.end - named.begin <= 4) {
                charge(1);
                for (const int32_t* at = named.begin; at != named.end; ++at)
                    if (tree->parents[*at] == from && visit(*at)) return true;
                return false;
            }
            for (int32_t node = first; node <= end; node = tree->lasts[node] + 1) {
                charge(1);
                if (tree->names[node] == test.name && tree->kinds[node] == NodeKind::ELEMENT && visit(node)) return true;
            }
            return false;
        }
        for (int32_t node = first; node <= end; node = tree->lasts[node] + 1) {
            charge(1);
            if (passes(test, node) && visit(node)) return true;
        }
        return false;
    }

    // Nodes from `first` to `last` that are children of something.
    bool walk_range(const NodeTest& test, int32_t first, int32_t last, Visitor visit) {
        if (test.test == Test::NAME || test.test == Test::ANY) {
            const ElementList named = test.test == Test::NAME ? tree->elements_named(test.name) : all_elements();
            const int32_t* at = first <= 1 ? named.begin : std::lower_bound(named.begin, named.end, first);
            charge(1);
            for (; at != named.end && *at <= last; ++at) {
                charge(1);
                if (visit(*at)) return true;
            }
            return false;
        }
        for (int32_t node = first; node <= last; ++node) {
            charge(1);
            if (tree->is_child(node) && passes(test, node) && visit(node)) return true;
        }
        return false;
    }

    ElementList all_elements() const {
        return {tree->elements.data(), tree->elements.data() + tree->elements.size()};
    }

    bool walk_preceding(const NodeTest& test, int32_t from, Visitor visit) {
        if (test.test == Test::NAME || test.test == Test::ANY) {
            const ElementList named = test.test == Test::NAME ? tree->elements_named(test.name) : all_elements();
            const int32_t* at = std::lower_bound(named.begin, named.end, from);
            while (at != named.begin) {
                --at;
                charge(1);
                if (tree->lasts[*at] < from && visit(*at)) return true;  // else it is an ancestor
            }
            return false;
        }
        for (int32_t node = from - 1; node > 0; --node) {
            charge(1);
            if (tree->is_child(node) && tree->lasts[node] < from && passes(test, node) && visit(node)) return true;
        }
        return false;
    }

    // Attributes or namespace nodes.
    bool walk_own(const NodeTest& test, NodeKind kind, int32_t from, Visitor visit) {
        if (tree->kinds[from] != NodeKind::ELEMENT) return false;
        for (int32_t node = from + 1; node < tree->size() && !tree->is_child(node); ++node) {
            charge(1);
            if (tree->kinds[node] == kind && passes(test, node) && visit(node)) return true;
        }
        return false;
    }

    // --- predicates

    bool accepts(int32_t predicate, const Context& context) {
        const Expression& it = library[predicate];
        if (it.op == Op::NUMBER) return it.number == context.position;
        if (it.op == Op::LAST) return context.position == context.size;
        if (it.type == TYPE_NUMBER) return number(predicate, context) == context.position;
        return truth(predicate, context);
    }

    // The nodes that a step leads to from one node.
    bool step_from(const Expression& step, int32_t from, Visitor visit) {
        if (step.count == 1) return walk(step, from, visit);
        if (step.wants_last) return step_with_size(step, from, visit);
        if (step.count == 2) {
            const int32_t predicate = arg(step, 1);
            const bool is_place = library[predicate].op == Op::NUMBER;
            Context context{0, 0, 0};
            bool stopped = false;
            walk(step, from, [&](int32_t node) {
                ++context.position;
                context.node = node;
                if (!accepts(predicate, context)) return false;
                stopped = visit(node);
                return stopped || is_place;  // no further one has this position
            });
            return stopped;
        }
        return step_with_positions(step, from, visit);
    }

    bool step_with_positions(const Expression& step, int32_t from, Visitor visit) {
        Borrowed positions(lists);
        positions.list.assign(size_t(step.count), 0);
        return walk(step, from, [&](int32_t node) {
            for (int32_t i = 1; i < step.count; ++i)
                if (!accepts(arg(step, i), Context{node, ++positions.list[size_t(i)], 0})) return false;
            return visit(node);
        });
    }

    bool step_with_size(const Expression& step, int32_t from, Visitor visit) {
        Borrowed found(lists);
        walk(step, from, [&](int32_t node) {
            found.list.push_back(node);
            return false;
        });
        filter(step, found.list);
        for (const int32_t node : found.list)
            if (visit(node)) return true;
        return false;
    }

    // Keeps of a list the nodes that pass the predicates of a STEP or FILTER, one predicate after the other.
    void filter(const Expression& it, NodeList& nodes) {
        for (int32_t i = 1; i < it.count; ++i) {
            const int32_t predicate = arg(it, i);
            const int32_t size = int32_t(nodes.size());
            const Expression& test = library[predicate];
            if (test.op == Op::NUMBER || test.op == Op::LAST) {
                const double place = test.op == Op::LAST ? size : test.number;
                charge(1);
                if (place >= 1 && place <= size && place == std::floor(place)) {
                    nodes[0] = nodes[size_t(place) - 1];
                    nodes.resize(1);
                } else {
                    nodes.clear();
                }
                continue;
            }
            size_t kept_now = 0;
            for (int32_t at = 0; at < size; ++at)
                if (accepts(predicate, Context{nodes[size_t(at)], at + 1, size})) nodes[kept_now++] = nodes[size_t(at)];
            nodes.resize(kept_now);
        }
    }

    // --- node-sets

    // Visits each node of a set once; if `twice` is allowed, perhaps more than once. True if a visit stopped it.
    bool each(int32_t number, const Context& context, bool twice, Visitor visit) {
        const Expression& it = library[number];
        if (it.op == Op::CONTEXT) return visit(context.node);
        if (it.op == Op::ROOT) return visit(0);
        if (it.kept) return visit_all(kept_set(number), visit);
        if (it.shared) {
            const Local& entry = first_two(number, context);
            if (entry.first < 0) return false;
            if (entry.is_only()) return visit(entry.first);
        }
        return enumerate(number, it, context, twice, visit);
    }

    // The first node of a shared set, and whether there are more.
    const Local& first_two(int32_t number, const Context& context) {
        const Local& known = local(number, context.node);
        if (is_known(known, number, context.node)) return known;
        int32_t first = NodeTree::NONE;
        bool is_only = true;
        enumerate(number, library[number], context, false, [&](int32_t node) {
            if (first >= 0) is_only = false;
            else first = node;
            return !is_only;
        });
        Local& entry = remember(number, context.node);
        entry.first = first;
        entry.number = is_only;
        return entry;
    }

    bool enumerate(int32_t number, const Expression& it, const Context& context, bool twice, Visitor visit) {
        if (it.op == Op::STEP && (it.streams || (twice && it.height < 64))) {
            const Expression& source = library[arg(it, 0)];
            if (source.op == Op::CONTEXT) return step_from(it, context.node, visit);
            if (source.op == Op::ROOT) return step_from(it, 0, visit);
            return each(arg(it, 0), context, false, [&](int32_t from) { return step_from(it, from, visit); });
        }
        if (it.op == Op::UNION && twice) {
            for (int32_t i = 0; i < it.count; ++i)
                if (each(arg(it, i), context, true, visit)) return true;
            return false;
        }
        Borrowed found(lists);
        collect(number, context, found.list);
        return visit_all(found.list, visit);
    }

    static bool visit_all(const NodeList& nodes, Visitor visit) {
        for (const int32_t node : nodes)
            if (visit(node)) return true;
        return false;
    }

    const NodeList& kept_set(int32_t number) {
        Kept& memory = kept[size_t(number)];
        if (memory.epoch == epoch) return kept_sets[size_t(memory.set)];
        Borrowed found(lists);
        build(number, Context{0}, found.list);
        sort(number, found.list);
        return keep_set(number, found.list);
    }

    const NodeList& keep_set(int32_t number, const NodeList& nodes) {
        if (kept_sets_used == kept_sets.size()) kept_sets.emplace_back();
        NodeList& set = kept_sets[kept_sets_used];
        set.assign(nodes.begin(), nodes.end());
        kept_nodes += nodes.size() + 16;
        kept[size_t(number)].epoch = epoch;
        kept[size_t(number)].set = int32_t(kept_sets_used++);
        return set;
    }

    // Appends the nodes of a set to an empty list, each once.
    void collect(int32_t number, const Context& context, NodeList& nodes) {
        if (library[number].kept) {
            const NodeList& set = kept_set(number);
            charge(int64_t(set.size() >> 3));
            nodes.assign(set.begin(), set.end());
        } else {
            build(number, context, nodes);
        }
    }

    void build(int32_t number, const Context& context, NodeList& nodes) {
        const Expression& it = library[number];
        charge(1);
        switch (it.op) {
            case Op::CONTEXT: nodes.push_back(context.node); return;
            case Op::ROOT: nodes.push_back(0); return;
            case Op::UNION:
                for (int32_t i = 0; i < it.count; ++i) {
                    Borrowed part(lists);
                    collect(arg(it, i), context, part.list);
                    charge(int64_t(part.list.size()));
                    nodes.insert(nodes.end(), part.list.begin(), part.list.end());
                }
                keep_distinct(nodes);
                return;
            case Op::FILTER:
                collect(arg(it, 0), context, nodes);
                sort(arg(it, 0), nodes);
                filter(it, nodes);
                return;
            case Op::CALL: find_ids(arg(it, 0), context, nodes); return;
            default: build_step(it, context, nodes);
        }
    }

    void build_step(const Expression& it, const Context& context, NodeList& nodes) {
        Borrowed sources(lists);
        collect(arg(it, 0), context, sources.list);
        if (it.streams) {
            for (const int32_t from : sources.list)
                step_from(it, from, [&](int32_t node) {
                    nodes.push_back(node);
                    return false;
                });
        } else if (it.counts) {
            for (const int32_t from : sources.list) {
                const size_t before = nodes.size();
                step_from(it, from, [&](int32_t node) {
                    nodes.push_back(node);
                    return false;
                });
                if (nodes.size() > size_t(tree->size()) && nodes.size() > before) keep_distinct(nodes);
            }
            keep_distinct(nodes);
        } else {
            sort(arg(it, 0), sources.list);
            build_wide(it, sources.list, nodes);
            filter(it, nodes);
        }
    }

    // What an axis leads to from many nodes (ascending), without going over the same ground twice.
    void build_wide(const Expression& it, const NodeList& sources, NodeList& nodes) {
        const auto add = [&](int32_t node) {
            nodes.push_back(node);
            return false;
        };
        if (sources.empty()) return;
        switch (it.axis()) {
            case Axis::DESCENDANT:
            case Axis::DESCENDANT_OR_SELF: {
                int32_t covered = -1;
                for (const int32_t from : sources) {
                    charge(1);
                    if (from <= covered) continue;  // it lies below one that was walked
                    walk(it, from, add);
                    covered = tree->lasts[from];
                }
                // An attribute lies below its element, but is none of its descendants.
                if (it.axis() == Axis::DESCENDANT_OR_SELF) add_own_nodes(it, sources, nodes);
                return;
            }
            case Axis::FOLLOWING: {
                int32_t best = sources[0];
                for (const int32_t from : sources)
                    if (owner_last(from) < owner_last(best)) best = from;
                charge(int64_t(sources.size()));
                walk(it, best, add);
                return;
            }
            case Axis::PRECEDING: walk(it, sources.back(), add); return;
            case Axis::FOLLOWING_SIBLING:
            case Axis::PRECEDING_SIBLING: {
                // Of the children of one node the first, or the last, sees all that the others see.
                const bool forward = it.axis() == Axis::FOLLOWING_SIBLING;
                next_mark();
                for (size_t i = 0; i < sources.size(); ++i) {
                    const int32_t from = forward ? sources[i] : sources[sources.size() - 1 - i];
                    charge(1);
                    if (from == 0 || !tree->is_child(from) || marks[size_t(tree->parents[from])] == mark) continue;
                    marks[size_t(tree->parents[from])] = mark;
                    walk(it, from, add);
                }
                return;
            }
            case Axis::ANCESTOR:
            case Axis::ANCESTOR_OR_SELF: {
                const NodeTest test = node_test(it);
                next_mark();
                for (const int32_t from : sources) {
                    int32_t node = it.axis() == Axis::ANCESTOR ? tree->parents[from] : from;
                    for (; node >= 0 && marks[size_t(node)] != mark; node = tree->parents[node]) {
                        charge(1);
                        marks[size_t(node)] = mark;
                        if (passes(test, node)) nodes.push_back(node);
                    }
                }
                return;
            }
            default:
                for (const int32_t from : sources) walk(it, from, add);
                keep_distinct(nodes);
        }
    }

    void add_own_nodes(const Expression& it, const NodeList& sources, NodeList& nodes) {
        const NodeTest test = node_test(it);
        const size_t walked = nodes.size();
        for (const int32_t from : sources)
            if (!tree->is_child(from) && passes(test, from)) nodes.push_back(from);
        if (nodes.size() > walked) keep_distinct(nodes);
    }

    int32_t owner_last(int32_t node) const { return tree->lasts[tree->is_child(node) ? node : tree->parents[node]]; }

    void next_mark() {
        if (++mark != 0) return;
        std::fill(marks.begin(), marks.end(), 0);
        mark = 1;
    }

    void keep_distinct(NodeList& nodes) {
        next_mark();
        size_t distinct = 0;
        charge(int64_t(nodes.size()));
        for (const int32_t node : nodes) {
            if (marks[size_t(node)] == mark) continue;
            marks[size_t(node)] = mark;
            nodes[distinct++] = node;
        }
        nodes.resize(distinct);
    }

    // Brings the nodes of an expression into document order.
    void sort(int32_t number, NodeList& nodes) {
        if (library[number].ordered || nodes.size() < 2) return;
        if (std::is_sorted(nodes.begin(), nodes.end())) return;
        charge(int64_t(nodes.size()));
        std::sort(nodes.begin(), nodes.end());
    }

    // The first node in document order; NONE if the set is empty.
    int32_t first_of(int32_t number, const Context& context) {
        const Expression& it = library[number];
        int32_t first = NodeTree::NONE;
        if (it.op == Op::CONTEXT) return context.node;
        if (it.shared) return first_two(number, context).first;
        const bool sorted = it.ordered || it.kept;
        each(number, context, true, [&](int32_t node) {
            if (first < 0 || node < first) first = node;
            return sorted;
        });
        return first;
    }

    bool exists(int32_t number, const Context& context) {
        const Expression& it = library[number];
        if (it.shared) return first_two(number, context).first >= 0;
        // What rules look like: //name[test].
        if (it.op == Op::STEP && it.count == 2 && !it.counts && it.test == Test::NAME && it.axis() == Axis::DESCENDANT &&
            library[it.parts[0]].op == Op::ROOT && !it.kept)
            return exists_named(it);
        return each(number, context, true, [](int32_t) { return true; });
    }

    bool exists_named(const Expression& it) {
        const int32_t name = resolved_name(it.name);
        charge(1);
        if (name < 0) return false;
        const ElementList named = tree->elements_named(name);
        for (const int32_t* at = named.begin; at != named.end; ++at) {
            charge(1);
            if (truth(it.parts[1], Context{*at})) return true;
        }
        return false;
    }

    int64_t count(int32_t number, const Context& context) {
        if (library[number].kept) return int64_t(kept_set(number).size());
        int64_t total = 0;
        each(number, context, false, [&](int32_t) {
            ++total;
            return false;
        });
        return total;
    }

    void find_ids(int32_t number, const Context& context, NodeList& nodes) {
        if (!has_ids) {
            ids.clear();
            for (const int32_t attribute : tree->id_attributes) {
                charge(1);
                ids.emplace(tree->value(attribute), tree->parents[attribute]);
            }
            has_ids = true;
        }
        if (library[number].type == TYPE_NODE_SET) {
            each(number, context, true, [&](int32_t node) {
                find_words(tree->value(node), nodes);
                return false;
            });
        } else {
            find_words(string(number, context), nodes);
        }
        std::sort(nodes.begin(), nodes.end());
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    }

    void find_words(std::string_view text, NodeList& nodes) {
        size_t at = 0;
        charge_text(text.size());
        while (at < text.size()) {
            while (at < text.size() && is_xml_space(text[at])) ++at;
            const size_t begin = at;
            while (at < text.size() && !is_xml_space(text[at])) ++at;
            if (at == begin) continue;
            charge(1);
            const auto found = ids.find(text.substr(begin, at - begin));
            if (found != ids.end()) nodes.push_back(found->second);
        }
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
                return what.empty() || memmem(where.data(), where.size(), what.data(), what.size()) != nullptr;
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
        if (left_type == TYPE_NODE_SET && right_type == TYPE_NODE_SET) return compare_sets(comparison, left, right, context);
        if (left_type == TYPE_NODE_SET && right_type != TYPE_BOOLEAN) return compare_set(comparison, left, right, context);
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
        std::unordered_set<std::string_view> values;
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

    double sum(int32_t set, const Context& context) {
        double total = 0;
        each(set, context, false, [&](int32_t node) {
            total += number_of(node);
            return false;
        });
        return total;
    }

    // To the nearest integer, upwards from the middle; what becomes zero keeps its sign.
    static double rounded(double value) {
        if (value >= -0.5 && value < 0.5) return value * 0.0;
        const double down = std::floor(value);
        return value - down >= 0.5 ? down + 1 : down;
    }

    // --- strings

    std::string_view string(int32_t number_of, const Context& context) {
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
