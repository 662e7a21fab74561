from dpcal._ext.losses cimport Loss, PointLoss
from dpcal._ext.rows cimport Row


ctypedef struct Batch:
    const Py_ssize_t* rows
    Py_ssize_t count
    double bound  # on the size of each row's contribution


cdef class ClippedSum:
    cdef readonly Loss loss
    cdef readonly Py_ssize_t n, dimension, stride
    cdef readonly object weights
    cdef PointLoss point
    cdef object owner
    cdef const double* rows
    cdef const double* targets_and_norms
    cdef const double* class_weights
    cdef Py_ssize_t width, padded_row, taken, dual
    cdef double primal_share, dual_share
    cdef bint intercept, joint
    cdef int bind(self) except -1
    cdef Row near(self, Py_ssize_t row) noexcept nogil
    cdef double weight(self, double target) noexcept nogil
    cdef void add(self, const double* w, const double* v, Batch batch, double* total) noexcept nogil
    cdef void points(
        self, double* scores, const double* origin, Batch batch, Py_ssize_t size
    ) noexcept nogil
    cdef void factors(
        self,
        const double* w,
        const double* v,
        double* scores,
        Batch batch,
        Py_ssize_t size,
        double* total,
    ) noexcept nogil
    cdef void clip(
        self, double* out, double norm, double bound, double* primal, double* dual
    ) noexcept nogil
    cdef double loss_sum(self, const double* w, Batch batch) noexcept nogil


cpdef object aligned_zeros(Py_ssize_t size)
