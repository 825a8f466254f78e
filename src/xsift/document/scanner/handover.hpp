// Handover: expat takes over from the scanner in the middle of a stream.
//
// A document in memory that the scanner does not take is read by expat from its start. Of a stream the start is gone. There
// expat is first given a short document that opens the same elements, with the same namespaces, without handlers;
// then the bytes from where the scanner stopped. So it judges them as if it had read it all, and its errors are right once
// places are counted from there.
#pragma once
#include <cstdint>
#include <string>

#include "scanner.hpp"

namespace xsift {

inline void append_escaped(std::string& to, const char* text, size_t length) {
    for (size_t i = 0; i < length; ++i) {
        const char c = text[i];
        if (c == '&' || c == '<' || c == '"' || is_space(c)) to += "&#" + std::to_string(int(c)) + ";";
        else to.push_back(c);
    }
}

// The document that brings expat to where the scanner stopped. It has one line feed, which is its last byte.
inline void write_opening(Scanner& scanner, std::string& to) {
    to = "<?opening?>";  // an XML declaration cannot follow
    if (scanner.doctype == DoctypeKind::EXTERNAL) to += "<!DOCTYPE a SYSTEM \"a\">";
    if (scanner.doctype == DoctypeKind::PLAIN) to += "<!DOCTYPE a>";
    size_t binding = 0;
    for (size_t level = 1; level <= scanner.open.size(); ++level) {
        const ScannedName& name = scanner.names[scanner.open[level - 1]];
        to.push_back('<');
        to.append(scanner.names.text_of(name), name.length);
        for (; binding < scanner.bindings.size() && scanner.bindings[binding].level == level; ++binding) {
            const ScannedBinding& bound = scanner.bindings[binding];
            const ScannedName& prefix = scanner.names[bound.prefix];
            to += prefix.length ? " xmlns:" : " xmlns";
            to.append(scanner.names.text_of(prefix), prefix.length);
            to += "=\"";
            if (bound.now > 0)
                append_escaped(to, scanner.uris.data_of(bound.now - 1), scanner.uris.length_of(bound.now - 1));
            to.push_back('"');
        }
        to.push_back('>');
    }
    if (scanner.place == Scanner::Place::CDATA) to += "<![CDATA[";
    if (scanner.place == Scanner::Place::EPILOG) to += "<a/>";
    to.push_back('\n');
}

}  // namespace xsift
