from libc.stdint cimport int64_t, uint64_t
from numpy.random cimport bitgen_t

cdef bitgen_t* bits_of(object generator) except NULL

cdef bint is_keyed(bitgen_t* bits) noexcept nogil

cdef void words_of(bitgen_t* bits, uint64_t* out, Py_ssize_t count) noexcept nogil

cdef Py_ssize_t keyed_rows(
    bitgen_t* bits,
    double sampling_probability,
    Py_ssize_t n,
    Py_ssize_t* position,
    Py_ssize_t* rows,
    Py_ssize_t capacity,
) noexcept nogil
