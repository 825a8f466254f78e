# The part of libexpat that the reader uses, as expat_api.hpp declares it.
cdef extern from "expat_api.hpp" nogil:
    ctypedef struct XML_ParserStruct:
        pass
    ctypedef XML_ParserStruct* XML_Parser
    ctypedef char XML_Char
    ctypedef unsigned char XML_Bool
    ctypedef struct XML_Encoding:
        int map[256]
        void* data
        int (*convert)(void*, const char*) noexcept
        void (*release)(void*) noexcept

    enum:
        XML_STATUS_OK
        XML_STATUS_SUSPENDED
        XML_ERROR_NO_ELEMENTS
        XML_ERROR_RECURSIVE_ENTITY_REF

    ctypedef void (*XML_StartElementHandler)(void*, const XML_Char*, const XML_Char**) noexcept
    ctypedef void (*XML_EndElementHandler)(void*, const XML_Char*) noexcept
    ctypedef void (*XML_CharacterDataHandler)(void*, const XML_Char*, int) noexcept
    ctypedef void (*XML_ProcessingInstructionHandler)(void*, const XML_Char*, const XML_Char*) noexcept
    ctypedef void (*XML_CommentHandler)(void*, const XML_Char*) noexcept
    ctypedef void (*XML_StartCdataSectionHandler)(void*) noexcept
    ctypedef void (*XML_DefaultHandler)(void*, const XML_Char*, int) noexcept
    ctypedef void (*XML_StartDoctypeDeclHandler)(void*, const XML_Char*, const XML_Char*, const XML_Char*, int) noexcept
    ctypedef void (*XML_EndDoctypeDeclHandler)(void*) noexcept
    ctypedef void (*XML_StartNamespaceDeclHandler)(void*, const XML_Char*, const XML_Char*) noexcept
    ctypedef void (*XML_EntityDeclHandler)(
        void*, const XML_Char*, int, const XML_Char*, int,
        const XML_Char*, const XML_Char*, const XML_Char*, const XML_Char*) noexcept
    ctypedef void (*XML_AttlistDeclHandler)(
        void*, const XML_Char*, const XML_Char*, const XML_Char*, const XML_Char*, int) noexcept
    ctypedef void (*XML_XmlDeclHandler)(void*, const XML_Char*, const XML_Char*, int) noexcept
    ctypedef void (*XML_SkippedEntityHandler)(void*, const XML_Char*, int) noexcept
    ctypedef int (*XML_ExternalEntityRefHandler)(
        XML_Parser, const XML_Char*, const XML_Char*, const XML_Char*, const XML_Char*) noexcept
    ctypedef int (*XML_UnknownEncodingHandler)(void*, const XML_Char*, XML_Encoding*) noexcept

    XML_Parser XML_ParserCreateNS(const XML_Char* encoding, XML_Char separator)
    XML_Bool XML_ParserReset(XML_Parser parser, const XML_Char* encoding)
    void XML_ParserFree(XML_Parser parser)
    void XML_SetUserData(XML_Parser parser, void* data)
    void* XML_GetUserData(XML_Parser parser)
    int XML_SetHashSalt(XML_Parser parser, unsigned long salt)
    void XML_SetReturnNSTriplet(XML_Parser parser, int triplet)
    XML_Bool XML_SetBillionLaughsAttackProtectionMaximumAmplification(XML_Parser parser, float factor)
    XML_Bool XML_SetBillionLaughsAttackProtectionActivationThreshold(XML_Parser parser, unsigned long long size)

    void XML_SetElementHandler(XML_Parser parser, XML_StartElementHandler start, XML_EndElementHandler end)
    void XML_SetCharacterDataHandler(XML_Parser parser, XML_CharacterDataHandler handler)
    void XML_SetProcessingInstructionHandler(XML_Parser parser, XML_ProcessingInstructionHandler handler)
    void XML_SetCommentHandler(XML_Parser parser, XML_CommentHandler handler)
    void XML_SetStartCdataSectionHandler(XML_Parser parser, XML_StartCdataSectionHandler handler)
    void XML_SetDefaultHandlerExpand(XML_Parser parser, XML_DefaultHandler handler)
    void XML_SetDoctypeDeclHandler(
        XML_Parser parser, XML_StartDoctypeDeclHandler start, XML_EndDoctypeDeclHandler end)
    void XML_SetStartNamespaceDeclHandler(XML_Parser parser, XML_StartNamespaceDeclHandler handler)
    void XML_SetEntityDeclHandler(XML_Parser parser, XML_EntityDeclHandler handler)
    void XML_SetAttlistDeclHandler(XML_Parser parser, XML_AttlistDeclHandler handler)
    void XML_SetXmlDeclHandler(XML_Parser parser, XML_XmlDeclHandler handler)
    void XML_SetSkippedEntityHandler(XML_Parser parser, XML_SkippedEntityHandler handler)
    void XML_SetExternalEntityRefHandler(XML_Parser parser, XML_ExternalEntityRefHandler handler)
    void XML_SetUnknownEncodingHandler(XML_Parser parser, XML_UnknownEncodingHandler handler, void* data)

    int XML_Parse(XML_Parser parser, const char* data, int length, int is_final)
    int XML_ResumeParser(XML_Parser parser)
    int XML_StopParser(XML_Parser parser, XML_Bool resumable)
    int XML_GetErrorCode(XML_Parser parser)
    unsigned long XML_GetCurrentLineNumber(XML_Parser parser)
    unsigned long XML_GetCurrentColumnNumber(XML_Parser parser)
    long XML_GetCurrentByteIndex(XML_Parser parser)
    int XML_GetCurrentByteCount(XML_Parser parser)
    int XML_GetSpecifiedAttributeCount(XML_Parser parser)
    const char* XML_GetInputContext(XML_Parser parser, int* offset, int* size)
