# Two primitives for models of scores: see rows.h.

ctypedef const double* Row

cdef extern from "rows.h":
    void dpcal_prefetch(const void* address) noexcept nogil
    void scores_of "dpcal_scores"(
        Row* x, Row* next, Py_ssize_t count, const double* b, Py_ssize_t size, double* out,
        Py_ssize_t step,
    ) noexcept nogil
    void add_rows "dpcal_add_rows"(
        const double* factors, Py_ssize_t step, Row* x, Row* next, Py_ssize_t count, double* y,
        Py_ssize_t size,
    ) noexcept nogil
