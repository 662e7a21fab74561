# Inner products and sums of rows of doubles: see rows.h.

ctypedef const double* Row

cdef extern from "rows.h":
    void dpcal_prefetch(const void* address) noexcept nogil
    double dot "dpcal_dot"(const double* a, const double* b, Py_ssize_t size) noexcept nogil
    void many_dots "dpcal_many_dots"(
        const double* table,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        const double* b,
        Py_ssize_t size,
        double* out,
    ) noexcept nogil
    void many_axpys "dpcal_many_axpys"(
        const double* factors,
        const double* table,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double* y,
        Py_ssize_t size,
    ) noexcept nogil
    void four_dots "dpcal_four_dots"(
        Row* x, const Row* next, const double* b, Py_ssize_t size, double* xb
    ) noexcept nogil
    void eight_dots "dpcal_eight_dots"(
        Row* x,
        Row* next,
        const double* b,
        const double* c,
        Py_ssize_t size,
        double* xb,
        double* xc,
    ) noexcept nogil
    void four_axpys "dpcal_four_axpys"(
        const double* factors,
        Row* x,
        Row* next,
        double* y,
        Py_ssize_t size,
    ) noexcept nogil
