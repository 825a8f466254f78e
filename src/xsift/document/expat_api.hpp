// The functions of libexpat that the reader calls, declared by us, so that a build needs the library but not its
// development package: every Debian with Python has libexpat.so.1, few have expat.h. The library promises that these
// do not change (version 1 of its interface, 2.4 or later for the limits on expansion). expat.pxd has the same for Cython.
#pragma once

#include <cstddef>

extern "C" {

struct XML_ParserStruct;
typedef XML_ParserStruct* XML_Parser;
typedef char XML_Char;
typedef unsigned char XML_Bool;

enum XML_Status { XML_STATUS_ERROR = 0, XML_STATUS_OK = 1, XML_STATUS_SUSPENDED = 2 };
enum XML_Error { XML_ERROR_NONE = 0, XML_ERROR_NO_ELEMENTS = 3, XML_ERROR_RECURSIVE_ENTITY_REF = 12 };

struct XML_Encoding {
    int map[256];
    void* data;
    int (*convert)(void* data, const char* bytes);
    void (*release)(void* data);
};

typedef void (*XML_StartElementHandler)(void*, const XML_Char* name, const XML_Char** attributes);
typedef void (*XML_EndElementHandler)(void*, const XML_Char* name);
typedef void (*XML_CharacterDataHandler)(void*, const XML_Char* text, int length);
typedef void (*XML_ProcessingInstructionHandler)(void*, const XML_Char* target, const XML_Char* data);
typedef void (*XML_CommentHandler)(void*, const XML_Char* text);
typedef void (*XML_StartCdataSectionHandler)(void*);
typedef void (*XML_EndCdataSectionHandler)(void*);
typedef void (*XML_DefaultHandler)(void*, const XML_Char* text, int length);
typedef void (*XML_StartDoctypeDeclHandler)(void*, const XML_Char* name, const XML_Char* system, const XML_Char* pub, int);
typedef void (*XML_EndDoctypeDeclHandler)(void*);
typedef void (*XML_StartNamespaceDeclHandler)(void*, const XML_Char* prefix, const XML_Char* uri);
typedef void (*XML_EntityDeclHandler)(void*, const XML_Char* name, int is_parameter, const XML_Char* value, int length,
                                      const XML_Char* base, const XML_Char* system, const XML_Char* pub,
                                      const XML_Char* notation);
typedef void (*XML_AttlistDeclHandler)(void*, const XML_Char* element, const XML_Char* attribute, const XML_Char* type,
                                       const XML_Char* value, int required);
typedef void (*XML_XmlDeclHandler)(void*, const XML_Char* version, const XML_Char* encoding, int standalone);
typedef void (*XML_SkippedEntityHandler)(void*, const XML_Char* name, int is_parameter);
typedef int (*XML_ExternalEntityRefHandler)(XML_Parser, const XML_Char* context, const XML_Char* base,
                                            const XML_Char* system, const XML_Char* pub);
typedef int (*XML_UnknownEncodingHandler)(void*, const XML_Char* name, XML_Encoding* encoding);

XML_Parser XML_ParserCreateNS(const XML_Char* encoding, XML_Char separator);
XML_Bool XML_ParserReset(XML_Parser, const XML_Char* encoding);
void XML_ParserFree(XML_Parser);
void XML_SetUserData(XML_Parser, void*);
int XML_SetHashSalt(XML_Parser, unsigned long salt);
void XML_SetReturnNSTriplet(XML_Parser, int triplet);
XML_Bool XML_SetBillionLaughsAttackProtectionMaximumAmplification(XML_Parser, float factor);
XML_Bool XML_SetBillionLaughsAttackProtectionActivationThreshold(XML_Parser, unsigned long long bytes);

void XML_SetElementHandler(XML_Parser, XML_StartElementHandler, XML_EndElementHandler);
void XML_SetCharacterDataHandler(XML_Parser, XML_CharacterDataHandler);
void XML_SetProcessingInstructionHandler(XML_Parser, XML_ProcessingInstructionHandler);
void XML_SetCommentHandler(XML_Parser, XML_CommentHandler);
void XML_SetStartCdataSectionHandler(XML_Parser, XML_StartCdataSectionHandler);
void XML_SetDefaultHandlerExpand(XML_Parser, XML_DefaultHandler);
void XML_SetDoctypeDeclHandler(XML_Parser, XML_StartDoctypeDeclHandler, XML_EndDoctypeDeclHandler);
void XML_SetStartNamespaceDeclHandler(XML_Parser, XML_StartNamespaceDeclHandler);
void XML_SetEntityDeclHandler(XML_Parser, XML_EntityDeclHandler);
void XML_SetAttlistDeclHandler(XML_Parser, XML_AttlistDeclHandler);
void XML_SetXmlDeclHandler(XML_Parser, XML_XmlDeclHandler);
void XML_SetSkippedEntityHandler(XML_Parser, XML_SkippedEntityHandler);
void XML_SetExternalEntityRefHandler(XML_Parser, XML_ExternalEntityRefHandler);
void XML_SetUnknownEncodingHandler(XML_Parser, XML_UnknownEncodingHandler, void* data);

XML_Status XML_Parse(XML_Parser, const char* data, int length, int is_final);
XML_Status XML_ResumeParser(XML_Parser);
XML_Status XML_StopParser(XML_Parser, XML_Bool resumable);
XML_Error XML_GetErrorCode(XML_Parser);
unsigned long XML_GetCurrentLineNumber(XML_Parser);
unsigned long XML_GetCurrentColumnNumber(XML_Parser);
long XML_GetCurrentByteIndex(XML_Parser);
int XML_GetCurrentByteCount(XML_Parser);
int XML_GetSpecifiedAttributeCount(XML_Parser);
const char* XML_GetInputContext(XML_Parser, int* offset, int* size);

}  // extern "C"

// A macro in expat.h: what the user set is the first thing in a parser, for as long as there is a version 1.
inline void* XML_GetUserData(XML_Parser parser) { return *reinterpret_cast<void**>(parser); }
