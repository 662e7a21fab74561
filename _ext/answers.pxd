from libc.stdint cimport int64_t

from dpcal._ext.gradients cimport ClippedSum
from dpcal._ext.samples cimport Sample
from dpcal._ext.sums cimport Sums


cdef class Records:
    cdef ClippedSum kernel
    cdef const double[::1] strengths
    cdef double[::1] w, v, total
    cdef double summed  # bound of a sum of all records at w that is in total; -1 for none
    cdef Py_ssize_t spell
    cdef vectors(self, Py_ssize_t count)
    cdef void place(self, const double* w) noexcept nogil
    cdef int work(self, Py_ssize_t read) except -1 nogil


cdef class Slot:
    cdef Records records
    cdef public Sums sums
    cdef readonly object lock
    cdef Sample sample
    cdef double max_norm, cap, size
    cdef bint proportional, everyone
    cdef bint draws(self) except -1
    cdef bint take_rows(self, rows) except -1
    cdef bint take(
        self,
        const double* w,
        const double* v,
        double* out,
        const int64_t* row,
        int digits,
    ) except -1 nogil
    cdef double bound_between(self, const double* w, const double* v) noexcept nogil
    cdef bint sum_at(self, const double* w, const double* v, double bound) except -1 nogil
