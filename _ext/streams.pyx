"""Linear recurrences on long rows: the next row of C^-1 z from a few rows that are kept.

Each function works on a range of columns, so that fresh numbers are still in the cache when they
are used. Sums run in a fixed order: results do not depend on how columns are cut into ranges.

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

cdef extern from *:
    """
    

    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
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
    """
    void add_rows(Py_ssize_t, Py_ssize_t, const double*, Py_ssize_t, const Py_ssize_t*,
                  const double*, double*) noexcept nogil

cdef enum:
    BLOCK = 4096

FRESH, RESULT, OWN = 0, 1, 2


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
        What is kept: ``FRESH`` (z), ``RESULT`` (out), or ``OWN``
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
        elif slot >= 0 and keep == 0:
            for i in range(size):
                kept[i] = z[at + i]
        combine(z + at, out + at, buffers, width, start + at, size, scale, weights, rows, terms)
        if slot >= 0:
            for i in range(size):
                buffers[slot * width + start + at + i] = out[at + i] if keep == 1 else kept[i]
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
