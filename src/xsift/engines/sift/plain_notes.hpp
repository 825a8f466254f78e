// PlainNotes: what a plain run (plain_run.hpp) takes down of a document.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xsift::sift {

struct PlainElement {
    int32_t parent;       // element 0 stands for the document, and is its own parent
    int32_t last;         // the last element below it, or itself: elements are numbered in document order
};

// Something that was noted at an element: an acceptance, or a loop that began.
struct Note {
    int32_t number, element;
};

// An element whose path is known: it has all notes of the path.
struct Visit {
    int32_t element, previous;  // the visit before this one to the same path, or NONE
};

struct PlainNotes {
    std::vector<PlainElement> elements;
    std::vector<Note> accepted;        // acceptances, where they came,
    std::vector<Note> loops_begun;     // and loops, where they began: but for those of known paths,
    std::vector<Visit> visits;         // which are noted by element,
    std::vector<int32_t> visited;      // and here each once

    void clear() {
        elements.assign(1, PlainElement{0, 0});
        accepted.clear();
        loops_begun.clear();
        visits.clear();
        visited.clear();
    }
    size_t number() const { return accepted.size() + loops_begun.size() + visits.size(); }  // beside elements
    size_t bytes() const {
        return elements.capacity() * sizeof(PlainElement) + (accepted.capacity() + loops_begun.capacity()) * sizeof(Note) +
               visits.capacity() * sizeof(Visit) + visited.capacity() * 4;
    }
};

}  // namespace xsift::sift
