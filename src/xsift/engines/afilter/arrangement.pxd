from xsift.engines.afilter.view cimport PatternView

# Renumbers, if more than a fifth of the paths came after the last time.
cdef int arrange_if_needed(PatternView view) except -1
