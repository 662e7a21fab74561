from libc.stdint cimport uint16_t, uint64_t
from numpy.random cimport bitgen_t

cdef extern from "gaps.h":
    ctypedef long long wide "dpcal_wide"
    ctypedef struct gap_table "dpcal_gaps":
        int digits
        uint64_t sure
        uint64_t* high
        uint64_t* low
        uint16_t* guide
        wide* powers


cdef class Gaps:
    cdef gap_table table


cdef class Sample:
    cdef object generator
    cdef bitgen_t* bits
    cdef Gaps gaps
    cdef Py_ssize_t n, size, position, left, count
    cdef bint shuffled, given
    cdef const Py_ssize_t* rows
    cdef Py_ssize_t[::1] drawn, order, swaps
    cdef unsigned char[::1] taken
    cdef void give(self, const Py_ssize_t* rows, Py_ssize_t count) noexcept nogil
    cdef void begin(self) noexcept nogil
    cdef Py_ssize_t block(self) noexcept nogil
    cdef Py_ssize_t members(self) noexcept nogil
    cdef void draw(self) noexcept nogil
    cdef void shuffle_tail(self) noexcept nogil
