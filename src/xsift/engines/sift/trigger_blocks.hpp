// Triggers: what is to be looked at when edges are met, part by part in one block of memory.
#pragma once
#include <cstdint>
#include <vector>

#include "parts.hpp"
#include "trigger_table.hpp"

namespace xsift::sift {

// A node that an edge makes worth a look, with what must hold besides.
struct Trigger {
    int32_t other, third;     // edges; the number after the last edge stands for none
    int32_t target;           // the code of what the node completes
};

// The same for a node that has yet more edges.
struct WideTrigger {
    Trigger trigger;
    int32_t node;
    int32_t edge;             // by which it is triggered
};

class TriggerBlocks {
    Parts& parts;
    const TriggerTable& table;
    std::vector<Trigger> made_triggers;
    std::vector<WideTrigger> made_wide;

    template <class T>
    void append_words(const std::vector<T>& list) {
        const int32_t* const words = reinterpret_cast<const int32_t*>(list.data());
        blocks.insert(blocks.end(), words, words + list.size() * (sizeof(T) / sizeof(int32_t)));
    }

   public:
    std::vector<int32_t> blocks;

    TriggerBlocks(Parts& parts, const TriggerTable& table) : parts(parts), table(table) {}

    void restart() { blocks.clear(); }

    // Nodes have other triggers now.
    void forget_blocks() {
        blocks.clear();
        for (Accepts& part : parts.accepts_of) part.block = Parts::NO_BLOCK;
    }

    size_t bytes() const { return blocks.capacity() * sizeof(int32_t); }

    // Makes the block of a part.
    void make_block(Accepts& part) {
        made_triggers.clear();
        made_wide.clear();
        part.block = uint32_t(blocks.size());
        for (uint32_t i = part.begin; i < part.end; ++i) {
            const int32_t edge = edge_of_code(parts.pool[i]);
            if (parts.index->edges[edge].uses > table.number_of(edge)) blocks.push_back(edge);
            append_triggers(edge, made_triggers, made_wide);
        }
        part.edges = uint32_t(blocks.size()) - part.block;
        part.triggers = uint32_t(made_triggers.size());
        part.wide = uint32_t(made_wide.size());
        append_words(made_triggers);
        append_words(made_wide);
    }

    // Appends what an edge triggers.
    void append_triggers(int32_t edge, std::vector<Trigger>& to, std::vector<WideTrigger>& to_wide) const {
        table.each(edge, [&](const NodeTrigger& at) {
            const Trigger made{at.other, at.third, at.target};
            if (at.has_more()) to_wide.push_back(WideTrigger{made, at.number(), edge});
            else to.push_back(made);
        });
    }
};

}  // namespace xsift::sift
