from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

cdef bitgen_t* bits_of(object generator) except NULL

cdef Py_ssize_t next_rows(
    bitgen_t* bits,
    double sampling_probability,
    Py_ssize_t n,
    Py_ssize_t* position,
    Py_ssize_t* rows,
    Py_ssize_t capacity,
) noexcept nogil

cdef void add_normals(
    bitgen_t* bits, double standard_deviation, int64_t* out, Py_ssize_t size
) noexcept nogil
