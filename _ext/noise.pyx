"""Randomness for kernels, from numpy's bit generators: Gaussian noise and Poisson samples.

Both read the stream of a ``numpy.random.Generator`` exactly as its own methods would, so that plain
numpy can replay a run. These generators are not cryptographic, and Gaussian noise in floating point
is not the real-valued Gaussian of the theorems (Mironov 2012): attacks on either are outside the
privacy claim.

>>> import numpy as np
>>> poisson_sample(5, 1.0, np.random.default_rng(0)).tolist()
[0, 1, 2, 3, 4]
>>> noisy = np.zeros(3)
>>> add_gaussian(noisy, 2.0, np.random.default_rng(0))
>>> bool((noisy == 2 * np.random.default_rng(0).standard_normal(3)).all())
True
"""

cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, isinf, log1p
from libc.string cimport memcpy
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_exponential, random_standard_normal

from dpcal._ext.keyed cimport is_keyed, keyed_rows

import numpy as np

cnp.import_array()

cdef enum:
    BLOCK = 1024


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


def poisson_sample(Py_ssize_t n, double sampling_probability, generator):
    """Return which of ``n`` records are sampled, each independently with the same probability.

    The time is proportional to the size of the sample. Every record's probability is right to an
    absolute error below 2^-50, the granularity of the exponential numbers that the gaps come from.

    Parameters
    ----------
    n
        Number of records, at least 0.
    sampling_probability
        In (0, 1].
    generator
        Read like ``generator.standard_exponential()``, once per gap; not at all when the
        probability is 1.

    Returns
    -------
    numpy.ndarray
        Row numbers in increasing order, dtype ``intp``.
    """
    if not 0 < sampling_probability <= 1:
        raise ValueError(
            f"sampling_probability must be a number in (0, 1], got {sampling_probability!r}."
        )
    cdef bitgen_t* bits = bits_of(generator)
    cdef Py_ssize_t[BLOCK] block
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t count = BLOCK
    parts = []
    with generator.bit_generator.lock:
        while count == BLOCK:
            count = next_rows(bits, sampling_probability, n, &position, block, BLOCK)
            parts.append(taken(block, count))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


cdef object taken(const Py_ssize_t* rows, Py_ssize_t count):
    """Return a copy of row numbers."""
    cdef cnp.npy_intp length = count
    cdef object made = cnp.PyArray_SimpleNew(1, &length, cnp.NPY_INTP)
    memcpy(cnp.PyArray_DATA(<cnp.ndarray>made), rows, count * sizeof(Py_ssize_t))
    return made
