"""Cryptographic words as a bit generator of numpy's, and Poisson samples that are exact.

:class:`KeyedBits` reads a stream of words, in blocks, for ``numpy.random.Generator`` and for
kernels. Whole numbers, permutations and subsets that a generator draws from uniform words are
exact. Poisson samples are made from coins of 126 bits (``gaps.h``), without floating point.

>>> import numpy as np
>>> from dpcal.optim.boundary.seeds import KeyStream
>>> generator = np.random.Generator(KeyedBits(KeyStream(bytes(32))))
>>> generator.permutation(5).tolist()
[3, 1, 0, 4, 2]
>>> state = generator.bit_generator.state
>>> first = generator.integers(1_000_000)
>>> generator.bit_generator.state = state
>>> bool(generator.integers(1_000_000) == first)
True
"""

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t, uint32_t, uint64_t
from numpy.random cimport bitgen_t

from threading import Lock

cdef extern from "gaps.h":
    ctypedef long long wide "dpcal_wide"
    ctypedef struct Gaps "dpcal_gaps":
        double sampling_probability
        int64_t n
        int digits
        wide beyond
        wide* coins
    void prepare "dpcal_gaps_prepare"(
        Gaps* gaps, double sampling_probability, int64_t n
    ) noexcept nogil

cdef enum:
    BLOCK = 1024  # words that are read at once: 8 KiB

cdef struct Block:
    const uint64_t* words
    Py_ssize_t at, size
    Gaps gaps
    PyObject* owner


cdef class KeyedBits:
    """A bit generator of numpy's over cryptographic words.

    Parameters
    ----------
    stream
        A :class:`dpcal.optim.boundary.seeds.KeyStream`, for this object alone.

    Attributes
    ----------
    capsule, lock
        What ``numpy.random.Generator`` takes from a bit generator.
    state
        The number of words that were taken. It is public without the key.
    """

    cdef readonly object capsule, lock
    cdef object stream
    cdef const uint64_t[::1] words
    cdef bitgen_t bits
    cdef Block block

    def __init__(self, stream):
        self.stream, self.lock = stream, Lock()
        self.block.owner = <PyObject*>self
        self.block.gaps.sampling_probability = 0
        self.bits.state = &self.block
        self.bits.next_uint64 = self.bits.next_raw = next_word
        self.bits.next_uint32 = next_half
        self.bits.next_double = next_double
        self.capsule = PyCapsule_New(&self.bits, "BitGenerator", NULL)
        self.take(0)

    @property
    def state(self):
        left = self.block.size - self.block.at
        return {"bit_generator": "KeyedBits", "words": self.stream.position - left}

    @state.setter
    def state(self, state):
        self.stream.move_to(state["words"])
        self.take(0)

    cdef take(self, Py_ssize_t count):
        """Read the next ``count`` words into the block, over what is left of it."""
        self.words = self.stream.words(count)
        self.block.words = &self.words[0] if count else NULL
        self.block.at, self.block.size = 0, count


cdef void refill(Block* block) noexcept with gil:
    (<KeyedBits>block.owner).take(BLOCK)


cdef inline uint64_t word(Block* block) noexcept nogil:
    if block.at == block.size:
        refill(block)
    block.at += 1
    return block.words[block.at - 1]


cdef uint64_t next_word(void* state) noexcept nogil:
    return word(<Block*>state)


cdef uint32_t next_half(void* state) noexcept nogil:
    return <uint32_t>(word(<Block*>state) >> 32)


cdef double next_double(void* state) noexcept nogil:
    return (word(<Block*>state) >> 11) * (1.0 / 9007199254740992.0)


def shares_of_coins(double sampling_probability, int64_t n):
    """Return P(G >= 2^k) and P(digit i of G is 1) for i < k, of a gap G, in units of 2^-128.

    The sampling probability is in (0, 1), n at least 1, and 2^k the first power of two that n does
    not exceed.
    """
    cdef Gaps gaps
    prepare(&gaps, sampling_probability, n)
    return _whole(gaps.beyond), [_whole(gaps.coins[digit]) for digit in range(gaps.digits)]


cdef _whole(wide share):
    return (int(<uint64_t>(share >> 64)) << 64) + int(<uint64_t>share)


cdef bint is_keyed(bitgen_t* bits) noexcept nogil:
    """Return whether words are cryptographic, so that :func:`keyed_rows` may read them."""
    return bits.next_uint64 == next_word


cdef Py_ssize_t keyed_rows(
    bitgen_t* bits,
    double sampling_probability,
    Py_ssize_t n,
    Py_ssize_t* position,
    Py_ssize_t* rows,
    Py_ssize_t capacity,
) noexcept nogil:
    """See :func:`dpcal._ext.noise.next_rows`: the same, for a probability below 1, exactly."""
    cdef Block* block = <Block*>bits.state
    cdef Gaps* gaps = &block.gaps
    cdef Py_ssize_t count = 0
    cdef int64_t at = position[0], gap
    cdef int digit, left = 0
    cdef uint64_t pool = 0
    if gaps.sampling_probability != sampling_probability or gaps.n != n:
        prepare(gaps, sampling_probability, n)
    while count < capacity and at < n:
        if lands(block, gaps.beyond, &pool, &left):
            at = n
            break
        gap = 0
        for digit in range(gaps.digits):
            gap |= <int64_t>lands(block, gaps.coins[digit], &pool, &left) << digit
        if gap >= n - at:
            at = n
            break
        at += gap
        rows[count] = at
        count += 1
        at += 1
    position[0] = at
    return count


cdef bint lands(Block* block, wide share, uint64_t* pool, int* left) noexcept nogil:
    """Toss a coin that lands with probability ``share``, in units of 2^-128.

    Eight bits decide it, but for one toss in 256, which takes two more words.
    """
    cdef uint64_t first, top = <uint64_t>(share >> 120) & 255
    cdef uint64_t high, low
    if not left[0]:
        pool[0] = word(block)
        left[0] = 8
    first = pool[0] & 255
    pool[0] >>= 8
    left[0] -= 1
    if first != top:
        return first < top
    high, low = <uint64_t>(share >> 56), <uint64_t>(share << 8)
    first = word(block)
    if first != high:
        return first < high
    return word(block) < low
