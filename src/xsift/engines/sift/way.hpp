// Way: whether the next document is to be remembered, or taken as it comes.
//
// What an element costs in a plain run depends on how many states it enters. Where it is met again, remembering costs
// as much as to enter AGAIN states, and some less in any case; but what has to be made for it, a state or a
// configuration, costs as much as to enter MADE. So remembering pays where many states are active and documents lead to
// little that is new. That is kept account of, in states entered: what was made is spent, what is met again is gained.
// Documents are taken plainly when more is spent than would be gained again in so many elements as are worth waiting
// for. Then the debt is paid off by a share of the work that is done: so whatever documents do, what is made in vain
// costs no more than that share.
//
// In a plain run nothing is made, but paths are counted that were not met before: for what stands below the same names
// is the same. When these are so few that remembering would pay, it is tried again.
#pragma once
#include <algorithm>
#include <cstdint>

namespace xsift::sift {

// What happened in a document, or in a part of it.
struct PlainWork {
    int64_t elements = 0, entered = 0, new_paths = 0;
};

class Way {
   public:
    enum : int32_t { AUTO, ALWAYS_REMEMBER, ALWAYS_PLAIN };

   private:
    // Measured (docs/engines.md): a state is entered in 35 ns, something is made in 3 µs, with its memory.
    static constexpr int64_t MADE = 85, AGAIN = 8;
    static constexpr int64_t MADE_BY_PATH = 2;       // states and configurations that a new path leads to, about
    static constexpr int64_t PATIENCE = 25000;       // elements
    static constexpr int64_t SHARE = 5;              // of the work of plain runs, one part in so many
    static constexpr int64_t WINDOW = 32;            // documents that are kept in mind

    const int32_t wanted;
    bool plain;
    int64_t spent = 0;
    PlainWork recent;                                // times WINDOW, the older the less
    bool is_known = false;                           // else nothing was taken plainly yet, and it is a guess

    static int64_t gain(const PlainWork& work) {
        const int64_t cost = work.entered + work.elements;
        return std::max(cost / 4, cost - AGAIN * work.elements);
    }
    int64_t gain_by(int64_t elements) const { return gain(recent) * elements / std::max<int64_t>(1, recent.elements); }

   public:
    explicit Way(int32_t wanted) : wanted(wanted), plain(wanted == ALWAYS_PLAIN) {}

    bool is_plain() const { return plain; }

    // The index is another one.
    void begin_again() {
        plain = wanted == ALWAYS_PLAIN;
        spent = 0;
        recent = PlainWork();
        is_known = false;
    }

    // Whether a plain run pays where this happened.
    bool pays(const PlainWork& work) const {
        return wanted == ALWAYS_PLAIN || work.new_paths * MADE_BY_PATH * MADE > gain(work);
    }

    // So many elements were remembered, and so much was made for them. `guess` is what it would be to take elements plainly.
    void was_remembered(int64_t elements, int64_t made, const PlainWork& guess) {
        if (wanted != AUTO) return;
        if (!is_known) recent = guess;
        spent = std::max<int64_t>(0, spent + made * MADE - gain_by(elements));
        plain = spent > gain_by(PATIENCE);
    }

    void was_plain(const PlainWork& work) {
        if (wanted != AUTO) return;
        if (!is_known) recent = PlainWork();
        is_known = true;
        recent.elements += WINDOW * work.elements - recent.elements / WINDOW;
        recent.entered += WINDOW * work.entered - recent.entered / WINDOW;
        recent.new_paths += WINDOW * work.new_paths - recent.new_paths / WINDOW;
        spent -= std::min(spent, work.entered / SHARE);
        plain = pays(recent) || spent > gain_by(PATIENCE) * 3 / 4;
    }
};

}  // namespace xsift::sift
