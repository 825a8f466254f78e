// TwigIndex: all patterns, as paths of one automaton and, where they branch, as nodes and edges.
//
// A pattern is followed from its first step for as long as it is a path. Conditions that are known at the start tag
// come first at each step: they are part of the path. So are conditions on text, if nothing else hangs at the step.
// Where it branches there is a *node*: it holds for an element when all its *edges* do. An edge is what one path of the
// scope accepts: the rest of the pattern along one branch; or, if that branches again, the node there, a *sub*. Equal
// subs of one scope are one. What a node completes, its target, is a key, or as a sub an edge of the scope that it
// stands in.
//
// A node is looked at only when its trigger holds: of its edges, the one that looks the least likely to hold, and among
// equals the one that has the fewest nodes listed under it. That is a guess; a run that has seen documents knows better
// (trigger_table.hpp).
//
// Order. A node whose children must come in order does not see paths that end somewhere below them, but the children
// themselves when they end: each is a sub, even where it does not branch. The node counts them from left to right, and
// has one more edge that holds when it has counted all.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "array.hpp"
#include "automaton.hpp"
#include "bytes_table.hpp"

namespace xsift::sift {

// A step of a pattern, in pre-order.
struct Step {
    enum Kind : uint8_t { ELEMENT, EARLY, LATE };  // a condition is known at the start tag, or at the end tag
    int32_t symbol, first_child, next_sibling;
    uint64_t subject;  // of a condition: the bit of what it is on
    uint8_t descendant;
    uint8_t kind;
};

struct Edge {
    int32_t state;    // of the automaton, which accepts it; NONE if a node completes it
    int32_t sub;      // that node, if it is a sub; NONE
    int32_t uses;     // by nodes; 0: the number is free
    int32_t listed;   // nodes that it triggers,
    int32_t first;    // and the first of them
    int32_t ordered;  // the list of nodes that count it, or NONE
};

struct Node {
    int32_t target;       // the code of what it completes
    int32_t other, third; // two of the edges that must hold beside the trigger, or NONE
    int32_t more;         // whether there are yet more
    int32_t next;         // in the list of those with the same trigger
    int32_t previous;
    int32_t trigger;      // the edge that it is listed under
    int32_t state;        // of the automaton, where the branching step is
    int32_t edges;        // in edge_pool: first the `ordered` ones that it counts, then those that must hold
    int32_t edge_count;
    int32_t ordered;      // 0, or at least 2
    int32_t sub_key;      // of a sub: its number in sub_keys
};

struct OrderedUse {
    int32_t node;
    int32_t position;     // of the edge among those that the node counts
};

class TwigIndex {
   public:
    enum : int32_t { LINEAR = -1, FREE = -2 };

    Automaton automaton;
    Array<Node> nodes;
    Array<int32_t> free_nodes;
    Array<Edge> edges;
    Array<int32_t> free_edges;
    Array<int32_t> edge_pool;
    BytesTable sub_keys;
    Array<int32_t> sub_of_key;            // by number in sub_keys: its node, or NONE
    Lists<OrderedUse> ordered_uses;       // by Edge::ordered
    Array<uint8_t> late;                  // by symbol of a condition: whether it is known only at the end tag
    Array<int32_t> pattern_state;         // by key: where its path ends, or branches first
    Array<int32_t> pattern_node;          // by key: the node there; LINEAR; FREE
    Array<int32_t> free_keys;
    int64_t pattern_count = 0, node_count = 0;
    int64_t ordered_count = 0;            // nodes that count edges

   private:
    const Step* steps = nullptr;          // of the pattern being added
    bool in_order = false;

    // The children of a step: conditions that are known at the start tag, those known at the end tag, elements. Conditions
    // are by ascending symbol, elements in their order.
    struct Children {
        std::vector<int32_t> steps;
        size_t late, elements;  // where these begin

        size_t late_count() const { return elements - late; }
        size_t element_count() const { return steps.size() - elements; }
    };

    Children children_of(int32_t step) const {
        Children found{{}, 0, 0};
        found.steps.reserve(4);
        for (int32_t child = steps[step].first_child; child >= 0; child = steps[child].next_sibling)
            found.steps.push_back(child);
        std::sort(found.steps.begin(), found.steps.end(), [this](int32_t a, int32_t b) {
            const int kind = rank(a), other = rank(b);
            return kind != other ? kind < other : kind < 2 ? steps[a].symbol < steps[b].symbol : a < b;
        });
        while (found.late < found.steps.size() && rank(found.steps[found.late]) == 0) ++found.late;
        found.elements = found.late;
        while (found.elements < found.steps.size() && rank(found.steps[found.elements]) == 1) ++found.elements;
        return found;
    }
    int rank(int32_t step) const {
        return steps[step].kind == Step::EARLY ? 0 : steps[step].kind == Step::LATE ? 1 : 2;
    }

    int32_t pass_early(int32_t state, const Children& children) {
        for (size_t i = 0; i < children.late; ++i) state = pass(state, children.steps[i]);
        return state;
    }
    int32_t pass_late(int32_t state, const Children& children) {
        for (size_t i = children.late; i < children.elements; ++i) {
            const size_t symbol = size_t(steps[children.steps[i]].symbol);
            if (late.size() <= symbol) late.resize(symbol + 1, 0);
            *late.edit(symbol) = 1;
            state = pass(state, children.steps[i]);
        }
        return state;
    }
    int32_t pass(int32_t state, int32_t condition) {
        return automaton.pass(state, steps[condition].symbol, steps[condition].subject);
    }

    // Follows a pattern from a step, which stands in `state`, as far as it is a path. Sets `branch` to the step where
    // it branches (`whole`: to the first one in any case), or to NONE if all of it was followed.
    int32_t follow(int32_t state, int32_t step, bool whole, int32_t& branch) {
        for (;;) {
            const int32_t only = steps[step].first_child;
            if (!whole && only < 0) {
                branch = NONE;
                return state;
            }
            if (!whole && steps[only].next_sibling < 0 && steps[only].kind == Step::ELEMENT) {  // most steps
                step = only;
            } else {
                const Children children = children_of(step);
                state = pass_early(state, children);
                if (!whole && children.element_count() == 0) {
                    branch = NONE;
                    return pass_late(state, children);
                }
                if (whole || children.late_count() || children.element_count() > 1) {
                    branch = step;
                    return state;
                }
                step = children.steps[children.elements];
            }
            state = automaton.advance(state, steps[step].symbol, steps[step].descendant);
        }
    }

    int32_t new_edge(Edge made) {
        if (free_edges.empty()) {
            edges.push_back(made);
            return int32_t(edges.size()) - 1;
        }
        const int32_t edge = free_edges.back();
        free_edges.pop_back();
        made.ordered = edges[edge].ordered;  // an empty list by now
        *edges.edit(edge) = made;
        return edge;
    }

    // The edge that a state of a scope accepts.
    int32_t edge_at(int32_t state) {
        if (automaton.states[state].accepts == NOTHING) {
            const int32_t edge = new_edge(Edge{state, NONE, 0, 0, NONE, NONE});
            automaton.states.edit(state)->accepts = code_of_edge(edge);
        }
        return edge_of_code(automaton.states[state].accepts);
    }

    // The edges of a node at a branching step: those that are counted in order, and the others, ascending.
    void edges_of(int32_t state, int32_t step, std::vector<int32_t>& ordered, std::vector<int32_t>& others) {
        const Children children = children_of(step);
        const int32_t scope = automaton.scope_of(state);
        const bool counts = in_order && children.element_count() > 1;
        for (size_t i = children.elements; i < children.steps.size(); ++i)
            (counts ? ordered : others).push_back(edge_to(scope, children.steps[i], counts));
        if (children.late_count() || !children.element_count())
            others.push_back(edge_at(pass_late(scope, children)));  // without any condition the scope itself holds
        std::sort(others.begin(), others.end());
    }

    // The edge of a scope that stands for a step and what hangs below it.
    int32_t edge_to(int32_t scope, int32_t step, bool whole) {
        int32_t branch;
        const int32_t state =
            follow(automaton.advance(scope, steps[step].symbol, steps[step].descendant), step, whole, branch);
        if (branch == NONE) return edge_at(state);
        std::vector<int32_t> ordered, others;
        edges_of(state, branch, ordered, others);
        const int32_t head[2] = {state, int32_t(ordered.size())};
        std::string key(reinterpret_cast<const char*>(head), sizeof head);
        key.append(reinterpret_cast<const char*>(ordered.data()), ordered.size() * sizeof(int32_t));
        key.append(reinterpret_cast<const char*>(others.data()), others.size() * sizeof(int32_t));
        const int32_t number = sub_keys.add(key.data(), key.size());
        if (number == int32_t(sub_of_key.size())) sub_of_key.push_back(NONE);
        if (sub_of_key[number] == NONE) {
            const int32_t edge = new_edge(Edge{NONE, NONE, 0, 0, NONE, NONE});
            const int32_t node = new_node(state, code_of_edge(edge), ordered, others);
            nodes.edit(node)->sub_key = number;
            edges.edit(edge)->sub = node;
            *sub_of_key.edit(number) = node;
        }
        return edge_of_code(nodes[sub_of_key[number]].target);
    }

    int32_t new_node(int32_t state, int32_t target, const std::vector<int32_t>& ordered,
                     std::vector<int32_t> others) {
        int32_t node = int32_t(nodes.size());
        if (!free_nodes.empty()) {
            node = free_nodes.back();
            free_nodes.pop_back();
        } else {
            nodes.push_back(Node());
        }
        if (!ordered.empty()) others.push_back(new_edge(Edge{NONE, NONE, 0, 0, NONE, NONE}));
        *nodes.edit(node) =
            Node{target, NONE, NONE, false, NONE, NONE, NONE, state, int32_t(edge_pool.size()),
                 int32_t(ordered.size() + others.size()), int32_t(ordered.size()), NONE};
        ordered_count += !ordered.empty();
        for (size_t i = 0; i < ordered.size(); ++i) {
            if (edges[ordered[i]].ordered == NONE) edges.edit(ordered[i])->ordered = ordered_uses.add_list();
            ordered_uses.push(edges[ordered[i]].ordered, OrderedUse{node, int32_t(i)});
        }
        edge_pool.append(ordered.data(), ordered.size());
        edge_pool.append(others.data(), others.size());
        for (int32_t i = 0; i < nodes[node].edge_count; ++i) ++edges.edit(edge_pool[nodes[node].edges + i])->uses;
        ++automaton.states.edit(state)->marks;
        ++node_count;
        list(node);
        return node;
    }

    // How unlikely an edge is to hold, by its looks: a branch that branches again is, then a path with many names.
    int32_t rarity(int32_t edge) const {
        if (edges[edge].state == NONE) return INT32_MAX;
        int32_t names = 0;
        int32_t state = edges[edge].state;
        for (; automaton.states[state].symbol != SCOPE; state = automaton.states[state].parent)
            names += automaton.states[state].symbol != 0;
        return names;
    }

    bool is_better_trigger(int32_t edge, int32_t than) const {
        const int32_t a = rarity(edge), b = rarity(than);
        return a != b ? a > b : edges[edge].listed < edges[than].listed;
    }

    void list(int32_t node) {
        const Node at = nodes[node];
        int32_t best = edge_pool[at.edges + at.ordered];
        for (int32_t i = at.ordered + 1; i < at.edge_count; ++i) {
            const int32_t edge = edge_pool[at.edges + i];
            if (is_better_trigger(edge, best)) best = edge;
        }
        Edge* const trigger = edges.edit(best);
        Node* const listed = nodes.edit(node);
        listed->trigger = best;
        listed->next = trigger->first;
        for (int32_t i = at.ordered; i < at.edge_count; ++i) {
            const int32_t edge = edge_pool[at.edges + i];
            if (edge == best) continue;
            if (listed->other == NONE) listed->other = edge;
            else if (listed->third == NONE) listed->third = edge;
            else listed->more = true;
        }
        if (trigger->first != NONE) nodes.edit(trigger->first)->previous = node;
        trigger->first = node;
        ++trigger->listed;
    }

    void unlist(int32_t node) {
        const Node at = nodes[node];
        if (at.previous != NONE) nodes.edit(at.previous)->next = at.next;
        else edges.edit(at.trigger)->first = at.next;
        if (at.next != NONE) nodes.edit(at.next)->previous = at.previous;
        --edges.edit(at.trigger)->listed;
    }

    void forget_ordered_use(int32_t edge, int32_t node) {
        const int32_t list = edges[edge].ordered;
        for (int32_t i = 0; i < ordered_uses.count(list);) {
            if (ordered_uses.data(list)[i].node == node) ordered_uses.erase(list, i);
            else ++i;
        }
    }

    // Gives up a node and what nobody else uses, down to the leaves.
    void release_node(int32_t first) {
        std::vector<int32_t> pending{first};
        while (!pending.empty()) {
            const int32_t node = pending.back();
            const Node freed = nodes[node];
            pending.pop_back();
            unlist(node);
            for (int32_t i = 0; i < freed.edge_count; ++i) {
                const int32_t edge = edge_pool[freed.edges + i];
                if (i < freed.ordered) forget_ordered_use(edge, node);
                if (--edges.edit(edge)->uses) continue;
                const Edge at = edges[edge];
                free_edges.push_back(edge);
                if (at.sub != NONE) {
                    pending.push_back(at.sub);
                } else if (at.state != NONE) {
                    automaton.states.edit(at.state)->accepts = NOTHING;
                    automaton.release(at.state);
                }
            }
            if (!is_key(freed.target)) *sub_of_key.edit(freed.sub_key) = NONE;
            free_nodes.push_back(node);
            --node_count;
            ordered_count -= freed.ordered > 0;
            --automaton.states.edit(freed.state)->marks;
            // An edge that held at once was accepted by the scope itself, which is gone with it; another scope has paths.
            const int32_t scope = automaton.target(freed.state, SCOPE);
            if (scope != NONE) automaton.release(scope);
            else automaton.release(freed.state);
        }
    }

   public:
    int32_t add(const Step* pattern, bool ordered) {
        steps = pattern;
        in_order = ordered;
        int32_t branch;
        const int32_t state = follow(automaton.advance(0, steps[0].symbol, steps[0].descendant), 0, false, branch);
        int32_t key = int32_t(pattern_node.size());
        if (!free_keys.empty()) {
            key = free_keys.back();
            free_keys.pop_back();
        } else {
            pattern_state.push_back(0);
            pattern_node.push_back(FREE);
        }
        *pattern_state.edit(key) = state;
        if (branch == NONE) {
            automaton.states.edit(state)->accepts = key;
            *pattern_node.edit(key) = LINEAR;
        } else {
            std::vector<int32_t> counted, others;
            edges_of(state, branch, counted, others);
            const int32_t node = new_node(state, key, counted, others);
            *pattern_node.edit(key) = node;
        }
        ++pattern_count;
        return key;
    }

    bool is_late(int32_t condition) const { return size_t(condition) < late.size() && late[condition]; }

    bool has(int32_t key) const { return key >= 0 && key < int32_t(pattern_node.size()) && pattern_node[key] != FREE; }

    void remove(int32_t key) {
        const int32_t state = pattern_state[key];
        if (pattern_node[key] == LINEAR) {
            automaton.states.edit(state)->accepts = NOTHING;
            automaton.release(state);
        } else {
            release_node(pattern_node[key]);
        }
        *pattern_node.edit(key) = FREE;
        free_keys.push_back(key);
        --pattern_count;
    }

    size_t twig_bytes() const {
        return nodes.bytes() + free_nodes.bytes() + edges.bytes() + free_edges.bytes() + edge_pool.bytes() +
               sub_keys.bytes() + sub_of_key.bytes() + ordered_uses.bytes() + late.bytes();
    }
    size_t pattern_bytes() const { return pattern_state.bytes() + pattern_node.bytes() + free_keys.bytes(); }
};

}  // namespace xsift::sift
