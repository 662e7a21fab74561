"""Randomness for kernels, from numpy's bit generators: Gaussian noise and Poisson samples.

Both read the stream of a ``numpy.random.Generator`` exactly as its own methods would, so that plain
numpy can replay a run. These generators are not cryptographic, and Gaussian noise in floating point
is not the real-valued Gaussian of the theorems (Mironov 2012): attacks on either are outside the
privacy claim.

>>> import numpy as np
>>> noisy = np.zeros(3)
>>> add_gaussian(noisy, 2.0, np.random.default_rng(0))
>>> bool((noisy == 2 * np.random.default_rng(0).standard_normal(3)).all())
True
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, isinf, log1p
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_exponential, random_standard_normal

from dpcal._ext.keyed cimport is_keyed, keyed_rows

import numpy as np

cdef bitgen_t* bits_of(object generator) except NULL:
    """Return the C interface of a generator, valid while the generator lives."""
    if not isinstance(generator, np.random.Generator):
        raise TypeError(
            "generator must be a numpy.random.Generator, "
            f"got {generator!r} of type {type(generator).__name__}."
        )
    return <bitgen_t*>PyCapsule_GetPointer(generator.bit_generator.capsule, "BitGenerator")


cdef Py_ssize_t next_rows(
    bitgen_t* bits,
    double sampling_probability,
    Py_ssize_t n,
    Py_ssize_t* position,
    Py_ssize_t* rows,
    Py_ssize_t capacity,
) noexcept nogil:
    """Write the next sampled rows at or after ``position``, at most ``capacity``; return how many.

    With E standard exponential and rate = -log(1 - q), P(floor(E / rate) >= k) = exp(-k rate) =
    (1 - q)^k: the gap before the next sampled record. The gap is compared as a double before it
    becomes an integer, so that none is too large. Cryptographic bits give exact gaps instead. The
    sample is complete when fewer than ``capacity`` rows come back.
    """
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t at = position[0]
    cdef double gap, rate = INFINITY
    if sampling_probability < 1:
        if is_keyed(bits):
            return keyed_rows(bits, sampling_probability, n, position, rows, capacity)
        rate = -log1p(-sampling_probability)
    while count < capacity and at < n:
        if not isinf(rate):
            gap = random_standard_exponential(bits) / rate
            if gap >= n - at:
                at = n
                break
            at += <Py_ssize_t>gap
        rows[count] = at
        count += 1
        at += 1
    position[0] = at
    return count


cdef void add_normals(
    bitgen_t* bits, double standard_deviation, double* out, Py_ssize_t size
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        out[i] += standard_deviation * random_standard_normal(bits)


def add_gaussian(double[::1] out not None, double standard_deviation, generator):
    """Add independent centred Gaussians to ``out``, in place.

    Parameters
    ----------
    out
        Shape (d,).
    standard_deviation
        At least 0.
    generator
        Read like ``generator.standard_normal(d)``.
    """
    cdef bitgen_t* bits = bits_of(generator)
    if out.shape[0]:
        with generator.bit_generator.lock, nogil:
            add_normals(bits, standard_deviation, &out[0], out.shape[0])
