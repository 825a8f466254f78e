// Triggers: what is to be looked at when edges are met, part by part in one block of memory.
#pragma once
#include <cstdint>
#include <vector>

#include "parts.hpp"

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
};

class TriggerBlocks {
    const Parts& parts;
    std::vector<Trigger> made_triggers;
    std::vector<WideTrigger> made_wide;

    template <class T>
    void append_words(const std::vector<T>& list) {
        const int32_t* const words = reinterpret_cast<const int32_t*>(list.data());
        blocks.insert(blocks.end(), words, words + list.size() * (sizeof(T) / sizeof(int32_t)));
    }

   public:
    std::vector<int32_t> blocks;

    explicit TriggerBlocks(const Parts& parts) : parts(parts) {}

    void restart() { blocks.clear(); }
    size_t bytes() const { return blocks.capacity() * sizeof(int32_t); }

    // Makes the block of a part.
    void make_block(Accepts& part) {
        made_triggers.clear();
        made_wide.clear();
        part.block = uint32_t(blocks.size());
        for (uint32_t i = part.begin; i < part.end; ++i) {
            const int32_t edge = edge_of_code(parts.pool[i]);
            if (parts.index->edges[edge].uses > parts.index->edges[edge].listed) blocks.push_back(edge);
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
        const int32_t none = int32_t(parts.index->edges.size());
        for (int32_t number = parts.index->edges[edge].first; number != NONE;) {
            const Node& node = parts.index->nodes[number];
            const Trigger made{node.other == NONE ? none : node.other, node.third == NONE ? none : node.third, node.target};
            if (node.more) to_wide.push_back(WideTrigger{made, number});
            else to.push_back(made);
            number = node.next;
        }
    }
};

}  // namespace xsift::sift
