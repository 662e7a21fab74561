ctypedef struct Record:
    const double* scores
    const double* tail  # parameters behind the weights
    double target
    Py_ssize_t row


cdef class Loss:
    cdef readonly Py_ssize_t scores, tail
    cdef double value(self, const Record* at) noexcept nogil
    cdef void slopes(self, const Record* at, double* out) noexcept nogil


cdef class PointLoss(Loss):
    cdef double width
    cdef double loss_at(self, double score, double target) noexcept nogil
    cdef double slope(self, double score, double target) noexcept nogil
