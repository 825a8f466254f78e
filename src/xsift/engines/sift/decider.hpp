// Decider: which nodes hold for a branch point, given the yields that were met below it.
//
// Edges that hold are bits. First all of them are set, then what they trigger is looked at, and at last they are
// cleared. Part by part, the edges and what they trigger stand one after the other (trigger_blocks.hpp), so that memory is
// read in order. Most of what is looked at does not hold, but which does is hard to predict: so it is looked at without
// a branch.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "lazy_dfa.hpp"

namespace xsift::sift {

class Decider {
    LazyDfa& dfa;
    TriggerTable& table;
    std::vector<uint64_t> bits;        // by edge; then one that is always set
    std::vector<int32_t> seen;         // the parts of the yields, each once
    std::vector<int32_t> distinct;     // the edges that were met beside them, likewise
    std::vector<Trigger> found;
    std::vector<WideTrigger> found_wide;
    std::vector<int32_t> passed;       // room for targets
    uint64_t number = 0;               // of decisions
    static constexpr size_t LINE = 64, AHEAD = 512;  // bytes of memory that come at a time, that are asked for in advance

    uint64_t word_of(uint32_t edge) const { return bits[edge >> 6] >> (edge & 63); }
    void set(uint32_t edge) { bits[edge >> 6] |= uint64_t(1) << (edge & 63); }

    bool holds_all(const WideTrigger& at) const {
        const Node& node = dfa.index->nodes[at.node];
        for (int32_t i = node.ordered; i < node.edge_count; ++i) {
            const int32_t edge = dfa.index->edge_pool[node.edges + i];
            if (edge != at.edge && !(word_of(edge) & 1)) return false;
        }
        return true;
    }

    uint64_t holds(const Trigger& trigger) const { return word_of(trigger.other) & word_of(trigger.third) & 1; }

    void look(const Trigger* trigger, size_t count) {
        looked += int64_t(count);
        if (passed.size() < count) passed.resize(count);
        int32_t* end = passed.data();
        for (size_t i = 0; i < count; ++i) {
            *end = trigger[i].target;
            end += holds(trigger[i]);
        }
        for (const int32_t* target = passed.data(); target != end; ++target) complete(*target);
    }

    void look(const WideTrigger* trigger, size_t count) {
        looked += int64_t(count);
        for (size_t i = 0; i < count; ++i)
            if (holds(trigger[i].trigger) && holds_all(trigger[i])) complete(trigger[i].trigger.target);
    }

    void complete(int32_t target) { (is_key(target) ? keys : edges).push_back(target); }

    void set_always() {
        const uint32_t always = uint32_t(dfa.index->edges.size());
        set(always);
    }

   public:
    std::vector<int32_t> keys;         // what the nodes that hold complete,
    std::vector<int32_t> edges;        // as codes
    int64_t looked = 0;                // triggers, since ever

    Decider(LazyDfa& dfa, TriggerTable& table) : dfa(dfa), table(table) {}

    void restart() {
        bits.assign(dfa.index->edges.size() / 64 + 1, 0);
        set_always();
    }
    size_t bytes() const { return bits.capacity() * 8; }

    // Decides; `met` are edges beside those of the yields. Both may have repetitions. What is looked at lies anywhere in
    // memory: each pass asks for what the next one needs.
    void decide(const std::vector<int32_t>& yields, const std::vector<int32_t>& met) {
        const TwigIndex& index = *dfa.index;
        ++number;
        keys.clear();
        edges.clear();
        seen.clear();
        distinct.clear();
        for (const int32_t yield : yields) __builtin_prefetch(&dfa.yields[yield]);
        for (const int32_t yield : yields) __builtin_prefetch(&dfa.part_lists[dfa.yields[yield].parts]);
        for (const int32_t edge : met) __builtin_prefetch(&index.edges[edge]);
        for (const int32_t yield : yields) {
            for (int32_t i = dfa.yields[yield].parts; i < dfa.yields[yield].parts_end; ++i) {
                __builtin_prefetch(&dfa.parts.accepts_of[dfa.part_lists[i]]);
                seen.push_back(dfa.part_lists[i]);
            }
        }
        size_t kept = 0, set_edges = 0;
        for (const int32_t part : seen) {
            Accepts& at = dfa.parts.accepts_of[part];
            if (at.seen_at == number) continue;
            at.seen_at = number;
            if (at.block == Parts::NO_BLOCK) dfa.triggers.make_block(at);
            const char* const block = reinterpret_cast<const char*>(dfa.triggers.blocks.data() + at.block);
            const size_t size = std::min<size_t>(4 * at.edges + sizeof(Trigger) * at.triggers, AHEAD);
            for (size_t line = 0; line < size; line += LINE) __builtin_prefetch(block + line);
            seen[kept++] = part;
            set_edges += at.edges;
        }
        seen.resize(kept);
        for (const int32_t edge : met) {
            if (word_of(edge) & 1) continue;
            set(edge);
            distinct.push_back(edge);
            table.ask_for(edge);
        }
        for (const int32_t part : seen) {
            const Accepts& at = dfa.parts.accepts_of[part];
            const int32_t* const edge = dfa.triggers.blocks.data() + at.block;
            for (uint32_t j = 0; j < at.edges; ++j) set(edge[j]);
        }
        for (const int32_t part : seen) {
            const Accepts& at = dfa.parts.accepts_of[part];
            const auto* const triggers = reinterpret_cast<const Trigger*>(dfa.triggers.blocks.data() + at.block + at.edges);
            look(triggers, at.triggers);
            if (at.wide) look(reinterpret_cast<const WideTrigger*>(triggers + at.triggers), at.wide);
        }
        if (table.is_counting()) count();
        found.clear();
        found_wide.clear();
        for (const int32_t edge : distinct) dfa.triggers.append_triggers(edge, found, found_wide);
        look(found.data(), found.size());
        look(found_wide.data(), found_wide.size());
        clear(set_edges);
    }

   private:
    // Counts the edges that were met.
    void count() {
        for (const int32_t part : seen) {
            const Accepts& at = dfa.parts.accepts_of[part];
            for (uint32_t i = at.begin; i < at.end; ++i) table.count(edge_of_code(dfa.parts.pool[i]));
        }
        for (const int32_t edge : distinct) table.count(edge);
    }

    void clear(size_t set_edges) {
        if (set_edges > bits.size() / 8) {
            std::fill(bits.begin(), bits.end(), 0);
            set_always();
            return;
        }
        for (const int32_t part : seen) {
            const Accepts& at = dfa.parts.accepts_of[part];
            const int32_t* const edge = dfa.triggers.blocks.data() + at.block;
            for (uint32_t j = 0; j < at.edges; ++j) bits[edge[j] >> 6] = 0;
        }
        for (const int32_t edge : distinct) bits[edge >> 6] = 0;
        set_always();
    }
};

}  // namespace xsift::sift
