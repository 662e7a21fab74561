"""Cryptographic words as a bit generator of numpy's.

:class:`KeyedBits` reads a stream of words, in blocks, for ``numpy.random.Generator`` and for
kernels. Whole numbers, permutations and subsets that a generator draws from uniform words are
exact, and so are Poisson samples (:mod:`dpcal._ext.samples`).

A compiled loop cannot stop in the middle of a draw, so a stream that fails gives it words of no
meaning from then on. The lock that every draw holds raises the error at the end of the draw, and
refuses all later ones. Words are made without a line of Python, so that no handler of a signal, such
as Ctrl-C, runs meanwhile.

>>> import numpy as np
>>> generator = np.random.Generator(KeyedBits(bytes(32)))
>>> generator.permutation(5).tolist()
[3, 1, 0, 4, 2]
>>> state = generator.bit_generator.state
>>> first = generator.integers(1_000_000)
>>> generator.bit_generator.state = state
>>> bool(generator.integers(1_000_000) == first)
True
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

import secrets
from threading import Lock

import numpy as np

cdef enum:
    FIRST = 128  # words of the first read; each read has twice as many
    MOST = 8192  # most words of a read: 64 KiB

cdef struct Block:
    const uint64_t* words
    Py_ssize_t at, size
    PyObject* owner
    uint64_t[FIRST] meaningless
    uint64_t filled


def counter_mode(key, block):
    """Return a cipher whose ``update_into`` encrypts from this block of its counter on."""
    # Loading it takes as long as a short run, and runs in floating point need none of it.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CTR(block.to_bytes(16, "big"))).encryptor()


cdef class Gate:
    """The lock of a stream, which lets no draw out of, nor into, a stream that failed."""

    cdef object lock, failure
    cdef bint failed

    def __init__(self):
        self.lock = Lock()

    def __enter__(self):
        self.lock.acquire()
        if self.failed:
            self.lock.release()
            raise RuntimeError(
                "a stream of random words failed before, and gives no more: make a new oracle."
            ) from self.failure

    def __exit__(self, *raised):
        self.lock.release()
        if self.failed:
            raise self.failure

    cdef close(self, error):
        self.failed, self.failure = True, error


cdef class KeyedBits:
    """A bit generator of numpy's over cryptographic words: AES-256 in counter mode, of zeros.

    Parameters
    ----------
    key
        32 secret bytes, for this object alone; None takes them from the operating system.

    Attributes
    ----------
    capsule, lock
        What ``numpy.random.Generator`` takes from a bit generator.
    state
        The number of words that were taken. It is public without the key.
    """

    cdef readonly object capsule
    cdef readonly Gate lock
    cdef object key, cipher, position
    cdef bytearray words
    cdef bitgen_t bits
    cdef Block block

    def __init__(self, key=None):
        if key is None:
            key = secrets.token_bytes(32)
        if not isinstance(key, bytes) or len(key) != 32:
            raise ValueError("key must be 32 bytes, or None for bytes of the operating system.")
        self.key, self.lock = key, Gate()
        self.block.owner = <PyObject*>self
        self.bits.state = &self.block
        self.bits.next_uint64 = self.bits.next_raw = next_word
        self.bits.next_uint32 = next_half
        self.bits.next_double = next_double
        self.capsule = PyCapsule_New(&self.bits, "BitGenerator", NULL)
        self.move_to(0)

    def __reduce__(self):
        raise TypeError("a stream of words cannot be copied: both would give the same words.")

    @property
    def state(self):
        left = self.block.size - self.block.at
        return {"bit_generator": "KeyedBits", "words": self.position - left}

    @state.setter
    def state(self, state):
        with self.lock:
            self.move_to(state["words"])

    cdef move_to(self, position):
        """Go on as if ``position`` >= 0 words had been taken."""
        if not isinstance(position, int) or position < 0:
            raise ValueError(f"position must be a whole number >= 0, got {position!r}.")
        # A block of the cipher is two words.
        self.cipher = counter_mode(self.key, position // 2)
        self.position = position - position % 2
        self.take(position % 2)
        self.block.at = self.block.size

    cdef take(self, Py_ssize_t count):
        """Read the next ``count`` words into the block, over what is left of it."""
        # With room for a last block that this mode does not write.
        cdef bytearray out = bytearray(8 * count + 16)
        if count:
            self.cipher.update_into(bytes(8 * count), out)
            self.position += count
        self.words = out
        self.block.words = <const uint64_t*>PyByteArray_AS_STRING(out)
        self.block.at, self.block.size = 0, count


cdef void refill(Block* block) noexcept with gil:
    try:
        (<KeyedBits>block.owner).take(min(max(2 * block.size, <Py_ssize_t>FIRST), <Py_ssize_t>MOST))
    except BaseException as error:
        (<KeyedBits>block.owner).lock.close(error)
        fill(block)


cdef void fill(Block* block) noexcept nogil:
    """Write pseudo-random words (splitmix64: Steele, Lea and Flood 2014) from a public seed."""
    cdef uint64_t word
    cdef Py_ssize_t i
    for i in range(FIRST):
        block.filled += <uint64_t>0x9E3779B97F4A7C15
        word = block.filled
        word = (word ^ (word >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
        word = (word ^ (word >> 27)) * <uint64_t>0x94D049BB133111EB
        block.meaningless[i] = word ^ (word >> 31)
    block.words, block.at, block.size = block.meaningless, 0, FIRST


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


cdef void words_of(bitgen_t* bits, uint64_t* out, Py_ssize_t count) noexcept nogil:
    """Write the next words of any generator."""
    cdef Block* block = <Block*>bits.state
    cdef Py_ssize_t i, size
    if bits.next_uint64 != next_word:
        for i in range(count):
            out[i] = bits.next_uint64(bits.state)
        return
    while count:
        if block.at == block.size:
            refill(block)
        size = min(block.size - block.at, count)
        memcpy(out, block.words + block.at, size * sizeof(uint64_t))
        block.at += size
        out += size
        count -= size


cdef bitgen_t* bits_of(object generator) except NULL:
    """Return the C interface of a generator, valid while the generator lives."""
    if not isinstance(generator, np.random.Generator):
        raise TypeError(
            "generator must be a numpy.random.Generator, "
            f"got {generator!r} of type {type(generator).__name__}."
        )
    return <bitgen_t*>PyCapsule_GetPointer(generator.bit_generator.capsule, "BitGenerator")
