"""The callbacks of expat: from its calls to event codes. All without the GIL and without Python objects.

Each callback does nothing once the document was refused (`fault`) or memory ran out (`failed`: a Python exception
is set), for expat may call a few more times after it was told to stop. What can run out of memory is a function
`except -1`; a callback calls it through a type that says it raises nothing, so that the exception waits, set, until
expat has returned.

What an element's tags and text lead to is in emission.hpp. Outside elements whose text is asked for expat is told not to
call for text.
"""

from libc.string cimport memchr, strlen

from xsift.document.conditions.condition_index cimport AttributeValue, WANTS_ATTRIBUTES
from xsift.document.emission cimport (
    ask_guides, current_offset, emit_end, emit_start, end_text_node, keep_name, match_start, open_text, stop, stopped, take_text,
)
from xsift.document.expat cimport *
from xsift.native.types cimport int32_t, int64_t

cdef enum:
    SEPARATOR = 0x1f  # expat puts it between the namespace and the local name, as the keys of symbols have it

ctypedef int (*start_t)(ReadState*, const char*, const char**) noexcept nogil
ctypedef int (*plain_t)(ReadState*) noexcept nogil
ctypedef int (*name_t)(ReadState*, const char*) noexcept nogil
ctypedef int (*text_t)(ReadState*, const char*, int) noexcept nogil
ctypedef int (*entity_t)(ReadState*, const char*, bint, const char*, int) noexcept nogil


cdef void set_handlers(ReadState* state) noexcept nogil:
    cdef XML_Parser parser = state.parser
    XML_SetUserData(parser, state)
    XML_SetElementHandler(parser, on_start, on_end)
    XML_SetXmlDeclHandler(parser, on_xml_declaration)
    XML_SetDoctypeDeclHandler(parser, on_doctype, on_doctype_end)
    XML_SetEntityDeclHandler(parser, on_entity_declaration)
    XML_SetAttlistDeclHandler(parser, on_attribute_declaration)
    XML_SetSkippedEntityHandler(parser, on_skipped_entity)
    XML_SetExternalEntityRefHandler(parser, on_external_entity)
    XML_SetStartNamespaceDeclHandler(parser, on_namespace)
    state.relisten = relisten
    relisten(state)


cdef void relisten(ReadState* state) noexcept nogil:
    """Turns expat's callbacks for text on where text is wanted, and off elsewhere."""
    if state.hears_text:
        XML_SetCharacterDataHandler(state.parser, on_text)
    else:
        XML_SetCharacterDataHandler(state.parser, NULL)
    if state.hears_breaks:
        XML_SetCommentHandler(state.parser, on_comment)
        XML_SetProcessingInstructionHandler(state.parser, on_instruction)
        XML_SetStartCdataSectionHandler(state.parser, on_cdata)
    else:
        XML_SetCommentHandler(state.parser, NULL)
        XML_SetProcessingInstructionHandler(state.parser, NULL)
        XML_SetStartCdataSectionHandler(state.parser, NULL)


# Tags.

cdef void on_start(void* data, const XML_Char* name, const XML_Char** attributes) noexcept nogil:
    cdef ReadState* state = <ReadState*>data
    if not stopped(state) and (<start_t>start_element)(state, name, attributes) < 0:
        stop(state, 0)


cdef void on_end(void* data, const XML_Char* name) noexcept nogil:
    cdef ReadState* state = <ReadState*>data
    if not stopped(state) and (<plain_t>end_element)(state) < 0:
        stop(state, 0)


cdef int start_element(ReadState* state, const char* name, const char** attributes) except -1 nogil:
    cdef size_t length = strlen(name), uri_length = 0
    cdef const char* rest = name
    cdef const char* uri
    cdef const NameEntry* entry
    cdef int specified
    state.depth += 1
    state.elements += 1
    if state.depth > state.most_depth:
        stop(state, FAULT_DEPTH)
        return 0
    if <int64_t>length > state.most_name_bytes:
        stop(state, FAULT_NAME)
        return 0
    specified = XML_GetSpecifiedAttributeCount(state.parser)  # two for each, without those that a DTD adds
    if specified > 2 * state.most_attributes:
        stop(state, FAULT_ATTRIBUTES)
        return 0
    if state.entity_markup or state.external_subset:
        if not check_entities(state, specified > 0):
            return 0
    if state.declared_attributes.most and not may_pass_declared(state, specified):
        return 0
    if state.silent:
        return 0
    uri = <const char*>memchr(name, SEPARATOR, length)
    if uri != NULL:
        uri_length = uri - name
        rest = uri + 1
    if state.keep_names:
        keep_name(state, name if uri != NULL else NULL, uri_length, rest, length - (rest - name))
        length = key_length(state, name, length)
    entry = &state.entries[state.names.find(name, length) + 1]
    emit_start(state, entry, current_offset(state))
    if entry.wants:
        ask_guides(state)
    if entry.wants & WANTS_ATTRIBUTES:
        collect_values(state, attributes, specified)
        match_start(state, entry, name, uri_length)
    if state.collects:
        open_text(state, entry)
    return 0


cdef int end_element(ReadState* state) except -1 nogil:
    if state.silent:
        state.depth -= 1
        return 0
    emit_end(state, current_offset(state) + XML_GetCurrentByteCount(state.parser))
    return 0


cdef int collect_values(ReadState* state, const char** attributes, int specified) except -1 nogil:
    cdef AttributeValue value
    cdef int i
    state.values.clear()
    for i in range(0, specified, 2):
        value.name = attributes[i]
        value.name_length = key_length(state, attributes[i], strlen(attributes[i]))
        value.value = attributes[i + 1]
        value.value_length = strlen(attributes[i + 1])
        state.values.push_back(value)
    return 0


cdef inline size_t key_length(ReadState* state, const char* name, size_t length) noexcept nogil:
    """The length of "uri<sep>local", which "<sep>prefix" follows where names are kept."""
    cdef const char* first
    cdef const char* second
    if state.keep_names:
        first = <const char*>memchr(name, SEPARATOR, length)
        if first != NULL:
            second = <const char*>memchr(first + 1, SEPARATOR, length - (first + 1 - name))
            if second != NULL:
                return second - name
    return length


# Text.

cdef void on_text(void* data, const XML_Char* text, int length) noexcept nogil:
    cdef ReadState* state = <ReadState*>data
    if not stopped(state) and (<text_t>add_text)(state, text, length) < 0:
        stop(state, 0)


cdef void on_cdata(void* data) noexcept nogil:
    (<ReadState*>data).node_exists = True


cdef void on_comment(void* data, const XML_Char* text) noexcept nogil:
    on_break(<ReadState*>data)


cdef void on_instruction(void* data, const XML_Char* target, const XML_Char* text) noexcept nogil:
    on_break(<ReadState*>data)


cdef inline void on_break(ReadState* state) noexcept nogil:
    if not stopped(state) and (<plain_t>break_text)(state) < 0:
        stop(state, 0)


cdef int break_text(ReadState* state) except -1 nogil:
    end_text_node(state)
    return 0


cdef int add_text(ReadState* state, const char* text, int length) except -1 nogil:
    take_text(state, text, length)
    return 0


# Declarations. Nothing outside the document is ever read, and parameter entities are not expanded.

cdef void on_xml_declaration(void* data, const XML_Char* version, const XML_Char* encoding,
                             int standalone) noexcept nogil:
    cdef ReadState* state = <ReadState*>data
    if version != NULL and (version[0] != c"1" or version[1] != c"." or not is_digits(version + 2)):
        stop(state, FAULT_VERSION)


cdef bint is_digits(const char* text) noexcept nogil:
    cdef size_t i = 0
    while c"0" <= text[i] <= c"9":
        i += 1
    return i > 0 and text[i] == 0


cdef void on_namespace(void* data, const XML_Char* prefix, const XML_Char* uri) noexcept nogil:
    cdef ReadState* state = <ReadState*>data
    if not stopped(state) and uri != NULL and <int64_t>strlen(uri) > state.most_name_bytes:
        stop(state, FAULT_NAME)


cdef void on_doctype(void* data, const XML_Char* name, const XML_Char* system, const XML_Char* public,
                     int internal_subset) noexcept nogil:
    cdef ReadState* state = <ReadState*>data
    if stopped(state):
        return
    state.external_subset = system != NULL
    XML_SetDefaultHandlerExpand(state.parser, on_declaration)


cdef void on_doctype_end(void* data) noexcept nogil:
    XML_SetDefaultHandlerExpand((<ReadState*>data).parser, NULL)


cdef void on_declaration(void* data, const XML_Char* text, int length) noexcept nogil:
    """Sees the tokens of the internal subset that no other callback takes."""
    cdef ReadState* state = <ReadState*>data
    if not stopped(state) and length > 1 and text[0] == c"%":
        stop(state, FAULT_PARAMETER_ENTITY)


cdef void on_entity_declaration(
    void* data, const XML_Char* name, int is_parameter, const XML_Char* text, int length, const XML_Char* base,
    const XML_Char* system, const XML_Char* public, const XML_Char* notation,
) noexcept nogil:
    cdef ReadState* state = <ReadState*>data
    if not stopped(state) and (<entity_t>declare_entity)(state, name, is_parameter, text, length) < 0:
        stop(state, 0)


cdef int declare_entity(ReadState* state, const char* name, bint is_parameter, const char* text,
                        int length) except -1 nogil:
    cdef EntityVerdict verdict
    state.entities += 1
    if state.entities > state.most_entities:
        stop(state, FAULT_ENTITIES)
    elif not is_parameter and text != NULL:
        if memchr(text, c"<", length) != NULL:
            state.entity_markup = True
        verdict = state.entity_depths.declare(name, text, length, state.most_entity_depth)
        if verdict != ENTITY_FINE:
            stop(state, FAULT_ENTITY_DEPTH if verdict == ENTITY_TOO_DEEP else XML_ERROR_RECURSIVE_ENTITY_REF)
            return 0
        if state.external_subset:
            state.entity_names.declare(name, text, length)
    return 0


cdef void on_attribute_declaration(
    void* data, const XML_Char* element, const XML_Char* name, const XML_Char* kind, const XML_Char* default, int is_required,
) noexcept nogil:
    cdef ReadState* state = <ReadState*>data
    if not stopped(state) and (<name_t>declare_attribute)(state, element) < 0:
        stop(state, 0)


cdef int declare_attribute(ReadState* state, const char* element) except -1 nogil:
    state.declared_attributes.declare(element)
    if state.declared_attributes.most > state.most_attributes:
        stop(state, FAULT_ATTRIBUTES)
    return 0


cdef bint may_pass_declared(ReadState* state, int specified) noexcept nogil:
    """Whether expat may have gone through what is declared for an element once more, and for each of its attributes."""
    state.scan_left -= state.declared_attributes.most * (1 + specified // 2)
    if state.scan_left < 0:
        stop(state, FAULT_DECLARED_ATTRIBUTES)
        return False
    return True


cdef void on_skipped_entity(void* data, const XML_Char* name, int is_parameter) noexcept nogil:
    """A reference to an entity that only the external subset, which is not read, could declare."""
    cdef ReadState* state = <ReadState*>data
    if not stopped(state):
        stop(state, FAULT_UNDECLARED_ENTITY)


cdef int on_external_entity(XML_Parser parser, const XML_Char* context, const XML_Char* base,
                            const XML_Char* system, const XML_Char* public) noexcept nogil:
    cdef ReadState* state = <ReadState*>XML_GetUserData(parser)
    if not stopped(state):
        stop(state, FAULT_EXTERNAL_ENTITY)
    return 0


cdef bint check_entities(ReadState* state, bint has_attributes) except -1 nogil:
    """Whether a start tag is within the limits on entities, and none of its attributes refers to an unknown one."""
    cdef int64_t index = XML_GetCurrentByteIndex(state.parser)
    cdef int offset = 0, size = 0
    cdef const char* raw
    if state.entity_markup:
        # Inside an entity every event has the place of the reference to it.
        if index == state.last_start:
            state.entity_elements += 1
        state.last_start = index
        if state.entity_elements > state.most_entity_elements:
            stop(state, FAULT_ENTITY_ELEMENTS)
            return False
    if state.external_subset and has_attributes:
        raw = XML_GetInputContext(state.parser, &offset, &size)
        if raw == NULL or not state.entity_names.covers(raw + offset, XML_GetCurrentByteCount(state.parser)):
            stop(state, FAULT_UNDECLARED_ENTITY)
            return False
    return True
