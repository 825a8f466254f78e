from xsift.engines.afilter.traverse cimport AFilterScratch
from xsift.engines.afilter.view cimport PatternView
from xsift.native.types cimport int32_t

cdef int trigger_check_suffixes(PatternView view, AFilterScratch scratch, int32_t number) except -1 nogil
# A path that no twig needs has matched: clusters in which all have are not traversed again in this document.
cdef int settle(PatternView view, AFilterScratch scratch, int32_t path) noexcept nogil
