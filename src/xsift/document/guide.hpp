// Guide: an engine that is asked, while a document is read, which conditions can still matter at an element.
//
// Without a guide a reader decides every condition that is asked of an element's name. Few of them can matter: most elements
// are not where a pattern wants them. An engine knows, from the names of the open elements. So it takes the
// events that there are before an element's values are looked at, and says what to look at, as bits (subject_bit() in
// condition.hpp). A bit too many costs time, one too few would be wrong.
//
// A guide gets the events of a document once: what it took is not fed to it again. If the document is read again from its
// start, because the scanner gave up, it begins again too.
#pragma once
#include <cstddef>
#include <cstdint>

namespace xsift {

class Guide {
   public:
    virtual ~Guide() = default;
    // Takes events, of which the last one is a start tag. Returns the subjects of which conditions can matter there.
    virtual uint64_t take(const int32_t* codes, size_t number) = 0;
    virtual void begin_again() = 0;
};

}  // namespace xsift
