// Decider: which nodes hold for a branch point, given the yields that were met below it.
//
// Edges that hold are bits. First all of them are set, then what they trigger is looked at, and at last they are cleared. What the
// edges of a part trigger stands in one list (LazyDfa::with_triggers), so that memory is read in order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "lazy_dfa.hpp"

namespace xsift::sift {

class Decider {
    LazyDfa& dfa;
    std::vector<uint64_t> bits;        // by edge
    std::vector<int32_t> seen;         // the parts of the yields, each once
    std::vector<Trigger> found;
    uint64_t number = 0;               // of decisions

    bool holds(int32_t edge) const { return bits[edge >> 6] >> (edge & 63) & 1; }
    void set(int32_t edge) { bits[edge >> 6] |= uint64_t(1) << (edge & 63); }

    bool holds_all(int32_t number) const {
        const Node& node = dfa.index->nodes[number];
        for (int32_t i = node.ordered; i < node.edge_count; ++i)
            if (!holds(dfa.index->edge_pool[node.edges + i])) return false;
        return true;
    }

    void look(const Trigger* trigger, const Trigger* end) {
        for (; trigger != end; ++trigger) {
            if (trigger->other >= 0 && !holds(trigger->other)) continue;
            if (trigger->third >= 0 && !holds(trigger->third)) continue;
            if (trigger->node >= 0 && !holds_all(trigger->node)) continue;
            (is_key(trigger->target) ? keys : edges).push_back(trigger->target);
        }
    }

   public:
    std::vector<int32_t> keys;         // what the nodes that hold complete,
    std::vector<int32_t> edges;        // as codes
    int64_t looked = 0;                // triggers, since ever

    explicit Decider(LazyDfa& dfa) : dfa(dfa) {}

    void restart() { bits.assign((dfa.index->edges.size() + 63) / 64, 0); }
    size_t bytes() const { return bits.capacity() * 8; }

    // Decides; `met` are edges beside those of the yields, each once.
    void decide(const std::vector<int32_t>& yields, const std::vector<int32_t>& met) {
        ++number;
        keys.clear();
        edges.clear();
        seen.clear();
        for (const int32_t yield : yields) {
            for (int32_t i = dfa.yields[yield].parts; i < dfa.yields[yield].parts_end; ++i) {
                const int32_t number_of_part = dfa.part_lists[i];
                Part& part = dfa.parts[number_of_part];
                if (part.seen_at == number) continue;
                part.seen_at = number;
                seen.push_back(number_of_part);
                for (int64_t j = part.accepts; j < part.end; ++j) set(edge_of_code(dfa.pool[j]));
            }
        }
        for (const int32_t edge : met) set(edge);
        for (const int32_t number_of_part : seen) {
            const Part& part = dfa.with_triggers(number_of_part);
            looked += part.triggers_end - part.triggers;
            look(dfa.triggers.data() + part.triggers, dfa.triggers.data() + part.triggers_end);
        }
        found.clear();
        for (const int32_t edge : met) dfa.append_triggers(edge, found);
        look(found.data(), found.data() + found.size());
        for (const int32_t number_of_part : seen)
            for (int64_t j = dfa.parts[number_of_part].accepts; j < dfa.parts[number_of_part].end; ++j)
                bits[edge_of_code(dfa.pool[j]) >> 6] = 0;
        for (const int32_t edge : met) bits[edge >> 6] = 0;
    }
};

}  // namespace xsift::sift
