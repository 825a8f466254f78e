// NodeSets: the nodes of an expression: enumerated where each comes once, built where one could come twice.
//
// What does not depend on the context node is found once for each document (Expression.kept), for all subscriptions.
// What does depend on it, and is part of several expressions (Expression.shared), is remembered in a table that
// forgets.
#pragma once
#include <deque>
#include <string_view>
#include <unordered_map>

#include "axes.hpp"
#include "number.hpp"

namespace xsift {

struct Context {
    int32_t node;
    int32_t position = 1;
    int32_t size = 1;
};

class NodeSets : public Axes {
   protected:
    // Whether a node passes a predicate; what an expression is as a string.
    virtual bool accepts(int32_t predicate, const Context& context) = 0;
    virtual std::string_view string(int32_t expression, const Context& context) = 0;
    ~NodeSets() = default;

    static constexpr size_t MOST_KEPT = 64 << 20;  // bytes of strings and sets that are kept for a document

    struct Kept {
        uint32_t epoch = 0;
        int32_t set = -1;  // a number in kept_sets
        double number = 0;
        std::string_view text;
    };

    // What a shared expression was for some context node. A new entry takes the place of an old one. 32
    // bytes, and not many of them: the table is to stay in the cache.
    struct alignas(32) Local {
        int32_t expression = -1;
        int32_t node = 0;
        uint32_t epoch = 0;
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

    std::vector<Local> locals = std::vector<Local>(size_t(1) << LOCAL_BITS);
    std::vector<Kept> kept;          // by expression: what it is in this document
    std::deque<NodeList> kept_sets;  // which do not move while one is being visited
    size_t kept_sets_used = 0, kept_nodes = 0;
    uint32_t epoch = 1;
    Arena arena;
    ListPool lists;
    std::vector<uint32_t> marks;     // by node: the last search that met it
    uint32_t mark = 0;
    bool has_ids = false;
    std::unordered_map<std::string_view, int32_t, SaltedHash> ids;

    void begin_sets() {
        clear_kept();
        has_ids = false;
        if (marks.size() < size_t(tree->size())) {
            marks.assign(size_t(tree->size()), 0);
            mark = 0;
        }
    }

    size_t kept_bytes() const { return arena.bytes() + kept_nodes * sizeof(int32_t); }

    void clear_kept() {
        arena.clear();
        next_epoch();
        if (kept_nodes > (size_t(1) << 20)) kept_sets.clear();
        kept_sets_used = kept_nodes = 0;
    }

    void next_epoch() {
        if (++epoch != 0) return;
        for (Kept& it : kept) it.epoch = 0;  // once in four billion documents what was kept long ago must go
        for (Local& it : locals) it.epoch = 0;
        epoch = 1;
    }

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

    // --- predicates

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
                if (accepts(predicate, Context{nodes[size_t(at)], at + 1, size}))
                    nodes[kept_now++] = nodes[size_t(at)];
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
        if (it.op == Op::STEP && it.count == 2 && !it.counts && !it.kept && it.test == Test::NAME &&
            it.axis() == Axis::DESCENDANT && library[it.parts[0]].op == Op::ROOT)
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
            if (accepts(it.parts[1], Context{*at})) return true;
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
};

}  // namespace xsift
