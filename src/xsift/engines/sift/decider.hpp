// Decider: which nodes hold for a branch point, given the yields that were met below it.
//
// Edges that hold are bits. First all of them are set, then what they trigger is looked at, and at last they are
// cleared. Yield by yield, the edges and what they trigger stand one after the other (trigger_blocks.hpp), so that memory
// is read in order. Most of what is looked at does not hold, but which does is hard to predict: so it is looked at
// without a branch.
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
    std::vector<const BlockHead*> blocks;  // of the yields, and of parts that have their own
    std::vector<int32_t> distinct;     // the edges that were met beside them, each once
    std::vector<Trigger> found;
    std::vector<WideTrigger> found_wide;
    std::vector<int32_t> passed;       // room for targets
    uint64_t number = 0;               // by which a part is known to have been looked at
    static constexpr size_t LINE = 64, AHEAD = 192;  // bytes of memory that come at a time, that are asked for in advance

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

    // Decides; `met` are edges beside those of the yields. Both may have repetitions, and so may what is completed. What
    // is looked at lies anywhere in memory: each pass asks for what the next one needs.
    void decide(const std::vector<int32_t>& yields, const std::vector<int32_t>& met) {
        keys.clear();
        edges.clear();
        distinct.clear();
        for (const int32_t yield : yields) __builtin_prefetch(&dfa.yields[yield]);
        for (const int32_t edge : met) table.ask_where(edge);
        find_blocks(yields);
        for (const int32_t edge : met) {
            if (word_of(edge) & 1) continue;
            set(edge);
            distinct.push_back(edge);
            table.ask_for(edge);
        }
        size_t set_edges = 0;
        for (const BlockHead* const block : blocks) {
            const int32_t* const edge = block->first_edge();
            for (int32_t i = 0; i < block->edges; ++i) set(edge[i]);
            set_edges += size_t(block->edges);
        }
        for (const BlockHead* const block : blocks) {
            look(block->first_trigger(), size_t(block->triggers));
            if (block->wide) look(block->first_wide(), size_t(block->wide));
        }
        if (table.is_counting()) count(yields);
        found.clear();
        found_wide.clear();
        for (const int32_t edge : distinct) dfa.triggers.append_triggers(edge, found, found_wide);
        look(found.data(), found.size());
        look(found_wide.data(), found_wide.size());
        clear(set_edges);
    }

   private:
    void find_blocks(const std::vector<int32_t>& yields) {
        for (const int32_t yield : yields)
            if (dfa.yields[yield].block == Parts::NO_BLOCK) dfa.make_block(dfa.yields[yield]);
        ++number;
        blocks.clear();
        for (const int32_t yield : yields) add_block(dfa.yields[yield].block);
        for (size_t i = 0; i < yields.size(); ++i) {
            const int32_t* const part = blocks[i]->first_part();
            for (int32_t j = 0; j < blocks[i]->parts; ++j)
                if (is_new(dfa.parts.accepts_of[part[j]])) add_block(dfa.parts.accepts_of[part[j]].block);
        }
    }

    void add_block(uint32_t at) {
        blocks.push_back(dfa.triggers.block(at));
        const char* const block = reinterpret_cast<const char*>(blocks.back());
        for (size_t line = 0; line < AHEAD; line += LINE) __builtin_prefetch(block + line);
    }

    bool is_new(Accepts& part) const {
        if (part.seen_at == number) return false;
        part.seen_at = number;
        return true;
    }

    // Counts the edges that were met, each once.
    void count(const std::vector<int32_t>& yields) {
        ++number;
        for (const int32_t yield : yields) {
            for (int32_t i = dfa.yields[yield].parts; i < dfa.yields[yield].parts_end; ++i) {
                Accepts& at = dfa.parts.accepts_of[dfa.part_lists[i]];
                if (!is_new(at)) continue;
                for (uint32_t j = at.begin; j < at.end; ++j) table.count(edge_of_code(dfa.parts.pool[j]));
            }
        }
        for (const int32_t edge : distinct) table.count(edge);
    }

    void clear(size_t set_edges) {
        if (set_edges > bits.size() / 8) {
            std::fill(bits.begin(), bits.end(), 0);
            set_always();
            return;
        }
        for (const BlockHead* const block : blocks) {
            const int32_t* const edge = block->first_edge();
            for (int32_t i = 0; i < block->edges; ++i) bits[edge[i] >> 6] = 0;
        }
        for (const int32_t edge : distinct) bits[edge >> 6] = 0;
        set_always();
    }
};

}  // namespace xsift::sift
