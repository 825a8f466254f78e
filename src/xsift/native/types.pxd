# The types that kernels share. `symbol_t` numbers names and conditions (see xpath/symbols.pxd).
from libc.stdint cimport int8_t, uint8_t, int16_t, int32_t, uint32_t, int64_t, uint64_t

ctypedef int32_t symbol_t
