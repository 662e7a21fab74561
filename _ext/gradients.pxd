cdef class PointLoss:
    cdef double value(self, double score, double target) noexcept nogil
    cdef double slope(self, double score, double target) noexcept nogil


cdef class ClippedSum:
    cdef readonly Py_ssize_t n
    cdef readonly Py_ssize_t dimension
    cdef readonly Py_ssize_t stride
    cdef void add(
        self,
        const double* w,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil
    cdef void add_difference(
        self,
        const double* w,
        const double* v,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil
    cdef double loss_sum(
        self,
        const double* w,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_loss,
    ) noexcept nogil


cpdef object aligned_zeros(Py_ssize_t size)
