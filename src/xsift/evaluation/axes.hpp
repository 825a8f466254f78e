// Axes: from one node to those that a step leads to, before its predicates; and the budget that all this is
// charged to.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "library.hpp"
#include "node_tree.hpp"
#include "scratch.hpp"

namespace xsift {

struct OverBudget {};

class Axes {
   public:
    Library library;

    int64_t steps_left() const { return budget; }

   protected:
    static constexpr int32_t UNRESOLVED = -2;

    NodeTree* tree = nullptr;
    int64_t budget = 0;
    std::vector<int32_t> doc_names;  // by name of the library: the document's number for it, NONE, or UNRESOLVED
    std::vector<int32_t> doc_uris;   // likewise by URI

    void charge(int64_t work) {
        budget -= work;
        if (budget < 0) throw OverBudget();
    }

    void charge_text(size_t length) { charge(1 + int64_t(length >> 4)); }

    // The names that were linked are looked for in a new document.
    void forget_names() {
        doc_names.assign(size_t(library.names.size()), UNRESOLVED);
        doc_uris.assign(size_t(library.uris.size()), UNRESOLVED);
    }

    // There are more names.
    void extend_names() {
        doc_names.resize(size_t(library.names.size()), UNRESOLVED);
        doc_uris.resize(size_t(library.uris.size()), UNRESOLVED);
    }

    int32_t arg(const Expression& it, int32_t i) const { return library.argument(it, i); }

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
                const bool is_it = tree->names[node] == test.name && tree->kinds[node] == NodeKind::ELEMENT;
                if (is_it && visit(node)) return true;
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
};

}  // namespace xsift
