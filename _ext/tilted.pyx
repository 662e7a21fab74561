"""Counts of participations of several replicas of a record: what they weigh, and their draws.

With counts N of q replicas, rounds weigh exp of the overlaps of the columns of C that they add up. What
rounds from one on weigh is summed over states, from the last round on (:func:`replica_rounds`), and
counts are drawn forward in time with the table of it (:func:`replica_draws`). Where the table holds a
polygon in place of a convex function, every draw carries its weight, which never exceeds the one that
the table promises; a larger one is an error.
"""

import numpy as np

from libc.math cimport INFINITY, exp, log
from numpy.random cimport bitgen_t

from dpcal._ext.keyed cimport bits_of

cdef extern from *:
    """
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(DPCAL_BASELINE)
    /* One copy for each generation of vector instructions, chosen when the module is loaded. */
    #define CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    #else
    #define CLONES
    #endif

    /* Adds what states weigh if so many replicas join that a round has this chance. Without shares
       every state leads to one state. */
    static CLONES void add_joined(int states, const double *restrict now, const int *restrict to,
                                  const double *restrict share, const double *restrict gain,
                                  double chance, double *restrict sum) {
        if (!share) {
            for (int i = 0; i < states; i++)
                sum[i] += to[i] < 0 ? 0.0 : chance * gain[i] * now[to[i] < 0 ? 0 : to[i]];
            return;
        }
        for (int i = 0; i < states; i++) {
            const int k = to[i] < 0 ? 0 : to[i], next = k + (share[i] > 0.0);
            const double value = now[k] + share[i] * (now[next] - now[k]);
            sum[i] += to[i] < 0 ? 0.0 : chance * gain[i] * value;
        }
    }
    """
    void add_joined(int, const double*, const int*, const double*, const double*, double,
                    double*) noexcept nogil

# Relative to weights of one round, which are rounded by about 1e-15.
cdef double ROUNDING = 1e-9
# A sum this small is zero up to rounding.
cdef double SMALLEST = 1e-13
# Logarithms of weights are added before a product of weights could leave the range of a double.
cdef double LEAST = 1e-200


cdef inline double chord(const double* row, Py_ssize_t nodes, double place) noexcept nogil:
    """Value at a place, in units of cells, of the polygon through the values at nodes."""
    cdef Py_ssize_t cell = <Py_ssize_t>place
    if cell >= nodes - 1:
        return row[nodes - 1]
    return row[cell] + (place - cell) * (row[cell + 1] - row[cell])


def replica_rounds(
    const double[:, ::1] now,
    const int[:, ::1] to,
    const double[:, ::1] share,
    const double[:, ::1] gains,
    const double[:, :, ::1] chances,
    const int[:, ::1] free,
    Py_ssize_t end,
    Py_ssize_t epoch,
    double[:, :, ::1] then,
):
    """What rounds from each of several ones on weigh in each state, and in the first state.

    The rounds are ``end - 1``, ``end - 2``, ..., as many as there are ``chances``. What rounds from
    one on weigh, over its weight in the first state, is put into ``then`` in turn, beginning anew
    at its end. The result has the weights in the first state, each over that of the rounds after
    it; from the first of them on that is no number > 0 all are NaN.

    A state is the number of replicas that have joined, the row of ``now`` (0 without epochs), and a
    memory, its column. ``n`` of ``free`` replicas join with ``chances[round, free, n]``, weigh
    ``gains[n, memory]``, and leave the memory ``to[n, memory]``, none if that is negative, or the
    point at a ``share`` of the line from it to the next memory. After the last round of an epoch of
    ``epoch`` rounds none has joined. All numbers are >= 0.
    """
    cdef Py_ssize_t rows = now.shape[0], states = now.shape[1], rounds = chances.shape[0]
    cdef Py_ssize_t r, j, n, i, f, first, row
    cdef bint counted
    cdef const double *before = &now[0, 0]
    cdef const double *part
    cdef double *after
    cdef double scale, inverse
    cdef bint shared = np.any(share)
    scales = np.full(rounds, np.nan)
    cdef double[::1] result = scales
    with nogil:
        for r in range(rounds):
            counted = epoch > 0 and (end - r) % epoch != 0
            after = &then[r % then.shape[0], 0, 0]
            for j in range(rows):
                for i in range(states):
                    after[j * states + i] = 0.0
                first = 0
                while first < states:
                    # Neighboring memories have as many free replicas.
                    f = free[j, first]
                    i = first + 1
                    while i < states and free[j, i] == f:
                        i += 1
                    for n in range(f + 1):
                        row = j + n if counted else 0
                        part = &share[n, first] if shared else NULL
                        if chances[r, f, n] > 0.0:
                            add_joined(
                                <int>(i - first), before + row * states, &to[n, first], part,
                                &gains[n, first], chances[r, f, n], after + j * states + first,
                            )
                    first = i
            scale = after[0]
            if not 0.0 < scale < INFINITY:
                break
            inverse = 1.0 / scale
            for i in range(rows * states):
                after[i] *= inverse
            result[r] = scale
            before = after
    return scales


def replica_draws(
    const double[:, :, ::1] table,
    const Py_ssize_t[::1] places,
    const double[::1] norms,
    const double[:, :, ::1] chances,
    const Py_ssize_t[::1] chances_of,
    const double[:, :, ::1] gains,
    const Py_ssize_t[::1] gains_of,
    const int[:, ::1] to,
    const int[:, ::1] free,
    tuple sizes,
    tuple walk,
    const Py_ssize_t[::1] first,
    object generator,
):
    """Return drawn counts, shape (rounds, draws), and logarithms of what they weigh, shape (draws,).

    The weights are over the product of the norms, at most 1 up to rounding.

    Parameters
    ----------
    table, places, norms
        What rounds from one on weigh, of shape (rows, joined, windows times nodes), over the first
        state; the row of each round and of the end; and the first state's weight over that of the
        rounds after it, shape (rounds,).
    chances, chances_of
        Probability that ``n`` of ``f`` free replicas join, at ``[kind, f, n]``, and each round's kind.
    gains, gains_of
        What n participations weigh after a window, at ``[kind, n, window]``, and each round's kind.
    to
        Window after n participations, at ``[n, window]``; negative for none.
    free
        Free replicas, shape (joined, windows).
    sizes
        Rounds of an epoch or 0, and nodes of the grid of sums or 1.
    walk
        For a sum S, which becomes ``decay S + n`` while a round has the mean ``scale S + n``: decay,
        scale, 1 / sigma^2 and cells for each unit of S.
    first
        Window of each draw before the first round.
    """
    cdef Py_ssize_t rounds = norms.shape[0], most = to.shape[0], draws = first.shape[0]
    cdef Py_ssize_t t, d, n, f, j, w, k, pick, free_now, epoch = sizes[0], nodes = sizes[1]
    cdef double decay = walk[0], scale = walk[1], precision = walk[2], per_cell = walk[3]
    cdef bitgen_t *bits = bits_of(generator)
    cdef double s, total, origin, threshold, ratio, power, step, worst = 1.0
    cdef bint last, usual
    counts = np.empty((rounds, draws))
    weights = np.zeros(draws)
    cdef double[:, ::1] out = counts
    cdef double[::1] log_weight = weights, weight = np.ones(draws), state = np.zeros(draws)
    cdef Py_ssize_t[::1] window = np.array(first), joined = np.zeros(draws, dtype=np.intp)
    cdef double[::1] squares = np.exp(0.5 * precision * np.arange(most) ** 2.0)
    cdef double[:, ::1] terms = np.zeros((2, most))
    cdef const double *now
    cdef const double *ahead
    cdef double *each
    with generator.bit_generator.lock, nogil:
        for t in range(rounds):
            last = epoch > 0 and (t + 1) % epoch == 0
            origin = 0.0
            for d in range(draws):
                s, w, j = state[d], window[d], joined[d]
                # Most draws are in the first state: compute its terms once.
                usual = s == 0.0 and w == 0 and j == 0
                each = &terms[0 if usual else 1, 0]
                f = free[j, w]
                if not usual or origin == 0.0:
                    total = 0.0
                    power = exp(0.5 * precision * scale * s * scale * s)
                    step = exp(precision * scale * s)
                    for n in range(f + 1):
                        k = to[n, w]
                        each[n] = chances[chances_of[t], f, n]
                        if k < 0 or each[n] == 0.0:
                            each[n] = 0.0
                        else:
                            ahead = &table[
                                places[t + 1], j + n if epoch > 0 and not last else 0, k * nodes
                            ]
                            if nodes > 1:
                                each[n] *= power * squares[n] * chord(
                                    ahead, nodes, (decay * s + n) * per_cell
                                )
                            else:
                                each[n] *= gains[gains_of[t], n, w] * ahead[0]
                        power *= step
                        total += each[n]
                    if usual:
                        origin = total
                else:
                    total = origin
                now = &table[places[t], j, w * nodes]
                ratio = total / (norms[t] * (chord(now, nodes, s * per_cell) if s > 0.0 else now[0]))
                worst = max(worst, ratio)
                weight[d] *= ratio
                if weight[d] < LEAST:
                    log_weight[d] += log(weight[d])
                    weight[d] = 1.0
                threshold = bits.next_double(bits.state) * total
                pick = 0
                while pick < f:
                    threshold -= each[pick]
                    if threshold < 0.0:
                        break
                    pick += 1
                # Rounding may pass the last possible count.
                while each[pick] == 0.0:
                    pick -= 1
                out[t, d] = pick
                window[d] = to[pick, w]
                joined[d] = j + pick if epoch > 0 and not last else 0
                if nodes > 1:
                    s = decay * s + pick
                    state[d] = 0.0 if s < SMALLEST else s
        for d in range(draws):
            log_weight[d] += log(weight[d])
    if not worst < 1.0 + ROUNDING:
        raise ArithmeticError(f"A weight exceeds its bound by a factor of {worst:.6g}.")
    return counts, weights
