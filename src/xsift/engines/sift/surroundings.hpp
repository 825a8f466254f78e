// Surroundings: of the elements where a loop began, those that are around an element.
//
// The naive way goes through all elements where the loop began. Where a document has thousands of them, and as many edges are
// met below, that is thousands times thousands. Here they are put in order when a loop is asked for first in a document: then it
// is known of each stretch of the document what is around it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "automaton.hpp"
#include "plain_notes.hpp"

namespace xsift::sift {

class Surroundings {
    struct Stretch {
        int32_t first;                 // this element, and those after it as far as the next stretch,
        int32_t innermost, outermost;  // are below these where the loop began; NONE
    };
    struct Loop {
        uint32_t document;             // that it is about
        int32_t begin, end;            // in `stretches`
    };
    std::vector<Stretch> stretches;    // of the loops that were asked for, one after the other
    std::vector<Loop> loops;
    std::vector<int32_t> open;

    void add_stretch(size_t begin, int32_t first) {
        if (stretches.size() > begin && stretches.back().first == first) stretches.pop_back();
        stretches.push_back(Stretch{first, open.empty() ? NONE : open.back(), open.empty() ? NONE : open.front()});
    }

    Stretch at(int32_t loop, int32_t element) const {
        const auto begin = stretches.begin() + loops[loop].begin, end = stretches.begin() + loops[loop].end;
        const auto next = std::upper_bound(begin, end, element, [](int32_t a, const Stretch& b) { return a < b.first; });
        return next == begin ? Stretch{0, NONE, NONE} : *(next - 1);
    }

   public:
    // For so many loops.
    void resize(size_t number) { loops.assign(number, Loop{0, 0, 0}); }

    // A document ends.
    void clear() {
        stretches.clear();
        open.clear();  // memory may have run out in add()
    }

    bool knows(int32_t loop, uint32_t document) const { return loops[loop].document == document; }

    // A loop began at some elements of a document: ascending.
    void add(int32_t loop, uint32_t document, const std::vector<int32_t>& began, const std::vector<PlainElement>& elements) {
        const size_t begin = stretches.size();
        const auto leave = [&] {
            const int32_t last = elements[open.back()].last;
            open.pop_back();
            add_stretch(begin, last + 1);
        };
        for (const int32_t element : began) {
            while (!open.empty() && elements[open.back()].last < element) leave();
            open.push_back(element);
            add_stretch(begin, element + 1);
        }
        while (!open.empty()) leave();
        loops[loop] = Loop{document, int32_t(begin), int32_t(stretches.size())};
    }

    // Of those around an element, the outermost; or NONE.
    int32_t outermost(int32_t loop, int32_t element) const { return at(loop, element).outermost; }

    // Appends all that are around some elements, which are ascending, and so is what is found.
    void append_all(int32_t loop, const std::vector<int32_t>& elements, std::vector<int32_t>& found) const {
        int32_t before = 0;            // what is around this one was found with it
        for (const int32_t element : elements) {
            const auto begin = std::ptrdiff_t(found.size());
            for (int32_t it = at(loop, element).innermost; it >= before; it = at(loop, it).innermost) found.push_back(it);
            std::reverse(found.begin() + begin, found.end());
            before = element;
        }
    }

    size_t bytes() const { return stretches.capacity() * sizeof(Stretch) + loops.capacity() * sizeof(Loop); }
};

}  // namespace xsift::sift
