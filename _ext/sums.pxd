from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

from dpcal._ext.discrete cimport DiscreteTable, TERMS


cdef class Sums:
    cdef object generator
    cdef readonly object lock
    cdef readonly double noise_multiplier
    cdef bitgen_t* bits
    cdef DiscreteTable table
    cdef int64_t[::1] whole
    cdef double sigma
    cdef int terms
    cdef int64_t[TERMS + 1] factors
    cdef double clip(self, double bound, Py_ssize_t size) noexcept nogil
    cdef void begin(self, double bound, double* total, Py_ssize_t size) noexcept nogil
    cdef void finish(self, double bound, double* total, Py_ssize_t size) noexcept nogil
    cdef void add_noise(self, double sigma, int64_t* whole, Py_ssize_t size) noexcept nogil
    cdef void correlate(
        self, double bound, double* total, const int64_t* row, int digits, Py_ssize_t size
    ) noexcept nogil
    cdef double norm(
        self, double bound, const double* total, const double* offset, Py_ssize_t size
    ) noexcept nogil
