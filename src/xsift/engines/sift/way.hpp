// Way: whether the next document is to be remembered, or taken as it comes.
//
// To make a configuration costs about as much as a plain run needs for DEAR elements. So remembering pays if fewer elements than
// one in DEAR lead to something new. While documents are remembered that is counted, as a credit that new things use
// up. In a plain run nothing is made, but paths are counted that were not met before: what stands below the same names leads to
// the same. When these are few enough, there is something to be gained by remembering, and the credit for it is what
// has to be made once.
#pragma once
#include <algorithm>
#include <cstdint>

namespace xsift::sift {

class Way {
   public:
    enum : int32_t { AUTO, ALWAYS_REMEMBER, ALWAYS_PLAIN };

   private:
    static constexpr int64_t DEAR = 16;
    static constexpr int64_t FIRST_CREDIT = 20000, MOST_CREDIT = 200000;   // in elements of a plain run
    static constexpr int64_t FIRST_PAUSE = 8, LONGEST_PAUSE = 1024;        // documents

    const int32_t wanted;
    bool plain = false;
    int64_t credit = FIRST_CREDIT;
    int64_t pause = FIRST_PAUSE;       // so many documents at least are taken plainly,
    int64_t waited = 0;                // of which so many were
    int64_t elements = 0, novel = 0;   // in these, the older the less

   public:
    explicit Way(int32_t wanted) : wanted(wanted), plain(wanted == ALWAYS_PLAIN) {}

    bool is_plain() const { return plain; }

    void begin_again() {
        plain = wanted == ALWAYS_PLAIN;
        credit = FIRST_CREDIT;
        pause = FIRST_PAUSE;
    }

    // Whether a plain run pays where so many elements have led to so many new paths.
    bool pays(int64_t elements, int64_t new_paths) const { return wanted == ALWAYS_PLAIN || new_paths * DEAR > elements; }

    void was_remembered(int64_t elements, int64_t made) {
        if (wanted != AUTO) return;
        credit = std::min(MOST_CREDIT, credit + elements - made * DEAR);
        if (credit >= 0) return;
        plain = true;
        waited = this->elements = novel = 0;
    }

    void was_plain(int64_t elements, int64_t new_paths) {
        if (wanted != AUTO) return;
        this->elements += elements - this->elements / 8;
        novel += new_paths - novel / 8;
        if (++waited < pause || pays(this->elements, novel)) return;
        plain = false;
        credit = FIRST_CREDIT;
        pause = std::min(2 * pause, LONGEST_PAUSE);
    }
};

}  // namespace xsift::sift
