from numpy.random cimport bitgen_t


cdef class Sample:
    cdef bitgen_t* bits
    cdef double rate
    cdef Py_ssize_t n, size, position
    cdef bint shuffled
    cdef Py_ssize_t[::1] rows, order, swaps
    cdef unsigned char[::1] taken
    cdef void begin(self) noexcept nogil
    cdef Py_ssize_t block(self) noexcept nogil
    cdef void draw(self) noexcept nogil
    cdef void shuffle_tail(self) noexcept nogil
