// TextPlace: the line and column of a place in a stream whose earlier bytes are gone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace xsift {

// A place as expat counts it: lines from 1, columns in characters from 0.
struct TextPlace {
    int64_t line = 1, column = 0;

    // Moves on over bytes that end neither within a character nor between a carriage return and its line feed.
    void advance(const char* from, const char* end) {
        line += std::count(from, end, '\n');
        for (const char* p = from; (p = static_cast<const char*>(std::memchr(p, '\r', size_t(end - p)))) != nullptr;)
            if (++p == end || *p != '\n') ++line;
        const char* start = end;
        while (start != from && start[-1] != '\n' && start[-1] != '\r') --start;
        if (start != from) column = 0;
        column += std::count_if(start, end, [](char c) { return (c & 0xC0) != 0x80; });
    }
};

}  // namespace xsift
