// NodeTree: a document as XPath 1.0 sees it, in flat arrays, one entry for each node.
//
// Nodes are numbered in document order: the document itself is 0, an element is followed by its namespace
// nodes, its attributes, then its children. So a set of nodes in document order is an ascending list, and what
// is below a node is a range, from itself to lasts[node].
//
// All character data lies end to end in `text`, in document order. So the string-value of an element, which is
// all text inside it, is a slice of `text`: no string-value is ever built.
//
// Namespace nodes are made only if they are asked for: there is one for each prefix in scope of each element.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "string_table.hpp"

namespace xsift {

enum class NodeKind : uint8_t { DOCUMENT, ELEMENT, ATTRIBUTE, TEXT, COMMENT, INSTRUCTION, NAMESPACE };

struct ElementList {
    const int32_t* begin;
    const int32_t* end;
};

struct NodeTree {
    // By node. NONE stands for "there is none".
    static constexpr int32_t NONE = -1;
    std::vector<NodeKind> kinds;
    std::vector<int32_t> names;     // expanded name (of a PI its target, of a namespace node its prefix), a number in
                                    // `expanded`; NONE for other nodes
    std::vector<int32_t> prefixes;  // as the document wrote it, a number in `strings`; EMPTY if none
    std::vector<int32_t> parents;
    std::vector<int32_t> lasts;     // the last node below it, attributes included; itself if there is none
    std::vector<int32_t> firsts;    // the first child
    std::vector<int32_t> befores;   // the sibling before it
    std::vector<uint32_t> begins;   // its string-value: a slice of `text`, or, for nodes that are neither document,
    std::vector<uint32_t> ends;     // element nor text, of `values`
    std::string text;
    std::string values;

    static constexpr int32_t EMPTY = 0;  // the number of "" in `strings`
    StringTable strings;                 // prefixes and namespace URIs
    StringTable expanded;                // names: the 4-byte number of the URI in `strings`, then the local name
    std::vector<int32_t> id_attributes;  // attributes that a DTD, or their name xml:id, declares to be IDs
    bool has_namespaces = false;         // whether there are namespace nodes

    // Element numbers by expanded name: by_name[name_starts[name]] .. [name_starts[name + 1] - 1].
    std::vector<int32_t> by_name;
    std::vector<int32_t> name_starts;
    std::vector<int32_t> elements;  // all of them

    int32_t size() const { return int32_t(kinds.size()); }

    std::string_view value(int32_t node) const {
        const NodeKind kind = kinds[node];
        const bool is_text = kind == NodeKind::ELEMENT || kind == NodeKind::TEXT || kind == NodeKind::DOCUMENT;
        return {(is_text ? text : values).data() + begins[node], ends[node] - begins[node]};
    }

    // Whether a node is a child of its parent, unlike attributes and namespace nodes.
    bool is_child(int32_t node) const {
        return kinds[node] != NodeKind::ATTRIBUTE && kinds[node] != NodeKind::NAMESPACE;
    }

    std::string_view local_name(int32_t name) const { return expanded[name].substr(4); }

    std::string_view uri(int32_t name) const {
        int32_t number;
        std::memcpy(&number, expanded[name].data(), 4);
        return strings[number];
    }

    ElementList elements_named(int32_t name) const {
        return {by_name.data() + name_starts[name], by_name.data() + name_starts[name + 1]};
    }

    int32_t add_expanded(int32_t uri, std::string_view local) {
        key.assign(reinterpret_cast<const char*>(&uri), 4);
        key.append(local);
        return expanded.add(key);
    }

    // The number of a name, or NONE if the document has none like it.
    int32_t find_expanded(std::string_view uri, std::string_view local) {
        const int32_t number = strings.find(uri);
        if (number < 0) return NONE;
        key.assign(reinterpret_cast<const char*>(&number), 4);
        key.append(local);
        return expanded.find(key);
    }

    void clear() {
        constexpr size_t KEPT = 1 << 16;  // entries that a document may leave behind
        if (kinds.capacity() > KEPT || text.capacity() + values.capacity() > 16 * KEPT) *this = NodeTree();
        kinds.clear();
        names.clear();
        prefixes.clear();
        parents.clear();
        lasts.clear();
        firsts.clear();
        befores.clear();
        begins.clear();
        ends.clear();
        text.clear();
        values.clear();
        strings.clear();
        expanded.clear();
        id_attributes.clear();
        has_namespaces = false;
        strings.add("");
    }

    // Sorts elements by name. To be called once, when the tree is complete.
    void index() {
        name_starts.assign(expanded.size() + 1, 0);
        elements.clear();
        for (int32_t node = 0; node < size(); ++node) {
            if (kinds[node] != NodeKind::ELEMENT) continue;
            elements.push_back(node);
            ++name_starts[names[node] + 1];
        }
        for (size_t i = 1; i < name_starts.size(); ++i) name_starts[i] += name_starts[i - 1];
        by_name.resize(elements.size());
        next.assign(name_starts.begin(), name_starts.end());
        for (const int32_t node : elements) by_name[next[names[node]]++] = node;
    }

    size_t bytes() const {
        return kinds.capacity() * (1 + 8 * sizeof(int32_t)) + text.capacity() + values.capacity() + strings.bytes() +
               expanded.bytes() + (by_name.capacity() + elements.capacity()) * sizeof(int32_t);
    }

   private:
    std::string key;
    std::vector<int32_t> next;
};

}  // namespace xsift
