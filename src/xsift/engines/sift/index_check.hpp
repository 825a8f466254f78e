// IndexCheck: whether no number of a restored index leads outside of its arrays.
//
// A saved index is used where it lies in a file, and whoever writes a file can write anything. So it is looked through
// once, when it is restored. What must hold beside ranges: the automaton is a tree, with paths no longer than those of
// patterns; paths of a scope accept edges of that scope, all others keys; lists of nodes have an end; nodes look for all of
// their edges.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "twig_index.hpp"

namespace xsift::sift {

class IndexCheck {
    const TwigIndex& index;
    const Automaton& automaton;
    const int64_t states, nodes, edges, keys, symbols;
    std::vector<uint8_t> is_led_to;    // by state: the one that it has for its parent leads to it; the first one is
    std::vector<int32_t> scope_at;     // by state: the innermost scope that it is in, or NONE
    std::vector<int32_t> scope_of;     // by edge: likewise

    static bool within(int64_t number, int64_t end) { return 0 <= number && number < end; }
    static bool is_none_or(int64_t number, int64_t end) { return number == NONE || within(number, end); }

    static bool all_within(const Array<int32_t>& numbers, int64_t low, int64_t end) {
        for (const int32_t number : numbers)
            if (number < low || number >= end) return false;
        return true;
    }

    bool is_target(int32_t code) const {
        return is_key(code) ? code < keys : code != NOTHING && within(edge_of_code(code), edges);
    }

    // Whether each state is led to from one other at most, and knows which, and by what.
    bool is_tree() {
        is_led_to.assign(states, 0);
        is_led_to[0] = 1;
        if (!automaton.transitions.mark_values(is_led_to.data(), is_led_to.size())) return false;
        for (int32_t state = 0; state < states; ++state) {
            const NfaState& at = automaton.states[state];
            if (!is_none_or(at.parent, states)) return false;
            if (!is_leading(state, at.star, false) || !is_leading(state, at.descendant, true)) return false;
        }
        return automaton.transitions.all([this](uint64_t key, int32_t target) {
            const NfaState& at = automaton.states[target];
            return at.parent >= 0 && at.parent == int32_t(key >> 32) && at.symbol == int32_t(uint32_t(key)) &&
                   !(at.flags & NfaState::LOOPS) && is_told(automaton.states[at.parent], at);
        });
    }

    // Whether a state tells that there is a way to another, on a symbol that there is. It may be looked for by that, or found
    // without.
    bool is_told(const NfaState& from, const NfaState& to) const {
        const bool stays = to.flags & NfaState::STAYS;
        if (to.symbol == SCOPE) return stays;
        return to.symbol > 0 && to.symbol < symbols && from.names & name_bit(to.symbol) &&
               from.flags & (stays ? NfaState::CONDITIONAL : NfaState::NAMED);
    }

    bool is_leading(int32_t state, int32_t target, bool loops) {
        if (target == NONE) return true;
        if (!within(target, states) || is_led_to[target]) return false;
        is_led_to[target] = 1;
        const NfaState& to = automaton.states[target];
        return to.parent == state && to.symbol == 0 && bool(to.flags & NfaState::LOOPS) == loops &&
               !(to.flags & NfaState::STAYS) && (loops || automaton.states[state].flags & NfaState::NAMED);
    }

    // Finds the scopes of states. Those that nothing leads to, or only each other in a circle, are in none. Returns whether no
    // path is too long: an edge is climbed up state by state, and one scope within another by recursion.
    bool find_scopes() {
        enum : int32_t { UNSEEN = -2, PENDING = -3, LOST = -4 };
        std::vector<int32_t> way, length(states, 0);
        bool are_short = true;
        scope_at.assign(states, UNSEEN);
        for (int32_t first = 0; first < states; ++first) {
            int32_t state = first;
            for (; state != NONE && scope_at[state] == UNSEEN; state = automaton.states[state].parent) {
                scope_at[state] = PENDING;
                way.push_back(state);
            }
            int32_t scope = state == NONE || scope_at[state] == PENDING ? int32_t(LOST) : scope_at[state];
            int32_t above = state == NONE ? 0 : length[state];
            for (; !way.empty(); way.pop_back()) {
                const int32_t at = way.back();
                if (at == 0) scope = NONE;
                else if (!is_led_to[at]) scope = LOST;
                else if (scope != LOST && automaton.states[at].symbol == SCOPE) scope = at;
                scope_at[at] = scope;
                length[at] = ++above;
                are_short &= scope == LOST || above <= MOST_STATES;
            }
        }
        std::replace(scope_at.begin(), scope_at.end(), int32_t(LOST), NONE);
        return are_short;
    }
    static constexpr int32_t MOST_STATES = 3000;  // on a path: a pattern has 1,000 nodes, each a `//`, a name and a scope

    bool are_states_fine() const {
        std::vector<int32_t> children(states, 0);
        for (int32_t state = 1; state < states; ++state)
            if (is_led_to[state]) ++children[automaton.states[state].parent];
        for (int32_t state = 0; state < states; ++state) {
            const NfaState& at = automaton.states[state];
            // A leaf is told by that, and is asked for what it accepts.
            if (is_led_to[state] && (at.children != children[state] || (state && !at.children && at.accepts == NOTHING))) return false;
            if (at.marks && automaton.target(state, SCOPE) == NONE) return false;
            if (at.accepts == NOTHING) continue;
            if (!is_target(at.accepts) || is_key(at.accepts) != (scope_at[state] == NONE)) return false;
            if (!is_key(at.accepts) && index.edges[edge_of_code(at.accepts)].state != state) return false;
        }
        return true;
    }

    bool are_nodes_fine() const {
        for (const Node& node : index.nodes) {
            if (!is_target(node.target) || !is_none_or(node.other, edges) || !is_none_or(node.third, edges) ||
                !is_none_or(node.next, nodes) || !is_none_or(node.previous, nodes) || !within(node.trigger, edges) ||
                !within(node.state, states) || node.edges < 0 || node.ordered < 0 || node.edge_count <= node.ordered ||
                int64_t(node.edges) + node.edge_count > int64_t(index.edge_pool.size()))
                return false;
            if (!is_key(node.target) && !within(node.sub_key, int64_t(index.sub_of_key.size()))) return false;
        }
        return all_within(index.edge_pool, 0, edges);
    }

    bool are_edges_fine() {
        scope_of.assign(edges, NONE);
        for (int32_t number = 0; number < edges; ++number) {
            const Edge& edge = index.edges[number];
            if (!is_none_or(edge.state, states) || !is_none_or(edge.sub, nodes) || !is_none_or(edge.first, nodes) ||
                !is_none_or(edge.ordered, int64_t(index.ordered_uses.size())))
                return false;
            if (edge.state != NONE) scope_of[number] = scope_at[edge.state];
            else if (edge.sub != NONE) scope_of[number] = scope_at[index.nodes[edge.sub].state];
            if (edge.uses != 0 && (edge.state != NONE || edge.sub != NONE) && scope_of[number] == NONE) return false;
        }
        for (const Node& node : index.nodes) {  // the edge that holds when a node has counted all
            if (node.ordered) scope_of[index.edge_pool[node.edges + node.edge_count - 1]] = automaton.target(node.state, SCOPE);
        }
        return true;
    }

    // Whether a node is to look for all of its edges that must hold, and each of them can be met.
    bool knows_its_edges(const Node& node, int32_t trigger) const {
        int32_t others[2] = {NONE, NONE}, number = 0;
        for (int32_t i = node.ordered; i < node.edge_count; ++i) {
            const int32_t edge = index.edge_pool[node.edges + i];
            const bool counts = node.ordered && i == node.edge_count - 1;
            if (!counts && index.edges[edge].state == NONE && index.edges[edge].sub == NONE) return false;
            if (edge == trigger) continue;
            if (number < 2) others[number] = edge;
            ++number;
        }
        return node.trigger == trigger && node.other == others[0] && node.third == others[1] && bool(node.more) == (number > 2);
    }

    // Whether nodes are met in the scopes that they stand in alone, and complete edges of those around them.
    bool are_scopes_fine() const {
        std::vector<uint8_t> listed(nodes, 0);
        for (int32_t edge = 0; edge < edges; ++edge) {
            for (int32_t number = index.edges[edge].first; number != NONE; number = index.nodes[number].next) {
                const Node& node = index.nodes[number];
                if (listed[number] || automaton.target(node.state, SCOPE) != scope_of[edge]) return false;
                listed[number] = 1;
                for (int32_t i = node.ordered; i < node.edge_count; ++i)  // each may become its trigger
                    if (scope_of[index.edge_pool[node.edges + i]] != scope_of[edge]) return false;
                if (!knows_its_edges(node, edge)) return false;
                if (is_key(node.target)) continue;
                const int32_t around = scope_at[node.state], completed = edge_of_code(node.target);
                if (around == NONE || scope_of[completed] != around || index.edges[completed].sub != number) return false;
            }
            const int32_t list = index.edges[edge].ordered;
            for (int32_t i = 0; list != NONE && i < index.ordered_uses.count(list); ++i) {
                const int32_t node = index.ordered_uses.data(list)[i].node;
                if (!within(node, nodes) || automaton.target(index.nodes[node].state, SCOPE) != scope_of[edge]) return false;
            }
        }
        return true;
    }

    bool are_lists_fine() const {
        return int64_t(index.pattern_state.size()) == keys && all_within(index.pattern_state, 0, states) &&
               all_within(index.pattern_node, TwigIndex::FREE, nodes) && all_within(index.free_keys, 0, keys) &&
               all_within(index.free_nodes, 0, nodes) && all_within(index.free_edges, 0, edges) &&
               int64_t(index.sub_of_key.size()) == index.sub_keys.size() && all_within(index.sub_of_key, NONE, nodes) &&
               is_none_or(automaton.free_state, states);
    }

   public:
    // All symbols are less than a number.
    IndexCheck(const TwigIndex& index, int64_t symbols)
        : index(index), automaton(index.automaton), states(int64_t(automaton.states.size())), nodes(int64_t(index.nodes.size())),
          edges(int64_t(index.edges.size())), keys(int64_t(index.pattern_node.size())), symbols(symbols) {}

    bool is_fine() {
        return states != 0 && are_lists_fine() && is_tree() && find_scopes() && are_states_fine() && are_nodes_fine() &&
               are_edges_fine() && are_scopes_fine();
    }
};

inline bool is_fine(const TwigIndex& index, int64_t symbols) { return IndexCheck(index, symbols).is_fine(); }

}  // namespace xsift::sift
