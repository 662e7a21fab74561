from numpy.random cimport bitgen_t


cdef class Sample:
    cdef object generator
    cdef bitgen_t* bits
    cdef double sampling_probability
    cdef Py_ssize_t n, size, position, left, count
    cdef bint shuffled, given
    cdef const Py_ssize_t* rows
    cdef Py_ssize_t[::1] drawn, order, swaps
    cdef unsigned char[::1] taken
    cdef void give(self, const Py_ssize_t* rows, Py_ssize_t count) noexcept nogil
    cdef void begin(self) noexcept nogil
    cdef Py_ssize_t block(self) noexcept nogil
    cdef void draw(self) noexcept nogil
    cdef void shuffle_tail(self) noexcept nogil
