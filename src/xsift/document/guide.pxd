# The declaration of guide.hpp, which explains it. A kernel that derives from it, or calls it, includes the header.
cdef extern from * nogil:
    """
    namespace xsift { class Guide; }
    """
    cdef cppclass Guide "xsift::Guide":
        void begin_again() except +
