// What an evaluation needs besides the tree: memory for strings and lists of nodes that is used again, and a
// way to hand functions down without a template for each.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

namespace xsift {

// A function that is called before the one that it was made in returns: bool(node), true to stop.
class Visitor {
    void* target;
    bool (*call)(void*, int32_t);

   public:
    template <class Function, class = std::enable_if_t<!std::is_same_v<std::decay_t<Function>, Visitor>>>
    Visitor(Function&& function)  // NOLINT: meant to convert
        : target(const_cast<void*>(static_cast<const void*>(&function))),
          call([](void* it, int32_t node) { return (*static_cast<std::remove_reference_t<Function>*>(it))(node); }) {}

    bool operator()(int32_t node) const { return call(target, node); }
};

// Strings that live until the document, or a hostile lot of them, is done with.
class Arena {
    static constexpr size_t BLOCK = 1 << 14;
    std::vector<std::unique_ptr<char[]>> blocks;
    char* at = nullptr;
    size_t left = 0;
    size_t total = 0;

   public:
    char* take(size_t size) {
        if (size > left) {
            const size_t fresh = size > BLOCK / 4 ? size : BLOCK;
            blocks.emplace_back(new char[fresh]);
            total += fresh;
            if (fresh != BLOCK) return blocks.back().get();  // a large one; the block at hand stays in use
            at = blocks.back().get();
            left = BLOCK;
        }
        char* result = at;
        at += size;
        left -= size;
        return result;
    }

    std::string_view copy(std::string_view text) {
        char* result = take(text.size());
        if (!text.empty()) std::memcpy(result, text.data(), text.size());
        return {result, text.size()};
    }

    size_t bytes() const { return total; }

    void clear() {
        if (blocks.size() > 1 || total > BLOCK) {
            blocks.clear();
            at = nullptr;
            left = total = 0;
        } else if (!blocks.empty()) {
            at = blocks[0].get();
            left = BLOCK;
        }
    }
};

using NodeList = std::vector<int32_t>;

// Lists of nodes, borrowed and given back like stack frames.
class ListPool {
    std::vector<std::unique_ptr<NodeList>> lists;
    size_t used = 0;

   public:
    static constexpr size_t KEPT = 1 << 16;  // entries that a list may keep room for

    NodeList* borrow() {
        if (used == lists.size()) lists.emplace_back(new NodeList());
        lists[used]->clear();
        return lists[used++].get();
    }
    void give_back() {
        if (lists[--used]->capacity() > KEPT) NodeList().swap(*lists[used]);
    }
};

class Borrowed {
    ListPool& pool;

   public:
    NodeList& list;
    explicit Borrowed(ListPool& from) : pool(from), list(*from.borrow()) {}
    ~Borrowed() { pool.give_back(); }
    Borrowed(const Borrowed&) = delete;
};

}  // namespace xsift
