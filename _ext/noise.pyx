"""Randomness for kernels, from numpy's bit generators: rounded Gaussian noise and Poisson samples.

Both read the stream of a ``numpy.random.Generator`` exactly as its own methods would, so that plain
numpy can replay a run. The rounded sum of whole numbers and Gaussians is their sum with the rounded
Gaussians. So this noise is post-processing of the Gaussian mechanism, but for the law of the
Gaussians themselves: they are drawn in floating point, by the ziggurat method, and no bound on their
distance from the real-valued Gaussian is known here. That is outside the privacy claim.

>>> import numpy as np
>>> noisy = np.array([10, 20, 30])
>>> add_gaussian(noisy, 200.0, np.random.default_rng(0))
>>> (noisy - np.rint(200 * np.random.default_rng(0).standard_normal(3))).tolist()
[10.0, 20.0, 30.0]
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, isinf, log1p, rint
from libc.stdint cimport int64_t
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
    bitgen_t* bits, double standard_deviation, int64_t* out, Py_ssize_t size
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        out[i] += <int64_t>rint(standard_deviation * random_standard_normal(bits))


def add_gaussian(int64_t[::1] out not None, double standard_deviation, generator):
    """Add independent centred Gaussians, rounded to whole numbers, to ``out``, in place.

    Parameters
    ----------
    out
        Shape (d,).
    standard_deviation
        At least 0, and at most 2^55.
    generator
        Read like ``generator.standard_normal(d)``.
    """
    if not 0 <= standard_deviation <= 2.0**55:
        raise ValueError(
            f"standard_deviation must be a number in [0, 2^55], got {standard_deviation!r}."
        )
    cdef bitgen_t* bits = bits_of(generator)
    if out.shape[0]:
        with generator.bit_generator.lock, nogil:
            add_normals(bits, standard_deviation, &out[0], out.shape[0])
