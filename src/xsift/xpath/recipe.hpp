// Recipe: what is done to a value before a condition looks at it: translate(., 'ABC', 'abc'), substring(., 1, 4) …
//
// A recipe is a string of operations with their constant arguments, so that it can be part of a condition's
// key. It is decoded once, and applied once to each value, for all the conditions that ask about
// its result.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text_functions.hpp"

namespace xsift {

enum class Change : char {
    TRANSLATE = 'T',  // two texts
    NORMALIZE = 'N',
    SUBSTRING = 'S',  // two numbers, and a byte that says whether the second counts
    BEFORE = 'B',     // a text
    AFTER = 'A',      // a text
    AROUND = 'C',     // two texts: what concat() puts before and after
};

inline void put_operand(std::string* recipe, std::string_view text) {
    const uint32_t length = uint32_t(text.size());
    recipe->append(reinterpret_cast<const char*>(&length), 4);
    recipe->append(text);
}

inline void put_operand(std::string* recipe, double number) {
    recipe->append(reinterpret_cast<const char*>(&number), 8);
}

inline void put_change(std::string* recipe, Change change) { recipe->push_back(char(change)); }

class Recipe {
    struct Step {
        Change change;
        std::string one, other;
        double from = 0, length = 0;
        bool has_length = false;
        std::unique_ptr<Translation> translation;
    };
    std::vector<Step> steps;

    static std::string_view text_at(const char*& at, const char* end) {
        uint32_t length = 0;
        if (end - at >= 4) std::memcpy(&length, at, 4);
        at = std::min(at + 4, end);
        length = uint32_t(std::min(size_t(length), size_t(end - at)));
        at += length;
        return {at - length, length};
    }

    static double number_at(const char*& at, const char* end) {
        double number = 0;
        if (end - at >= 8) std::memcpy(&number, at, 8);
        at = std::min(at + 8, end);
        return number;
    }

    static std::string quoted(const std::string& text) {
        const char quote = text.find('\'') == text.npos ? '\'' : '"';
        return quote + text + quote;
    }

    static std::string written(double number) {
        char text[32];
        std::snprintf(text, sizeof text, "%.17g", number);
        return text;
    }

   public:
    explicit Recipe(std::string_view recipe) {
        const char* at = recipe.data();
        const char* end = at + recipe.size();
        while (at < end) {
            Step step;
            step.change = Change(*at++);
            if (step.change == Change::SUBSTRING) {
                step.from = number_at(at, end);
                step.length = number_at(at, end);
                step.has_length = at < end && *at != 0;
                if (at < end) ++at;
            } else if (step.change != Change::NORMALIZE) {
                step.one = text_at(at, end);
                if (step.change == Change::TRANSLATE || step.change == Change::AROUND) step.other = text_at(at, end);
            }
            steps.push_back(std::move(step));
        }
        for (Step& step : steps)  // which stay where they are from now on
            if (step.change == Change::TRANSLATE)
                step.translation = std::make_unique<Translation>(step.one, step.other);
    }

    // The result; a part of `text`, or of one of the two buffers.
    std::string_view apply(std::string_view text, std::string& buffer, std::string& other) const {
        for (const Step& step : steps) {
            switch (step.change) {
                case Change::SUBSTRING: text = substring(text, step.from, step.has_length, step.length); continue;
                case Change::BEFORE:
                case Change::AFTER: text = divide(text, step.one, step.change == Change::BEFORE); continue;
                case Change::TRANSLATE:
                    other.resize(step.translation->most_bytes(text.size()));
                    other.resize(step.translation->apply(text, other.data()));
                    break;
                case Change::AROUND: other.assign(step.one).append(text).append(step.other); break;
                case Change::NORMALIZE: {
                    other.clear();
                    bool gap = false;
                    for (const char c : text) {
                        if (is_xml_space(c)) {
                            gap = !other.empty();
                            continue;
                        }
                        if (gap) other.push_back(' ');
                        gap = false;
                        other.push_back(c);
                    }
                    break;
                }
            }
            other.swap(buffer);
            text = buffer;
        }
        return text;
    }

    // As one would write it, around what it is applied to.
    std::string written_around(std::string subject) const {
        for (const Step& step : steps) {
            switch (step.change) {
                case Change::SUBSTRING:
                    subject = "substring(" + subject + ", " + written(step.from) +
                              (step.has_length ? ", " + written(step.length) : "") + ")";
                    break;
                case Change::BEFORE: subject = "substring-before(" + subject + ", " + quoted(step.one) + ")"; break;
                case Change::AFTER: subject = "substring-after(" + subject + ", " + quoted(step.one) + ")"; break;
                case Change::TRANSLATE:
                    subject = "translate(" + subject + ", " + quoted(step.one) + ", " + quoted(step.other) + ")";
                    break;
                case Change::AROUND:
                    subject = "concat(" + quoted(step.one) + ", " + subject + ", " + quoted(step.other) + ")";
                    break;
                case Change::NORMALIZE: subject = "normalize-space(" + subject + ")"; break;
            }
        }
        return subject;
    }
};

}  // namespace xsift
