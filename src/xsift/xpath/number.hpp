// xpath_number: XPath's number() of a string, bit for bit as libxml2 computes it.
//
// The obvious way, strtod(), rounds correctly, and that is the trouble: libxml2 does not. It adds up digits as
// value * 10 + digit and divides the fraction (at most 20 digits after its leading zeros) by a power of ten, so
// its last bit often differs, and `@price = 0.1234567890123` would then hold here and not there, or the other
// way round. libxml2 also takes an exponent, which XPath 1.0 does not know. The specification's other rules
// stand: white space around the number is ignored, a minus is allowed, a plus is not, everything else is NaN.
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>

namespace xsift {

// 10^exponent. The powers up to 10^22 are exact doubles: a table gives what pow() gives, only faster.
inline double power_of_ten(int exponent) {
    static constexpr double EXACT[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (exponent >= 0 && exponent <= 22) return EXACT[exponent];
    return std::pow(10.0, static_cast<double>(exponent));
}

inline bool is_xml_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads an unsigned number with its fraction and exponent from `at`, and moves `at` behind it. Without a digit
// the result is NaN.
inline double scan_number(const char*& at, const char* end) {
    constexpr int FRACTION_DIGITS = 20;      // after the fraction's leading zeros; libxml2 ignores the rest
    constexpr int LARGEST_EXPONENT = 1000000;  // beyond it libxml2 ignores further digits
    const double nan = std::numeric_limits<double>::quiet_NaN();
    double value = 0;
    bool digits = false;
    for (; at < end && is_digit(*at); ++at) {
        value = value * 10;
        value = value + (*at - '0');
        digits = true;
    }
    if (at < end && *at == '.') {
        ++at;
        if (!digits && !(at < end && is_digit(*at))) return nan;
        int places = 0;
        double fraction = 0;
        for (; at < end && *at == '0'; ++at) ++places;
        const int most = places + FRACTION_DIGITS;
        for (; at < end && is_digit(*at); ++at) {
            if (places == most) continue;
            fraction = fraction * 10 + (*at - '0');
            ++places;
        }
        value += fraction / power_of_ten(places);
        digits = true;
    }
    if (!digits) return nan;
    if (at < end && (*at == 'e' || *at == 'E')) {
        int exponent = 0;
        bool negative = false;
        ++at;
        if (at < end && (*at == '-' || *at == '+')) negative = *at++ == '-';
        for (; at < end && is_digit(*at); ++at)
            if (exponent < LARGEST_EXPONENT) exponent = exponent * 10 + (*at - '0');
        value *= power_of_ten(negative ? -exponent : exponent);
    }
    return value;
}

inline double xpath_number(const char* data, size_t length) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const char* at = data;
    const char* end = data + length;
    while (at < end && is_xml_space(*at)) ++at;
    const bool negative = at < end && *at == '-';
    if (negative) ++at;
    const double value = scan_number(at, end);
    while (at < end && is_xml_space(*at)) ++at;
    if (at < end) return nan;
    return negative ? -value : value;
}

}  // namespace xsift
