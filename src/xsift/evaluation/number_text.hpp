// number_text: XPath's string() of a number, as libxml2 writes it.
//
// XPath 1.0 asks for as many digits as it takes to tell a number from all others. libxml2 gives 15 significant
// ones, and an exponent (which XPath does not know) for what is very large or small: 0.1 + 0.2 is "0.3",
// 10000000000.5 is "1.00000000005e+10".
#pragma once
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace xsift {

// Writes the text, and returns its length, at most NUMBER_TEXT.
inline constexpr size_t NUMBER_TEXT = 64;

inline size_t write_number(double number, char* text) {
    constexpr int DIGITS = 15;
    constexpr double LARGEST = 1e9, SMALLEST = 1e-5;  // in plain notation
    if (std::isnan(number)) return std::memcpy(text, "NaN", 3), 3;
    if (std::isinf(number)) {
        std::strcpy(text, number > 0 ? "Infinity" : "-Infinity");
        return std::strlen(text);
    }
    if (number == 0) return text[0] = '0', 1;
    if (number > INT_MIN && number < INT_MAX && number == int(number))
        return size_t(std::to_chars(text, text + NUMBER_TEXT, int(number)).ptr - text);
    const double size = std::fabs(number);
    int length, end;  // where the fraction ends
    if (size > LARGEST || size < SMALLEST) {
        length = end = std::snprintf(text, NUMBER_TEXT, "%.*e", DIGITS - 1, number);
        while (end > 0 && text[end] != 'e') --end;
    } else {
        const int places = int(std::log10(size));
        const int fraction = places > 0 ? DIGITS - places - 1 : DIGITS - places;
        length = end = std::snprintf(text, NUMBER_TEXT, "%.*f", fraction, number);
    }
    int kept = end;  // without the zeros at the fraction's end
    while (kept > 0 && text[kept - 1] == '0') --kept;
    if (kept > 0 && text[kept - 1] == '.') --kept;
    std::memmove(text + kept, text + end, size_t(length - end));
    return size_t(kept + length - end);
}

}  // namespace xsift
