// TriggerBlocks: what is to be looked at when the edges of a yield are met, in one block of memory.
//
// The parts of a yield are copied into its block, so that a decision goes to few places. But what is large, or of a yield
// with many parts, would be copied too often: it has a block of its own, to which those of the yields refer.
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

// A block begins with this. Then come so many numbers of parts that have their own; edges that some node asks for beside its trigger;
// entries of Trigger; entries of WideTrigger.
struct BlockHead {
    int32_t parts, edges, triggers, wide;

    const int32_t* first_part() const { return reinterpret_cast<const int32_t*>(this + 1); }
    const int32_t* first_edge() const { return first_part() + parts; }
    const Trigger* first_trigger() const { return reinterpret_cast<const Trigger*>(first_edge() + edges); }
    const WideTrigger* first_wide() const { return reinterpret_cast<const WideTrigger*>(first_trigger() + triggers); }
};

class TriggerBlocks {
    static constexpr int64_t SMALL = 256;     // bytes that a part takes
    static constexpr int64_t FEW_PARTS = 10;  // of a yield

    Parts& parts;
    const TriggerTable& table;
    std::vector<int32_t> blocks;
    std::vector<int32_t> made_edges;       // of the block being made
    std::vector<Trigger> made_triggers;
    std::vector<WideTrigger> made_wide;
    std::vector<int32_t> copied, referred; // parts of the yield whose block is being made

    template <class T>
    void append_words(const std::vector<T>& list) {
        const int32_t* const words = reinterpret_cast<const int32_t*>(list.data());
        blocks.insert(blocks.end(), words, words + list.size() * (sizeof(T) / sizeof(int32_t)));
    }

    bool is_small(const Accepts& part) const {
        int64_t bytes = 0;
        for (uint32_t i = part.begin; i < part.end && bytes <= SMALL; ++i)
            bytes += sizeof(int32_t) + table.number_of(edge_of_code(parts.pool[i])) * sizeof(Trigger);
        return bytes <= SMALL;
    }

    uint32_t add_block(const std::vector<int32_t>& whole, const std::vector<int32_t>& named) {
        made_edges.clear();
        made_triggers.clear();
        made_wide.clear();
        for (const int32_t part : whole) {
            for (uint32_t i = parts.accepts_of[part].begin; i < parts.accepts_of[part].end; ++i) {
                const int32_t edge = edge_of_code(parts.pool[i]);
                if (parts.index->edges[edge].uses > table.number_of(edge)) made_edges.push_back(edge);
                append_triggers(edge, made_triggers, made_wide);
            }
        }
        const size_t at = blocks.size();
        for (const size_t count : {named.size(), made_edges.size(), made_triggers.size(), made_wide.size()})
            blocks.push_back(int32_t(count));
        append_words(named);
        append_words(made_edges);
        append_words(made_triggers);
        append_words(made_wide);
        return uint32_t(at);
    }

   public:
    TriggerBlocks(Parts& parts, const TriggerTable& table) : parts(parts), table(table) {}

    void restart() { release(blocks); }
    size_t bytes() const { return blocks.capacity() * sizeof(int32_t); }

    const BlockHead* block(uint32_t at) const { return reinterpret_cast<const BlockHead*>(blocks.data() + at); }

    // Adds the block of a yield that has these parts.
    uint32_t add(const int32_t* part, const int32_t* const parts_end) {
        copied.clear();
        referred.clear();
        const bool are_few = parts_end - part <= FEW_PARTS;
        for (; part != parts_end; ++part)
            (are_few && is_small(parts.accepts_of[*part]) ? copied : referred).push_back(*part);
        for (const int32_t number : referred)
            if (parts.accepts_of[number].block == Parts::NO_BLOCK) parts.accepts_of[number].block = add_block({number}, {});
        return add_block(copied, referred);
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
