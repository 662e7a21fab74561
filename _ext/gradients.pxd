from libc.math cimport fmax, fmin


ctypedef struct Batch:
    const Py_ssize_t* rows
    Py_ssize_t count
    double bound  # on the size of each row's contribution


cdef class PointLoss:
    cdef double value(self, double score, double target) noexcept nogil
    cdef double slope(self, double score, double target) noexcept nogil


cdef class ClippedSum:
    cdef readonly Py_ssize_t n
    cdef readonly Py_ssize_t dimension
    cdef readonly Py_ssize_t stride
    cdef void add(self, const double* w, const double* v, Batch batch, double* total) noexcept nogil
    cdef double loss_sum(self, const double* w, Batch batch) noexcept nogil


cpdef object aligned_zeros(Py_ssize_t size)


cdef inline double clipped_loss(double value, double bound) noexcept nogil:
    """Return a loss in [-bound, bound]; zero for NaN, which would give its record away in a sum."""
    return fmax(-bound, fmin(bound, value)) if value == value else 0.0
