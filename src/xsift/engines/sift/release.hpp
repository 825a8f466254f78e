// release(): a list is emptied, and gives its memory back, which clear() keeps. What a cache holds is told by the room that its
// lists have, so one that was only cleared would look as full as before, and would be allowed twice as much.
#pragma once
#include <vector>

namespace xsift::sift {

template <class... Lists>
void release(std::vector<Lists>&... lists) {
    (std::vector<Lists>().swap(lists), ...);
}

}  // namespace xsift::sift
