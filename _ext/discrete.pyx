"""Discrete Gaussian numbers from uniform bits: a search in a table of cumulative probabilities.

The table holds P(X <= x) in units of 2^-128. A search makes as many comparisons as the table has
bits of length, whatever it finds: neither the instructions nor their number depend on the number
that is drawn, but for one search in 2^50 that needs the lower half of the table. What it reads lies
within 16 KiB, which stay in a processor's first cache.

>>> import numpy as np
>>> half = np.array([1 << 63], dtype=np.uint64)         # P(X <= 0) = 1/2: a fair coin
>>> coins = np.zeros(4, dtype=np.int64)
>>> bits = np.array([0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], dtype=np.uint64)
>>> add_from_table(bits, bits, half, np.zeros(1, dtype=np.uint64), 0, 3, coins)
1
>>> coins.tolist()
[0, 0, 3, 3]

The third word equals the table's, so that one word of the reserve was used.
"""

from libc.stdint cimport int64_t, uint64_t

cdef extern from "search.h":
    enum:
        LANES "DPCAL_LANES"  # searches side by side: their comparisons do not wait for each other
    void search "dpcal_search"(
        const uint64_t* words, const uint64_t* high, int64_t m, int64_t* places
    ) noexcept nogil


def add_from_table(
    const uint64_t[::1] bits not None,
    const uint64_t[::1] reserve not None,
    const uint64_t[::1] high not None,
    const uint64_t[::1] low not None,
    int64_t least,
    int64_t factor,
    int64_t[::1] out not None,
):
    """Add ``factor`` times a number drawn from a table to each element of ``out``, in place.

    Parameters
    ----------
    bits
        Uniform words, one for each element of ``out``.
    reserve
        Uniform words for the searches that the first 64 bits do not decide.
    high, low
        Upper and lower words of P(X <= least + j) in units of 2^-128, for j = 0, 1, ...; in
        increasing order. Their number is a power of two less one.
    least
        The smallest number.
    factor
        What numbers are multiplied with.
    out
        Added to.

    Returns
    -------
    int
        How many words of the reserve were used.

    Raises
    ------
    ValueError
        If the shapes do not fit, or if the reserve is used up.
    """
    cdef Py_ssize_t n = out.shape[0], m = high.shape[0], i = 0, used = 0
    cdef Py_ssize_t place
    cdef int64_t[LANES] places
    cdef bint tied
    if bits.shape[0] < n or low.shape[0] != m or m < 1 or m & (m + 1):
        raise ValueError(
            "bits must hold a word for each number, high and low the same number of words, a power "
            f"of two less one; got {bits.shape[0]} words for {n} numbers, and tables of {m} and "
            f"{low.shape[0]}."
        )
    with nogil:
        while i + LANES <= n:
            search(&bits[i], &high[0], m, places)
            tied = False
            for place in range(LANES):
                # Entry number 0 stands for "none" too: such a tie is looked at, and found to be none.
                tied |= high[places[place] - (places[place] > 0)] == bits[i + place]
            if tied:
                for place in range(LANES):
                    if places[place] > 0 and high[places[place] - 1] == bits[i + place]:
                        places[place] = _settled(
                            bits[i + place], reserve, &high[0], &low[0], places[place], &used
                        )
            for place in range(LANES):
                out[i + place] += factor * (least + places[place])
            i += LANES
        while i < n:
            place = _search_one(bits[i], &high[0], m)
            if place > 0 and high[place - 1] == bits[i]:
                place = _settled(bits[i], reserve, &high[0], &low[0], place, &used)
            out[i] += factor * (least + place)
            i += 1
    if used > reserve.shape[0]:
        raise ValueError(f"reserve must hold more words, got {reserve.shape[0]} for {used}.")
    return used


cdef inline Py_ssize_t _search_one(
    uint64_t word, const uint64_t* high, Py_ssize_t m
) noexcept nogil:
    """Return how many of ``high`` are at most a word."""
    cdef Py_ssize_t step = (m + 1) >> 1, place = 0
    while step:
        place += step & -<Py_ssize_t>(high[place + step - 1] <= word)
        step >>= 1
    return place


cdef Py_ssize_t _settled(
    uint64_t word,
    const uint64_t[::1] reserve,
    const uint64_t* high,
    const uint64_t* low,
    Py_ssize_t place,
    Py_ssize_t* used,
) noexcept nogil:
    """Return the place of a word that equals upper words, by the 64 bits that come after it."""
    cdef uint64_t rest
    used[0] += 1
    if used[0] > reserve.shape[0]:
        return place
    rest = reserve[used[0] - 1]
    while place > 0 and high[place - 1] == word and rest < low[place - 1]:
        place -= 1
    return place
