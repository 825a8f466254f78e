// ExpatBuilder: the tree of any document that expat reads: other encodings, DTDs, entities.
//
// The document was read before by a Reader, which refuses what must be refused (external entities, too deep
// nesting …) under the same limits. So here only what expat itself finds is an error.
#pragma once
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "expat_api.hpp"
#include "node_writer.hpp"

namespace xsift {

enum class BuildOutcome { BUILT, REFUSED, TOO_LARGE, NO_MEMORY };

class ExpatBuilder {
   public:
    using Outcome = BuildOutcome;
    static constexpr char SEPARATOR = '\x1f';
    static constexpr size_t SLICE = 1 << 20;

    int error = 0;  // expat's, if the document was REFUSED, and where:
    int64_t line = 0, column = 0, offset = 0;
    XML_UnknownEncodingHandler on_unknown_encoding = nullptr;
    char proper_encoding[8] = {};  // what expat calls the encoding that it asked for; on_unknown_encoding writes it
    float amplification = 100;
    unsigned long long amplification_bytes = 8 << 20;

    Outcome build(const char* data, size_t length, const char* encoding, NodeTree* tree, bool namespaces) {
        parser = XML_ParserCreateNS(encoding, SEPARATOR);
        if (!parser) return Outcome::NO_MEMORY;
        proper_encoding[0] = 0;  // expat has copied the name by now
        stopped = Outcome::BUILT;
        id_attributes.clear();
        try {
            writer.begin(tree, namespaces);
        } catch (const std::bad_alloc&) {
            stopped = Outcome::NO_MEMORY;
        }
        listen();
        XML_Status status = XML_STATUS_OK;
        for (size_t at = 0; status == XML_STATUS_OK && stopped == Outcome::BUILT; at += SLICE) {
            const bool is_last = length - at <= SLICE;
            status = XML_Parse(parser, data + at, int(is_last ? length - at : SLICE), is_last);
            if (is_last) break;
        }
        if (stopped == Outcome::BUILT && status != XML_STATUS_OK) {
            stopped = Outcome::REFUSED;
            error = XML_GetErrorCode(parser);
            line = int64_t(XML_GetCurrentLineNumber(parser));
            column = int64_t(XML_GetCurrentColumnNumber(parser));
            offset = XML_GetCurrentByteIndex(parser);
        }
        XML_ParserFree(parser);
        if (stopped == Outcome::BUILT) guarded([this] { writer.finish(); });
        return stopped;
    }

   private:
    struct Name {  // of a document, as expat gives it: "local", "uri<sep>local" or "uri<sep>local<sep>prefix"
        std::string_view uri, local, prefix;
        explicit Name(const char* text) {
            const char* first = std::strchr(text, SEPARATOR);
            if (!first) {
                local = text;
                return;
            }
            uri = {text, size_t(first - text)};
            const char* second = std::strchr(first + 1, SEPARATOR);
            local = second ? std::string_view(first + 1, size_t(second - first - 1)) : std::string_view(first + 1);
            if (second) prefix = second + 1;
        }
        std::string qualified() const {
            return prefix.empty() ? std::string(local) : std::string(prefix) + ":" + std::string(local);
        }
    };

    XML_Parser parser = nullptr;
    NodeWriter writer;
    Outcome stopped = Outcome::BUILT;
    bool declares = false;
    StringTable id_attributes;  // elements, and their attributes of type ID: both names, with a blank between them

    template <class Function>
    void guarded(Function&& function) {
        if (stopped != Outcome::BUILT) return;
        try {
            function();
        } catch (const TreeTooLarge&) {
            stopped = Outcome::TOO_LARGE;
        } catch (const std::bad_alloc&) {
            stopped = Outcome::NO_MEMORY;
        }
        if (stopped != Outcome::BUILT && parser) XML_StopParser(parser, 0);
    }

    static ExpatBuilder* self(void* data) { return static_cast<ExpatBuilder*>(data); }

    void listen() {
        XML_SetUserData(parser, this);
        XML_SetReturnNSTriplet(parser, 1);
        XML_SetBillionLaughsAttackProtectionMaximumAmplification(parser, amplification);
        XML_SetBillionLaughsAttackProtectionActivationThreshold(parser, amplification_bytes);
        XML_SetUnknownEncodingHandler(parser, on_unknown_encoding, proper_encoding);
        XML_SetElementHandler(
            parser,
            [](void* data, const char* name, const char** attributes) { self(data)->start(name, attributes); },
            [](void* data, const char*) { self(data)->guarded([data] { self(data)->writer.end(); }); });
        XML_SetCharacterDataHandler(parser, [](void* data, const char* text, int length) {
            self(data)->guarded([=] { self(data)->writer.text(text, size_t(length)); });
        });
        XML_SetStartCdataSectionHandler(
            parser, [](void* data) { self(data)->guarded([data] { self(data)->writer.begin_text(); }); });
        XML_SetCommentHandler(parser, [](void* data, const char* text) {
            self(data)->guarded([=] { if (!self(data)->in_dtd) self(data)->writer.comment(text); });
        });
        XML_SetProcessingInstructionHandler(parser, [](void* data, const char* target, const char* text) {
            self(data)->guarded([=] { if (!self(data)->in_dtd) self(data)->writer.instruction(target, text); });
        });
        XML_SetStartNamespaceDeclHandler(parser, [](void* data, const char* prefix, const char* uri) {
            self(data)->guarded([=] {
                self(data)->declares = true;
                self(data)->writer.declare(prefix ? prefix : "", uri ? uri : "");
            });
        });
        XML_SetAttlistDeclHandler(parser, [](void* data, const char* element, const char* attribute, const char* type,
                                             const char*, int) {
            self(data)->guarded([=] {
                if (std::strcmp(type, "ID") == 0) self(data)->id_attributes.add(std::string(element) + ' ' + attribute);
            });
        });
        in_dtd = false;
        XML_SetDoctypeDeclHandler(
            parser, [](void* data, const char*, const char*, const char*, int) { self(data)->in_dtd = true; },
            [](void* data) { self(data)->in_dtd = false; });
    }

    bool in_dtd = false;  // whose comments and instructions are no nodes

    void start(const char* text, const char** attributes) {
        guarded([=] {
            NodeTree* tree = writer.tree;
            if (declares) writer.enter_scope();
            declares = false;
            const Name name(text);
            writer.start(tree->add_expanded(tree->strings.add(name.uri), name.local), tree->strings.add(name.prefix));
            const int specified = XML_GetSpecifiedAttributeCount(parser);
            for (int i = 0; i < specified; i += 2) attribute(name, Name(attributes[i]), attributes[i + 1]);
        });
    }

    void attribute(const Name& element, const Name& name, const char* value) {
        NodeTree* tree = writer.tree;
        const int32_t number = tree->add_expanded(tree->strings.add(name.uri), name.local);
        const size_t begin = tree->values.size();
        tree->values.append(value);
        writer.attribute(number, tree->strings.add(name.prefix), begin, tree->values.size(),
                         is_id(element, name) || writer.is_xml_id(number));
    }

    bool is_id(const Name& element, const Name& name) const {
        return id_attributes.size() && id_attributes.find(element.qualified() + ' ' + name.qualified()) >= 0;
    }
};

}  // namespace xsift
