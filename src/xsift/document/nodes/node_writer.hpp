// NodeWriter: fills a NodeTree from the start to the end of a document. Both who read documents into trees
// (quick_builder, and expat in node_tree.pyx) write with it, so that a tree is the same whoever read the
// document.
//
// Text is coalesced as libxml2 does it: character data, CDATA sections and what entities give are one text node until
// a tag, a comment or a processing instruction ends it. An empty CDATA section alone is an empty text node.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "node_tree.hpp"

namespace xsift {

class TreeTooLarge : public std::length_error {
   public:
    TreeTooLarge() : std::length_error("the document is too large to evaluate expressions on it") {}
};

class NodeWriter {
   public:
    static constexpr size_t MOST_NODES = size_t(1) << 30;
    static constexpr size_t MOST_BYTES = size_t(3) << 30;
    static constexpr size_t MOST_NAMESPACES = size_t(1) << 20;  // nodes: elements times prefixes in scope

    NodeTree* tree = nullptr;
    int32_t open = NodeTree::NONE;  // the innermost open element, or the document

    // `namespaces` asks for namespace nodes.
    void begin(NodeTree* target, bool namespaces) {
        tree = target;
        tree->clear();
        tree->has_namespaces = namespaces;
        bindings.clear();
        scopes.clear();
        in_text = false;
        newest_scope = scope = 0;
        namespace_nodes = 0;
        xml_prefix = tree->strings.add("xml");
        xml_uri = tree->strings.add("http://www.w3.org/XML/1998/namespace");
        newest.clear();
        bind(xml_prefix, xml_uri);
        last_children.clear();
        add(NodeKind::DOCUMENT, NodeTree::NONE, NodeTree::NONE);
        open = 0;
        tree->begins.back() = 0;
        last_children.push_back(NodeTree::NONE);
    }

    void finish() {
        end_text();
        close(0);
        tree->index();
    }

    // Namespaces. Declarations come before the element that makes them.

    void declare(std::string_view prefix, std::string_view uri) {
        const int32_t number = tree->strings.add(prefix);
        bind(number, tree->strings.add(uri));
    }

    // The URI that a prefix, a number in `strings`, stands for here; NONE if it is not declared.
    int32_t uri_of(int32_t prefix) const {
        const int32_t at = size_t(prefix) < newest.size() ? newest[prefix] : NodeTree::NONE;
        if (at != NodeTree::NONE) return bindings[at].uri;
        return prefix == NodeTree::EMPTY ? NodeTree::EMPTY : NodeTree::NONE;
    }

    // A number that two places share only if the same namespaces are in scope.
    int32_t current_scope() const { return scope; }

    // Enters the scope of the declarations that were just made.
    void enter_scope() {
        if (bindings.size() > (scopes.empty() ? 1 : scopes.back().bindings)) scope = ++newest_scope;
    }

    // Nodes.

    void start(int32_t name, int32_t prefix) {
        end_text();
        const int32_t node = append_child(NodeKind::ELEMENT, name);
        tree->prefixes.back() = prefix;
        tree->begins.back() = uint32_t(tree->text.size());
        scopes.push_back({bindings.size(), scope});
        last_children.push_back(NodeTree::NONE);
        open = node;
        if (tree->has_namespaces) add_namespaces();
    }

    // An attribute of the element that was started last, whose value is values[begin:].
    void attribute(int32_t name, int32_t prefix, size_t begin, size_t end, bool is_id) {
        add(NodeKind::ATTRIBUTE, name, open);
        tree->prefixes.back() = prefix;
        tree->begins.back() = uint32_t(begin);
        tree->ends.back() = uint32_t(end);
        if (is_id) tree->id_attributes.push_back(tree->size() - 1);
    }

    bool is_xml_id(int32_t name) const {
        return tree->expanded[name].size() == 6 && tree->local_name(name) == "id" &&
               tree->uri(name) == tree->strings[xml_uri];
    }

    void end() {
        end_text();
        const int32_t parent = tree->parents[open];
        close(open);
        scopes.pop_back();
        last_children.pop_back();
        unbind(scopes.empty() ? 1 : scopes.back().bindings);
        scope = scopes.empty() ? 0 : scopes.back().scope;
        open = parent;
    }

    void begin_text() {
        if (in_text || open == 0) return;
        append_child(NodeKind::TEXT, NodeTree::NONE);
        tree->begins.back() = uint32_t(tree->text.size());
        in_text = true;
    }

    void text(const char* data, size_t length) {
        if (open == 0 || length == 0) return;
        if (tree->text.size() + length > MOST_BYTES) throw TreeTooLarge();  // one node may have it all, by entities
        begin_text();
        tree->text.append(data, length);
    }

    void comment(std::string_view content) { leaf(NodeKind::COMMENT, NodeTree::NONE, content); }

    void instruction(std::string_view target, std::string_view content) {
        leaf(NodeKind::INSTRUCTION, tree->add_expanded(NodeTree::EMPTY, target), content);
    }

   private:
    struct Binding {
        int32_t prefix, uri;
        int32_t former;               // that of the prefix before it, or NONE
    };
    struct Scope {
        size_t bindings;  // how many there are in it
        int32_t scope;
    };
    std::vector<Binding> bindings;        // in scope, the innermost last
    std::vector<int32_t> newest;          // by prefix: the innermost one; NONE
    std::vector<Scope> scopes;            // of open elements
    std::vector<int32_t> last_children;   // of open nodes
    std::vector<Binding> listed;
    int32_t scope = 0, newest_scope = 0;
    int32_t xml_prefix = 0, xml_uri = 0;
    size_t namespace_nodes = 0;
    bool in_text = false;

    void bind(int32_t prefix, int32_t uri) {
        if (size_t(prefix) >= newest.size()) newest.resize(size_t(prefix) + 1, NodeTree::NONE);
        bindings.push_back({prefix, uri, newest[prefix]});
        newest[prefix] = int32_t(bindings.size()) - 1;
    }

    // Gives up the innermost ones, but for so many.
    void unbind(size_t kept) {
        for (; bindings.size() > kept; bindings.pop_back()) newest[bindings.back().prefix] = bindings.back().former;
    }

    int32_t add(NodeKind kind, int32_t name, int32_t parent) {
        const int32_t node = tree->size();
        if (size_t(node) >= MOST_NODES || tree->text.size() + tree->values.size() > MOST_BYTES) throw TreeTooLarge();
        tree->kinds.push_back(kind);
        tree->names.push_back(name);
        tree->prefixes.push_back(NodeTree::EMPTY);
        tree->parents.push_back(parent);
        tree->lasts.push_back(node);
        tree->firsts.push_back(NodeTree::NONE);
        tree->befores.push_back(NodeTree::NONE);
        tree->begins.push_back(0);
        tree->ends.push_back(0);
        return node;
    }

    int32_t append_child(NodeKind kind, int32_t name) {
        const int32_t node = add(kind, name, open);
        tree->befores.back() = last_children.back();
        if (last_children.back() == NodeTree::NONE) tree->firsts[open] = node;
        last_children.back() = node;
        return node;
    }

    void leaf(NodeKind kind, int32_t name, std::string_view content) {
        end_text();
        append_child(kind, name);
        tree->begins.back() = uint32_t(tree->values.size());
        tree->values.append(content);
        tree->ends.back() = uint32_t(tree->values.size());
    }

    void end_text() {
        if (!in_text) return;
        in_text = false;
        tree->ends.back() = uint32_t(tree->text.size());
    }

    void close(int32_t node) {
        tree->lasts[node] = tree->size() - 1;
        tree->ends[node] = uint32_t(tree->text.size());
    }

    // The order is libxml2's: `xml`, then what outer elements declare before what inner ones do, and the
    // declarations of one element from the last to the first. It also has a node for xmlns="".
    void add_namespaces() {
        listed.clear();
        size_t end = bindings.size();
        for (size_t level = scopes.size(); level-- > 0;) {
            const size_t begin = level ? scopes[level - 1].bindings : 1;
            for (size_t i = begin; i < end; ++i)
                if (bindings[i].prefix != xml_prefix && newest[bindings[i].prefix] == int32_t(i)) listed.push_back(bindings[i]);
            end = begin;
        }
        listed.push_back({xml_prefix, xml_uri, NodeTree::NONE});
        namespace_nodes += listed.size();
        if (namespace_nodes > MOST_NAMESPACES) throw TreeTooLarge();
        for (size_t i = listed.size(); i-- > 0;) {
            add(NodeKind::NAMESPACE, tree->add_expanded(NodeTree::EMPTY, tree->strings[listed[i].prefix]), open);
            tree->begins.back() = uint32_t(tree->values.size());
            tree->values.append(tree->strings[listed[i].uri]);
            tree->ends.back() = uint32_t(tree->values.size());
        }
    }
};

}  // namespace xsift
