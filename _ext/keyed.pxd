from libc.stdint cimport uint64_t
from numpy.random cimport bitgen_t

cdef bitgen_t* bits_of(object generator) except NULL

cdef void words_of(bitgen_t* bits, uint64_t* out, Py_ssize_t count) noexcept nogil
