// QuickBuilder: the tree of a document that was read before, and found to be well-formed.
//
// A second reading need not check again. So this one finds its way by memchr, and takes the usual kind of
// document: UTF-8, no internal DTD subset, no entities but XML's own. Whatever else it meets, it says "no", and
// expat builds the tree (node_tree.pyx). It is safe on any bytes, but what it makes of a document that is not
// well-formed is of no use.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "node_writer.hpp"

namespace xsift {

class QuickBuilder {
   public:
    // Whether the tree was built.
    bool build(const char* data, size_t length, NodeTree* tree, bool namespaces) {
        try {
            return read(data, length, tree, namespaces);
        } catch (const TreeTooLarge&) {  // expat will say so again, and where
            return false;
        }
    }

   private:
    bool read(const char* data, size_t length, NodeTree* tree, bool namespaces) {
        at = data;
        end = data + length;
        writer.begin(tree, namespaces);
        raw_names.clear();
        resolved.clear();
        if (!declaration()) return false;
        while (true) {
            const char* bracket = find('<');
            if (!bracket) break;
            if (!text(at, bracket)) return false;
            at = bracket + 1;
            if (at == end || !markup()) return false;
        }
        if (writer.open != 0) return false;
        writer.finish();
        return !tree->elements.empty();
    }

    struct Attribute {
        std::string_view name;
        size_t begin, end;  // of its value
    };
    struct Resolved {  // a name as it stands in tags, resolved in the scope in which it was last met
        int32_t prefix;
        uint32_t local;  // where the local name begins
        int32_t element_scope = -1, element_name = 0;
        int32_t attribute_scope = -1, attribute_name = 0;
    };

    const char* at = nullptr;
    const char* end = nullptr;
    NodeWriter writer;
    std::vector<Attribute> attributes;
    StringTable raw_names;
    std::vector<Resolved> resolved;  // by number in raw_names

    const char* find(char c) const {
        return at == end ? nullptr : static_cast<const char*>(std::memchr(at, c, size_t(end - at)));
    }

    static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

    void skip_space() {
        while (at != end && is_space(*at)) ++at;
    }

    bool word(std::string_view expected) {
        if (size_t(end - at) < expected.size()) return false;
        if (std::memcmp(at, expected.data(), expected.size()) != 0) return false;
        at += expected.size();
        return true;
    }

    // Moves behind the next `terminator`, and gives what stands before it.
    bool until(std::string_view terminator, std::string_view* content) {
        const char* from = at;
        while (const char* found = find(terminator[0])) {
            at = found;
            if (word(terminator)) {
                *content = {from, size_t(found - from)};
                return true;
            }
            ++at;
        }
        return false;
    }

    // The byte order mark and the XML declaration. Other encodings than UTF-8 are not taken.
    bool declaration() {
        std::string_view content;
        word("\xef\xbb\xbf");
        if (size_t(end - at) < 6 || std::memcmp(at, "<?xml", 5) != 0 || !is_space(at[5])) return true;
        at += 5;
        if (!until("?>", &content)) return false;
        const size_t place = content.find("encoding");
        if (place == content.npos) return true;
        const size_t begin = content.find_first_of("\"'", place);
        if (begin == content.npos) return false;
        const size_t stop = content.find(content[begin], begin + 1);
        if (stop == content.npos) return false;
        const std::string_view name = content.substr(begin + 1, stop - begin - 1);
        return same_word(name, "utf-8") || same_word(name, "us-ascii");
    }

    static bool same_word(std::string_view text, std::string_view lower) {
        if (text.size() != lower.size()) return false;
        for (size_t i = 0; i < text.size(); ++i)
            if ((text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]) != lower[i]) return false;
        return true;
    }

    bool markup() {
        std::string_view content;
        if (*at == '/') {
            const char* bracket = find('>');
            if (!bracket || writer.open == 0) return false;
            at = bracket + 1;
            writer.end();
            return true;
        }
        if (*at == '?') {
            ++at;
            return until("?>", &content) && instruction(content);
        }
        if (*at != '!') return start_tag();
        ++at;
        if (word("--")) {
            if (!until("-->", &content)) return false;
            writer.comment(with_plain_lines(content));
            return true;
        }
        if (word("[CDATA[")) {
            if (writer.open == 0 || !until("]]>", &content)) return false;
            writer.begin_text();
            content = with_plain_lines(content);
            writer.text(content.data(), content.size());
            return true;
        }
        return document_type();
    }

    // A document type declaration without an internal subset says nothing about nodes.
    bool document_type() {
        if (!word("DOCTYPE")) return false;
        char quote = 0;
        for (; at != end; ++at) {
            if (quote) {
                if (*at == quote) quote = 0;
            } else if (*at == '"' || *at == '\'') {
                quote = *at;
            } else if (*at == '[') {
                return false;
            } else if (*at == '>') {
                ++at;
                return true;
            }
        }
        return false;
    }

    bool instruction(std::string_view content) {
        size_t length = 0;
        while (length < content.size() && !is_space(content[length])) ++length;
        const std::string_view target = content.substr(0, length);
        while (length < content.size() && is_space(content[length])) ++length;
        writer.instruction(target, with_plain_lines(content.substr(length)));
        return true;
    }

    std::string plain;

    // Carriage returns as XML's line ends.
    std::string_view with_plain_lines(std::string_view text) {
        if (text.find('\r') == text.npos) return text;
        plain.clear();
        for (size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '\r')
                plain.push_back(text[i]);
            else if (i + 1 == text.size() || text[i + 1] != '\n')
                plain.push_back('\n');
        }
        return plain;
    }

    bool text(const char* from, const char* to) {
        if (from == to || writer.open == 0) return true;
        const size_t length = size_t(to - from);
        if (!std::memchr(from, '&', length) && !std::memchr(from, '\r', length)) {
            writer.text(from, length);
            return true;
        }
        while (from != to) {
            const char* run = from;
            while (from != to && *from != '&' && *from != '\r') ++from;
            writer.text(run, size_t(from - run));
            if (from == to) break;
            if (*from == '\r') {
                ++from;
                if (from == to || *from != '\n') writer.text("\n", 1);
                continue;
            }
            char decoded[4];
            const int size = reference(from, to, decoded);
            if (size == 0) return false;
            writer.text(decoded, size_t(size));
        }
        return true;
    }

    // Reads a reference to a character or to one of XML's own entities, and moves behind it. 0 if it is another.
    static int reference(const char*& from, const char* to, char* decoded) {
        const char* semicolon = static_cast<const char*>(std::memchr(from, ';', size_t(to - from)));
        if (!semicolon) return 0;
        const std::string_view name(from + 1, size_t(semicolon - from - 1));
        from = semicolon + 1;
        if (name.size() > 1 && name[0] == '#') return character(name.substr(1), decoded);
        decoded[0] = name == "lt" ? '<' : name == "gt" ? '>' : name == "amp" ? '&' : name == "quot" ? '"'
                   : name == "apos" ? '\'' : 0;
        return decoded[0] ? 1 : 0;
    }

    static int character(std::string_view digits, char* decoded) {
        const bool is_hex = digits[0] == 'x';
        uint32_t code = 0;
        for (const char c : is_hex ? digits.substr(1) : digits) {
            const int letter = (c | 32) - 'a';
            const int digit = c >= '0' && c <= '9' ? c - '0' : letter >= 0 && letter < 6 ? letter + 10 : 99;
            if (digit >= (is_hex ? 16 : 10)) return 0;
            code = code * (is_hex ? 16 : 10) + uint32_t(digit);
            if (code > 0x10ffff) return 0;
        }
        if (code == 0) return 0;
        if (code < 0x80) {
            decoded[0] = char(code);
            return 1;
        }
        if (code < 0x800) {
            decoded[0] = char(0xc0 | code >> 6);
            decoded[1] = char(0x80 | (code & 0x3f));
            return 2;
        }
        if (code < 0x10000) {
            decoded[0] = char(0xe0 | code >> 12);
            decoded[1] = char(0x80 | (code >> 6 & 0x3f));
            decoded[2] = char(0x80 | (code & 0x3f));
            return 3;
        }
        decoded[0] = char(0xf0 | code >> 18);
        decoded[1] = char(0x80 | (code >> 12 & 0x3f));
        decoded[2] = char(0x80 | (code >> 6 & 0x3f));
        decoded[3] = char(0x80 | (code & 0x3f));
        return 4;
    }

    // Tags.

    bool name(std::string_view* result) {
        const char* from = at;
        while (at != end && !is_space(*at) && *at != '=' && *at != '>' && *at != '/') ++at;
        *result = {from, size_t(at - from)};
        return at != from;
    }

    bool start_tag() {
        std::string_view tag, attribute;
        bool declares = false;
        if (!name(&tag)) return false;
        attributes.clear();
        while (true) {
            skip_space();
            if (at == end) return false;
            if (*at == '>' || *at == '/') break;
            if (!name(&attribute)) return false;
            skip_space();
            if (!word("=")) return false;
            skip_space();
            const size_t begin = writer.tree->values.size();
            if (!attribute_value()) return false;
            attributes.push_back({attribute, begin, writer.tree->values.size()});
            if (declare(attributes.back())) {
                declares = true;
                writer.tree->values.resize(begin);
                attributes.pop_back();
            }
        }
        if (declares) writer.enter_scope();
        if (!write_tag(tag)) return false;
        if (*at == '/') {
            ++at;
            if (at == end || *at != '>') return false;
            writer.end();
        }
        ++at;
        return true;
    }

    // Takes an attribute that declares a namespace.
    bool declare(const Attribute& attribute) {
        if (attribute.name.compare(0, 5, "xmlns") != 0) return false;
        if (attribute.name.size() > 5 && attribute.name[5] != ':') return false;
        const std::string_view uri(writer.tree->values.data() + attribute.begin, attribute.end - attribute.begin);
        writer.declare(attribute.name.size() > 5 ? attribute.name.substr(6) : std::string_view(), uri);
        return true;
    }

    bool write_tag(std::string_view tag) {
        const int32_t number = resolve(tag);
        Resolved& it = resolved[number];
        if (it.element_scope != writer.current_scope()) {
            const int32_t uri = writer.uri_of(it.prefix);
            if (uri < 0) return false;
            it.element_name = writer.tree->add_expanded(uri, tag.substr(it.local));
            it.element_scope = writer.current_scope();
        }
        writer.start(it.element_name, it.prefix);
        for (const Attribute& attribute : attributes)
            if (!write_attribute(attribute)) return false;
        return true;
    }

    bool write_attribute(const Attribute& attribute) {
        const int32_t number = resolve(attribute.name);
        Resolved& it = resolved[number];
        if (it.attribute_scope != writer.current_scope()) {
            const int32_t uri = it.prefix == NodeTree::EMPTY ? NodeTree::EMPTY : writer.uri_of(it.prefix);
            if (uri < 0) return false;
            it.attribute_name = writer.tree->add_expanded(uri, attribute.name.substr(it.local));
            it.attribute_scope = writer.current_scope();
        }
        const bool is_id = it.prefix != NodeTree::EMPTY && writer.is_xml_id(it.attribute_name);
        writer.attribute(it.attribute_name, it.prefix, attribute.begin, attribute.end, is_id);
        return true;
    }

    int32_t resolve(std::string_view raw) {
        const int32_t number = raw_names.add(raw);
        if (size_t(number) == resolved.size()) {
            const size_t colon = raw.find(':');
            Resolved fresh;
            fresh.local = colon == raw.npos ? 0 : uint32_t(colon + 1);
            fresh.prefix = writer.tree->strings.add(colon == raw.npos ? std::string_view() : raw.substr(0, colon));
            resolved.push_back(fresh);
        }
        return number;
    }

    // Appends an attribute's value to `values`: white space as spaces, references resolved.
    bool attribute_value() {
        if (at == end || (*at != '"' && *at != '\'')) return false;
        const char quote = *at++;
        const char* stop = find(quote);
        if (!stop) return false;
        std::string& values = writer.tree->values;
        while (at != stop) {
            const char* run = at;
            while (at != stop && *at != '&' && static_cast<unsigned char>(*at) >= ' ') ++at;
            values.append(run, size_t(at - run));
            if (at == stop) break;
            if (*at == '&') {
                char decoded[4];
                const int size = reference(at, stop, decoded);
                if (size == 0) return false;
                values.append(decoded, size_t(size));
                continue;
            }
            if (*at != '\r' || at + 1 == stop || at[1] != '\n') values.push_back(' ');
            ++at;
        }
        ++at;
        return true;
    }
};

}  // namespace xsift
