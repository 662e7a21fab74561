"""Linear recurrences on long rows: the next row of C^-1 z from a few rows that are kept.

Each function works on a range of columns, so that fresh numbers are still in the cache when they
are used. Sums run in a fixed order: results do not depend on how columns are cut into ranges, nor
on how many steps share one reading of the kept rows.

>>> import numpy as np
>>> buffers, out = np.zeros((1, 3)), np.empty(3)
>>> one, first = np.array([-0.5]), np.array([0])
>>> for z in np.eye(3):
...     mix(z, out, buffers, 0, 1.0, one, first, 0, FRESH, 1.0, one)
...     print(out.tolist())
[1.0, 0.0, 0.0]
[-0.5, 1.0, 0.0]
[0.0, -0.5, 1.0]
"""

from libc.math cimport rint
from libc.stdint cimport int64_t

cdef extern from *:
    """


    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(DPCAL_BASELINE)
    /* One copy for each generation of vector instructions, chosen when the module is loaded. */
    #define CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    #else
    #define CLONES
    #endif

    /* Add N rows, which stream from memory side by side, in their order. */
    #define ADD_ROWS(N)                                                                          \\
        static CLONES void add_##N(Py_ssize_t size, const double *buffers, Py_ssize_t width,     \\
                                   const Py_ssize_t *rows, const double *weights, double *out) { \\
            const double *row[N];                                                                \\
            double weight[N];                                                                    \\
            for (int j = 0; j < N; j++) {                                                        \\
                row[j] = buffers + rows[j] * width;                                              \\
                weight[j] = weights[j];                                                          \\
            }                                                                                    \\
            for (Py_ssize_t i = 0; i < size; i++) {                                              \\
                double sum = out[i];                                                             \\
                for (int j = 0; j < N; j++) sum += weight[j] * row[j][i];                        \\
                out[i] = sum;                                                                    \\
            }                                                                                    \\
        }
    ADD_ROWS(1)
    ADD_ROWS(2)
    ADD_ROWS(3)
    ADD_ROWS(4)
    ADD_ROWS(5)

    /* Most rows that are read at once: more are slower here, and so are single ones. */
    #define TOGETHER 5

    static void add_rows(Py_ssize_t count, Py_ssize_t size, const double *buffers, Py_ssize_t width,
                         const Py_ssize_t *rows, const double *weights, double *out) {
        for (; count >= TOGETHER; count -= TOGETHER, rows += TOGETHER, weights += TOGETHER)
            add_5(size, buffers, width, rows, weights, out);
        switch (count) {
        case 1: add_1(size, buffers, width, rows, weights, out); break;
        case 2: add_2(size, buffers, width, rows, weights, out); break;
        case 3: add_3(size, buffers, width, rows, weights, out); break;
        case 4: add_4(size, buffers, width, rows, weights, out); break;
        }
    }

    #if defined(__clang__)
    #define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
    #elif defined(__GNUC__)
    #define INDEPENDENT _Pragma("GCC ivdep")
    #else
    #define INDEPENDENT
    #endif

    /* Add N rows, oldest first, to the sums of four successive steps, which are other rows. The
       last row has weights[0] in the first step, weights[1] in the second, and so on. */
    #define ADD_TO_FOUR(N)                                                                       \\
        static CLONES void add_to_four_##N(Py_ssize_t size, double *buffers, Py_ssize_t width,   \\
                                           const Py_ssize_t *rows, const double *weights,        \\
                                           const Py_ssize_t *sums) {                             \\
            const double *row[N];                                                                \\
            double weight[N + 3];                                                                \\
            double *a = buffers + sums[0] * width, *b = buffers + sums[1] * width;               \\
            double *c = buffers + sums[2] * width, *d = buffers + sums[3] * width;               \\
            for (int j = 0; j < N; j++) row[j] = buffers + rows[j] * width;                      \\
            for (int j = 0; j < N + 3; j++) weight[j] = weights[j];                              \\
            INDEPENDENT                                                                          \\
            for (Py_ssize_t i = 0; i < size; i++) {                                              \\
                double p = a[i], q = b[i], r = c[i], s = d[i];                                   \\
                for (int j = 0; j < N; j++) {                                                    \\
                    double x = row[j][i];                                                        \\
                    p += weight[N - 1 - j] * x;                                                  \\
                    q += weight[N - j] * x;                                                      \\
                    r += weight[N - j + 1] * x;                                                  \\
                    s += weight[N - j + 2] * x;                                                  \\
                }                                                                                \\
                a[i] = p;                                                                        \\
                b[i] = q;                                                                        \\
                c[i] = r;                                                                        \\
                d[i] = s;                                                                        \\
            }                                                                                    \\
        }
    ADD_TO_FOUR(1)
    ADD_TO_FOUR(2)
    ADD_TO_FOUR(3)
    ADD_TO_FOUR(4)
    ADD_TO_FOUR(5)

    /* Add count rows of a ring of slots, from slot first on, to the sums of `block` = 1 or 4 steps,
       of which the last row has weights[0], weights[1], ... */
    static void add_kept(Py_ssize_t count, Py_ssize_t size, double *buffers, Py_ssize_t width,
                         Py_ssize_t slots, Py_ssize_t first, const double *weights,
                         Py_ssize_t block, const Py_ssize_t *sums) {
        while (count > 0) {
            Py_ssize_t rows[TOGETHER], together = count < TOGETHER ? count : TOGETHER;
            count -= together;
            for (Py_ssize_t j = 0; j < together; j++) rows[j] = (first + j) % slots;
            first += together;
            if (block == 1) {
                double falling[TOGETHER];
                for (Py_ssize_t j = 0; j < together; j++)
                    falling[j] = weights[count + together - 1 - j];
                add_rows(together, size, buffers, width, rows, falling, buffers + sums[0] * width);
                continue;
            }
            switch (together) {
            case 1: add_to_four_1(size, buffers, width, rows, weights + count, sums); break;
            case 2: add_to_four_2(size, buffers, width, rows, weights + count, sums); break;
            case 3: add_to_four_3(size, buffers, width, rows, weights + count, sums); break;
            case 4: add_to_four_4(size, buffers, width, rows, weights + count, sums); break;
            case 5: add_to_four_5(size, buffers, width, rows, weights + count, sums); break;
            }
        }
    }
    """
    void add_rows(Py_ssize_t, Py_ssize_t, const double*, Py_ssize_t, const Py_ssize_t*,
                  const double*, double*) noexcept nogil
    void add_kept(Py_ssize_t, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t,
                  const double*, Py_ssize_t, const Py_ssize_t*) noexcept nogil

cdef enum:
    BLOCK = 4096

FRESH, RESULT, OWN = 0, 1, 2


def convolve(
    const double[::1] z not None,
    double[::1] out not None,
    double[:, ::1] buffers not None,
    Py_ssize_t start,
    double scale,
    const double[::1] weights not None,
    Py_ssize_t step,
    Py_ssize_t block,
    int keep,
):
    """Write ``sum_k weights[k - 1] x_{step - k} + scale z`` into ``out``, oldest row first.

    Row x_t is kept in slot t modulo n of ``buffers``. With ``block`` 4, the first of four steps
    (their numbers are 4 i to 4 i + 3) reads what is kept for all of them: it replaces the four
    oldest rows, which no later block needs, by what rows before the block add to each step, and a
    step then adds the few rows of its own block. Either way the sum has the same order and thus
    the same bits.

    Parameters
    ----------
    z, out
        Shape (m,), for columns start to start + m; both may be the same array.
    buffers
        Shape (n, d). Steps must come in turn; rows before step 0 are zero whatever it holds, and
        other rows that it has not seen are taken as found.
    start
        First column.
    scale, weights
        What is summed; weights of shape (n,).
    step
        From 0.
    block
        1, or 4 if n >= 4.
    keep
        What x is: ``FRESH`` (z) or ``RESULT`` (out).
    """
    cdef Py_ssize_t m = z.shape[0]
    cdef Py_ssize_t slots = buffers.shape[0]
    if out.shape[0] != m or not 0 <= start <= buffers.shape[1] - m:
        raise ValueError(f"z, out and buffers must share columns {start} to {start + m}.")
    if weights.shape[0] != slots:
        raise ValueError(f"weights must have shape ({slots},), got ({weights.shape[0]},).")
    if step < 0 or not (block == 1 or (block == 4 and slots >= 4)) or not 0 <= keep <= 1:
        raise ValueError(f"step, block or keep is out of range, got {step}, {block} and {keep}.")
    if m:
        with nogil:
            convolve_columns(
                &z[0], &out[0], &buffers[0, start] if slots else NULL, buffers.shape[1], m,
                scale, &weights[0] if slots else NULL, slots, step, block, keep,
            )


cdef void convolve_columns(
    const double* z,
    double* out,
    double* buffers,
    Py_ssize_t width,
    Py_ssize_t m,
    double scale,
    const double* weights,
    Py_ssize_t slots,
    Py_ssize_t step,
    Py_ssize_t block,
    int keep,
) noexcept nogil:
    cdef Py_ssize_t place = step % block
    cdef Py_ssize_t slot = step % slots if slots else 0
    cdef Py_ssize_t size, i
    cdef Py_ssize_t at = 0
    cdef double fresh
    cdef double* row
    while at < m:
        size = m - at if m - at < BLOCK else BLOCK
        if slots:
            if place == 0:
                open_block(buffers + at, width, size, weights, slots, step, block)
            add_kept(place, size, buffers + at, width, slots, step - place, weights, 1, &slot)
            row = buffers + slot * width + at
            for i in range(size):
                fresh = z[at + i]
                out[at + i] = row[i] + scale * fresh
                row[i] = out[at + i] if keep == 1 else fresh
        else:
            for i in range(at, at + size):
                out[i] = scale * z[i]
        at += size


cdef void open_block(
    double* buffers,
    Py_ssize_t width,
    Py_ssize_t size,
    const double* weights,
    Py_ssize_t slots,
    Py_ssize_t step,
    Py_ssize_t block,
) noexcept nogil:
    """Replace the oldest rows by what the rows before ``step`` add to each row of its block."""
    cdef Py_ssize_t[4] sums
    cdef Py_ssize_t i, j, first
    cdef double* row
    # Row step - slots + j, of lag ``slots`` in the block's j-th step, lies at the place of its sum.
    for j in range(block):
        sums[j] = (step + j) % slots
        row = buffers + sums[j] * width
        for i in range(size):
            row[i] = row[i] if step + j >= slots else 0.0
    for j in range(block):
        row = buffers + sums[j] * width
        for i in range(size):
            row[i] = weights[slots - 1] * row[i]
        add_kept(block - 1 - j, size, buffers, width, slots, step + j + 1,
                 weights + slots - block + j, 1, &sums[j])
    first = max(0, step - slots + block)
    add_kept(step - first, size, buffers, width, slots, first, weights, block, sums)


def mix(
    const double[::1] z not None,
    double[::1] out not None,
    double[:, ::1] buffers not None,
    Py_ssize_t start,
    double scale,
    const double[::1] weights not None,
    const Py_ssize_t[::1] rows not None,
    Py_ssize_t slot,
    int keep,
    double keep_scale,
    const double[::1] keep_weights not None,
):
    """Write ``scale z + sum_i weights[i] buffers[rows[i]]`` into ``out``, and keep one row.

    Parameters
    ----------
    z, out
        Shape (m,), for columns start to start + m; both may be the same array.
    buffers
        Shape (slots, d), the kept rows.
    start
        First column.
    scale, weights, rows
        What is summed; ``rows`` in [0, slots).
    slot
        Row of ``buffers`` that is overwritten, or -1 for none.
    keep
        What is kept: ``FRESH`` (z) or ``OWN``
        (``keep_scale z + sum_i keep_weights[i] buffers[rows[i]]``).
    keep_scale, keep_weights
        For ``OWN`` only.
    """
    cdef Py_ssize_t m = z.shape[0]
    cdef Py_ssize_t terms = weights.shape[0]
    cdef Py_ssize_t slots = buffers.shape[0]
    cdef Py_ssize_t i
    if out.shape[0] != m or not 0 <= start <= buffers.shape[1] - m:
        raise ValueError(f"z, out and buffers must share columns {start} to {start + m}.")
    if rows.shape[0] != terms or (keep == 2 and keep_weights.shape[0] != terms):
        raise ValueError(f"rows and weights must have one length, got {rows.shape[0]} and {terms}.")
    if not -1 <= slot < slots:
        raise ValueError(f"slot must be in [-1, {slots - 1}], got {slot}.")
    for i in range(terms):
        if not 0 <= rows[i] < slots:
            raise ValueError(f"rows must be in [0, {slots - 1}], got {rows[i]}.")
    if m:
        with nogil:
            mix_columns(
                &z[0], &out[0], &buffers[0, 0] if slots else NULL, buffers.shape[1], start, m,
                scale, &weights[0] if terms else NULL, &rows[0] if terms else NULL, terms, slot,
                keep, keep_scale, &keep_weights[0] if keep == 2 and terms else NULL,
            )


def lift(
    int64_t[::1] row not None,
    double[::1] out not None,
    double[:, ::1] buffers not None,
    const double[::1] weights not None,
    const Py_ssize_t[::1] rows not None,
):
    """Write ``sum_i weights[i] buffers[rows[i]]`` into ``out``, and take it, rounded, from ``row``.

    Parameters
    ----------
    row, out
        Shape (d,).
    buffers
        Shape (slots, d), the kept rows.
    weights, rows
        What is summed; ``rows`` in [0, slots). Sums are below 2^53 in size.
    """
    cdef Py_ssize_t d = row.shape[0], i
    if out.shape[0] != d:
        raise ValueError(f"row and out must have one length, got {d} and {out.shape[0]}.")
    mix(out, out, buffers, 0, 0.0, weights, rows, -1, 0, 0.0, weights[:0])
    for i in range(d):
        row[i] -= <int64_t>rint(out[i])


cdef void mix_columns(
    const double* z,
    double* out,
    double* buffers,
    Py_ssize_t width,
    Py_ssize_t start,
    Py_ssize_t m,
    double scale,
    const double* weights,
    const Py_ssize_t* rows,
    Py_ssize_t terms,
    Py_ssize_t slot,
    int keep,
    double keep_scale,
    const double* keep_weights,
) noexcept nogil:
    cdef double[BLOCK] kept
    cdef Py_ssize_t size, i
    cdef Py_ssize_t at = 0
    while at < m:
        size = m - at if m - at < BLOCK else BLOCK
        if slot >= 0 and keep == 2:
            combine(z + at, kept, buffers, width, start + at, size,
                    keep_scale, keep_weights, rows, terms)
        elif slot >= 0:
            for i in range(size):
                kept[i] = z[at + i]
        combine(z + at, out + at, buffers, width, start + at, size, scale, weights, rows, terms)
        if slot >= 0:
            for i in range(size):
                buffers[slot * width + start + at + i] = kept[i]
        at += size


cdef void combine(
    const double* z,
    double* out,
    const double* buffers,
    Py_ssize_t width,
    Py_ssize_t start,
    Py_ssize_t size,
    double scale,
    const double* weights,
    const Py_ssize_t* rows,
    Py_ssize_t terms,
) noexcept nogil:
    """Sum in the order of the terms."""
    cdef Py_ssize_t i
    for i in range(size):
        out[i] = scale * z[i]
    if terms:
        add_rows(terms, size, buffers + start, width, rows, weights, out)


def leak(
    const double[::1] z not None,
    double[::1] out not None,
    double[:, ::1] buffers not None,
    Py_ssize_t start,
    const double[::1] scales not None,
    const double[::1] decays not None,
):
    """Write ``z - sum_j scales[j] buffers[j]`` into ``out``, then let each buffer decay and add it.

    Parameters
    ----------
    z, out
        Shape (m,), for columns start to start + m; both may be the same array.
    buffers
        Shape (b, d): s_j <- decays[j] s_j + out.
    start
        First column.
    scales, decays
        Shape (b,).
    """
    cdef Py_ssize_t m = z.shape[0]
    cdef Py_ssize_t terms = scales.shape[0]
    cdef Py_ssize_t i, j, size
    cdef Py_ssize_t at = 0
    cdef double scale, decay
    cdef double* row
    if out.shape[0] != m or not 0 <= start <= buffers.shape[1] - m:
        raise ValueError(f"z, out and buffers must share columns {start} to {start + m}.")
    if decays.shape[0] != terms or buffers.shape[0] != terms:
        raise ValueError(f"scales, decays and buffers must have one length, got {terms}.")
    with nogil:
        while at < m:
            size = m - at if m - at < BLOCK else BLOCK
            for i in range(at, at + size):
                out[i] = z[i]
            for j in range(terms):
                row = &buffers[j, start]
                scale = scales[j]
                for i in range(at, at + size):
                    out[i] -= scale * row[i]
            for j in range(terms):
                row = &buffers[j, start]
                decay = decays[j]
                for i in range(at, at + size):
                    row[i] = decay * row[i] + out[i]
            at += size
