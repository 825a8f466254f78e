"""C++ templates that Cython cannot express, shared by the kernels of every room."""
