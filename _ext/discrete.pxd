from libc.stdint cimport int64_t, uint16_t, uint64_t
from numpy.random cimport bitgen_t

cdef enum:
    TERMS = 16  # most terms of a sum, but one


cdef class DiscreteTable:
    cdef const uint64_t[::1] high, low
    cdef uint16_t[::1] guide
    cdef int64_t most
    cdef readonly double standard_deviation
    cdef void add(
        self,
        bitgen_t* bits,
        const int64_t* factors,
        int terms,
        int64_t* out,
        Py_ssize_t size,
    ) noexcept nogil
    cdef void settle(
        self, bitgen_t* bits, const uint64_t* words, int64_t* places, Py_ssize_t count
    ) noexcept nogil


cdef int factors_covering(double sigma, DiscreteTable table, int64_t* factors) noexcept nogil
