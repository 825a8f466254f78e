"""The callbacks of expat: from its calls to event codes. All without the GIL and without Python objects.

Each callback does nothing once the document was refused (`fault`) or memory ran out (`failed`: a Python exception
is set), for expat may call a few more times after it was told to stop. What can run out of memory is a function
`except -1`; a callback calls it through a type that says it raises nothing, so that the exception waits, set, until
expat has returned.

Text is collected in one buffer, and only where it is asked for: outside such elements expat is told not to call.

    open element that wants its string-value    remembers where in the buffer it begins
    open element that wants its text nodes      is the innermost one while a text node is read; the node is the end
                                                of the buffer, and is tried where it ends: at a tag, comment or PI
"""

from libc.string cimport memchr, strlen
from libcpp.vector cimport vector

from xsift.document.conditions cimport (
    AttributeValue, ConditionScratch, ConditionTables, WANTS_ATTRIBUTES, WANTS_STRING, WANTS_TEXT,
)
from xsift.document.events cimport END
from xsift.document.expat cimport *
from xsift.native.tables cimport pack
from xsift.native.types cimport int32_t, int64_t, uint64_t

cdef extern from "read_state.hpp" namespace "xsift" nogil:
    void keep_distinct(TextFrame* frame, bint now) except +
    void keep_distinct_codes(vector[int32_t]* codes, size_t begin) except +

cdef enum:
    SEPARATOR = 0x1f  # expat puts it between the namespace and the local name, as the keys of symbols have it

ctypedef int (*start_t)(ReadState*, const char*, const char**) noexcept nogil
ctypedef int (*plain_t)(ReadState*) noexcept nogil
ctypedef int (*text_t)(ReadState*, const char*, int) noexcept nogil
ctypedef int (*entity_t)(ReadState*, const char*, bint, const char*, int) noexcept nogil


cdef void set_handlers(ReadState* state) noexcept nogil:
    cdef XML_Parser parser = state.parser
    XML_SetUserData(parser, state)
    XML_SetElementHandler(parser, on_start, on_end)
    XML_SetXmlDeclHandler(parser, on_xml_declaration)
    XML_SetDoctypeDeclHandler(parser, on_doctype, on_doctype_end)
    XML_SetEntityDeclHandler(parser, on_entity_declaration)
    XML_SetSkippedEntityHandler(parser, on_skipped_entity)
    XML_SetExternalEntityRefHandler(parser, on_external_entity)
    XML_SetStartNamespaceDeclHandler(parser, on_namespace)


cdef void stop(ReadState* state, int32_t fault) noexcept nogil:
    """Refuses the document; a fault of 0 means that a Python exception is set."""
    if fault:
        state.fault = fault
        state.fault_line = XML_GetCurrentLineNumber(state.parser)  # of the event at hand: expat moves on from here
        state.fault_column = XML_GetCurrentColumnNumber(state.parser)
        state.fault_offset = XML_GetCurrentByteIndex(state.parser)
    else:
        state.failed = True
    XML_StopParser(state.parser, 0)


cdef inline bint stopped(ReadState* state) noexcept nogil:
    return state.fault != 0 or state.failed


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
    cdef size_t length = strlen(name)
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
    if state.keep_names:
        length = keep_name(state, name, length)
    entry = &state.entries[state.names.find(name, length) + 1]
    if state.hears_text:
        end_text_node(state)
    state.codes.push_back(entry.symbol)
    if state.positions:
        state.offsets.push_back(XML_GetCurrentByteIndex(state.parser))
    if entry.wants & WANTS_ATTRIBUTES:
        match_start(state, entry, name, length, attributes, specified)
    if state.collects:
        open_text(state, entry)
    return 0


cdef int end_element(ReadState* state) except -1 nogil:
    cdef const NameEntry* entry
    state.depth -= 1
    if state.collects:
        if state.hears_text:
            end_text_node(state)
        entry = &state.entries[state.open.back()]
        if entry.wants & (WANTS_TEXT | WANTS_STRING):
            close_text(state, entry)
        state.open.pop_back()
        listen(state)
    state.codes.push_back(END)
    if state.positions:
        state.offsets.push_back(XML_GetCurrentByteIndex(state.parser) + XML_GetCurrentByteCount(state.parser))
    return 0


cdef int match_start(ReadState* state, const NameEntry* entry, const char* name, size_t length,
                     const char** attributes, int specified) except -1 nogil:
    """Writes the conditions on attributes, and on the namespace, that hold."""
    cdef const char* separator = <const char*>memchr(name, SEPARATOR, length)
    cdef size_t uri_length = separator - name if separator != NULL else 0
    cdef size_t begin = state.codes.size()
    cdef int64_t size = uri_length
    cdef AttributeValue value
    cdef const Part* part
    cdef int32_t i
    state.values.clear()
    for i in range(0, specified, 2):
        value.name = attributes[i]
        value.name_length = key_length(state, attributes[i], strlen(attributes[i]))
        value.value = attributes[i + 1]
        value.value_length = strlen(attributes[i + 1])
        size += value.value_length
        state.values.push_back(value)
    if not may_scan(state, size):
        return 0
    for i in range(entry.first_part, entry.end_part):
        part = &state.parts[i]
        if part.wants & WANTS_ATTRIBUTES:
            part.tables.match_start(part.group, name, uri_length, state.values, state.scratches[part.scratch],
                                    state.codes[0])
    conditions_written(state, begin)
    return 0


cdef inline int conditions_written(ReadState* state, size_t begin) except -1 nogil:
    if state.codes.size() >= state.most_codes and not state.suspended:
        # Many conditions on many elements: the chunk must not grow with their product.
        state.suspended = True
        XML_StopParser(state.parser, 1)
    if state.several_tables and state.codes.size() > begin + 1:
        keep_distinct_codes(state.codes, begin)
    if state.positions:
        state.offsets.resize(state.codes.size(), 0)
    return 0


cdef inline bint may_scan(ReadState* state, int64_t size) noexcept nogil:
    """Whether conditions may look at so many more bytes: at most a multiple of what the document has.

    However many conditions look, a value counts once: they are not the document's fault, unlike its nesting.
    """
    state.scan_left -= size
    if state.scan_left >= 0:
        return True
    stop(state, FAULT_SCAN)
    return False


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


cdef size_t keep_name(ReadState* state, const char* name, size_t length) except? 0 nogil:
    """Records an element's name; returns the length of "uri<sep>local"."""
    cdef const char* separator = <const char*>memchr(name, SEPARATOR, length)
    cdef int32_t uri = -1
    cdef const char* rest = name
    if separator != NULL:
        uri = state.kept_uris.add(name, separator - name)
        rest = separator + 1
    state.kept_key.assign(<const char*>&uri, sizeof(uri))
    state.kept_key.append(rest, length - (rest - name))
    state.kept_elements.push_back(state.kept_names.add(state.kept_key.data(), state.kept_key.size()))
    return key_length(state, name, length)


# Text.

cdef void on_text(void* data, const XML_Char* text, int length) noexcept nogil:
    cdef ReadState* state = <ReadState*>data
    if not stopped(state) and (<text_t>take_text)(state, text, length) < 0:
        stop(state, 0)


cdef void on_cdata(void* data) noexcept nogil:
    (<ReadState*>data).node_exists = True


cdef void on_comment(void* data, const XML_Char* text) noexcept nogil:
    on_break(<ReadState*>data)


cdef void on_instruction(void* data, const XML_Char* target, const XML_Char* text) noexcept nogil:
    on_break(<ReadState*>data)


cdef inline void on_break(ReadState* state) noexcept nogil:
    if not stopped(state) and (<plain_t>end_text_node)(state) < 0:
        stop(state, 0)


cdef int take_text(ReadState* state, const char* text, int length) except -1 nogil:
    if <int64_t>state.text.size() + length > state.most_text_bytes:
        stop(state, FAULT_TEXT)
        return 0
    state.text.append(text, length)
    state.node_exists = True
    return 0


cdef int open_text(ReadState* state, const NameEntry* entry) except -1 nogil:
    """Notes what an element that begins here wants of its text."""
    cdef TextFrame* frame
    state.open.push_back(<int32_t>(entry - state.entries))
    if entry.wants & (WANTS_TEXT | WANTS_STRING):
        frame = state.push_frame()
        frame.string_start = state.text.size()
        if entry.wants & WANTS_STRING:
            state.strings_open += 1
    listen(state)
    return 0


cdef int close_text(ReadState* state, const NameEntry* entry) except -1 nogil:
    """Writes the conditions on text that hold for the innermost open element, which ends here."""
    cdef TextFrame* frame = &state.frames[state.frames_open - 1]
    cdef size_t begin = state.codes.size()
    cdef size_t string_length = state.text.size() - frame.string_start
    cdef const Part* part
    cdef ConditionScratch* scratch
    cdef int32_t i
    if entry.wants & WANTS_STRING and not may_scan(state, string_length):
        return 0
    keep_distinct(frame, True)
    for i in range(entry.first_part, entry.end_part):
        part = &state.parts[i]
        scratch = &state.scratches[part.scratch]
        if part.wants & WANTS_TEXT:
            part.tables.finish_text(part.group, frame.passed, i, frame.had_nodes, scratch[0], state.codes[0])
        if part.wants & WANTS_STRING:
            part.tables.match_string(part.group, state.text.data() + frame.string_start, string_length,
                                     scratch[0], state.codes[0])
    conditions_written(state, begin)
    state.frames_open -= 1
    if entry.wants & WANTS_STRING:
        state.strings_open -= 1
    forget_text(state)
    return 0


cdef int end_text_node(ReadState* state) except -1 nogil:
    """A text node ends here, if there is one: tries it if the element wants text nodes."""
    cdef const NameEntry* entry
    cdef TextFrame* frame
    cdef size_t length = state.text.size() - state.node_start
    if not state.node_exists or state.open.empty():
        return 0
    entry = &state.entries[state.open.back()]
    if entry.wants & WANTS_TEXT:
        if not may_scan(state, length):
            return 0
        frame = &state.frames[state.frames_open - 1]
        match_text_node(state, entry, frame, state.text.data() + state.node_start, length)
        frame.had_nodes = True
    forget_text(state)
    return 0


cdef int match_text_node(ReadState* state, const NameEntry* entry, TextFrame* frame, const char* text,
                         size_t length) except -1 nogil:
    """Notes the tests that a text node passes."""
    cdef const Part* part
    cdef ConditionScratch* scratch
    cdef int32_t i, test
    for i in range(entry.first_part, entry.end_part):
        part = &state.parts[i]
        if not part.wants & WANTS_TEXT:
            continue
        scratch = &state.scratches[part.scratch]
        part.tables.match_text_node(part.group, text, length, not frame.had_nodes, scratch[0])
        for test in scratch.held:
            frame.passed.push_back(pack(i, test))
    keep_distinct(frame, False)
    return 0


cdef inline void forget_text(ReadState* state) noexcept nogil:
    """The next text node begins here; earlier text is kept only for open string-values."""
    if state.strings_open == 0:
        state.text.clear()
    state.node_start = state.text.size()
    state.node_exists = False


cdef inline void listen(ReadState* state) noexcept nogil:
    """Has expat call for text where it is wanted, and nowhere else."""
    cdef bint nodes = not state.open.empty() and (state.entries[state.open.back()].wants & WANTS_TEXT) != 0
    cdef bint texts = nodes or state.strings_open > 0
    if texts != state.hears_text:
        state.hears_text = texts
        if texts:
            XML_SetCharacterDataHandler(state.parser, on_text)
        else:
            XML_SetCharacterDataHandler(state.parser, NULL)
    if nodes != state.hears_breaks:
        state.hears_breaks = nodes
        if nodes:
            XML_SetCommentHandler(state.parser, on_comment)
            XML_SetProcessingInstructionHandler(state.parser, on_instruction)
            XML_SetStartCdataSectionHandler(state.parser, on_cdata)
        else:
            XML_SetCommentHandler(state.parser, NULL)
            XML_SetProcessingInstructionHandler(state.parser, NULL)
            XML_SetStartCdataSectionHandler(state.parser, NULL)


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
    state.entities += 1
    if state.entities > state.most_entities:
        stop(state, FAULT_ENTITIES)
    elif not is_parameter and text != NULL:
        if memchr(text, c"<", length) != NULL:
            state.entity_markup = True
        if state.external_subset:
            state.entity_names.declare(name, text, length)
    return 0


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
