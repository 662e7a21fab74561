from numpy.random cimport bitgen_t

from dpcal._ext.gradients cimport ClippedSum
from dpcal._ext.sums cimport Sums


cdef class Sample:
    cdef bitgen_t* bits
    cdef double sampling_probability
    cdef Py_ssize_t n, size, position
    cdef bint shuffled
    cdef Py_ssize_t[::1] rows, order, swaps
    cdef unsigned char[::1] taken
    cdef void begin(self) noexcept nogil
    cdef Py_ssize_t block(self) noexcept nogil
    cdef void draw(self) noexcept nogil
    cdef void shuffle_tail(self) noexcept nogil


cdef class NoisySums:
    cdef ClippedSum kernel
    cdef Sample sample
    cdef Sums sums
    cdef double max_norm, cap, size
    cdef bint proportional
    cdef double bound_between(self, const double* w, const double* v) noexcept nogil
    cdef void take(
        self, const double* w, const double* v, double bound, double[::1] total
    ) noexcept nogil
