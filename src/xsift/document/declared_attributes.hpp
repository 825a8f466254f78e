// DeclaredAttributes: how many attributes a document type declaration has for each element.
//
// expat goes through all that are declared for an element at each of its start tags, and for each attribute there: so a few that
// are declared cost as much as they like of elements that take four bytes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bytes_table.hpp"

namespace xsift {

class DeclaredAttributes {
    BytesTable elements;
    std::vector<int64_t> numbers;

   public:
    int64_t most = 0;  // of one element

    void clear() {
        if (most) *this = DeclaredAttributes();
    }

    // Notes one more.
    void declare(const char* element) {
        const size_t number = size_t(elements.add(element, std::strlen(element)));
        if (number == numbers.size()) numbers.push_back(0);
        most = std::max(most, ++numbers[number]);
    }
};

}  // namespace xsift
