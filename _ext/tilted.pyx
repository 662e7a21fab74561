"""Counts of participations whose law is tilted by a power of a product bound on the likelihood.

For ``B = prod_t (1 - r_t + r_t exp(h_t))``, draws of ``Q B^q`` are Gaussians whose means are C N, for
counts N in {0, ..., q} a round with weights

    W(N) = prod_t Bin(N_t; q, r_t) exp(||C N||^2 / (2 sigma^2) - sum_t N_t b_t / 2).

Counts are drawn forward in time with a table of what later rounds weigh. Where the table holds a
polygon in place of a convex function, every draw carries its weight, which never exceeds the one that
the table promises; a larger one is an error.
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, log
from numpy.random cimport bitgen_t

from dpcal._ext.noise cimport bits_of

# Relative to weights of one round, whose rounding is near 1e-15.
cdef double ROUNDING = 1e-9
# A mean this small is zero up to rounding.
cdef double SMALLEST = 1e-13


cdef inline double chord(const double* table, Py_ssize_t cells, double place) noexcept nogil:
    """Value at a place, in units of cells, of the polygon through a row of a table."""
    cdef Py_ssize_t cell = <Py_ssize_t>place
    if cell >= cells:
        return table[cells]
    return table[cell] + (place - cell) * (table[cell + 1] - table[cell])


cdef inline double weigh(
    const double* factors, Py_ssize_t kinds, const double* ahead, Py_ssize_t cells,
    double per_cell, double before, double left, double precision, double* terms,
) noexcept nogil:
    """Weights of 0, 1, ... participations after a state, and their sum.

    The state adds ``before`` to the mean of the round, and ``left`` of it is left after the round.
    """
    cdef double total = 0.0, power = exp(0.5 * precision * before * before)
    cdef double step = exp(precision * before)
    cdef Py_ssize_t k
    for k in range(kinds):
        terms[k] = factors[k] * power * chord(ahead, cells, (left + k) * per_cell)
        total += terms[k]
        power *= step
    return total


def state_table(
    const double[:, ::1] factors,
    const Py_ssize_t[::1] runs,
    double decay,
    double scale,
    double variance,
    double largest,
    Py_ssize_t cells,
    Py_ssize_t most,
):
    """Upper bounds on what rounds from one on weigh after each state, over what they weigh after 0.

    After a state w, a round of k participations has the mean ``scale w + k``, and the state becomes
    ``decay w + k``. States are ``largest * j / cells``, and ``decay * largest + kinds - 1`` is at
    most ``largest``. ``factors[runs[t], k]`` is Bin(k; q, r_t) exp(k^2 / (2 sigma^2) - k b_t / 2).

    Returns
    -------
    table
        Shape (distinct, cells + 1), first column 1. Weights are convex in the state, and so is
        the polygon through them, above which no weight lies.
    places
        Row of the table for each round and for the end, shape (rounds + 1,). Far from the end,
        rounds share a row: where all entries are within 1e-14 of those of the next round.
    norms
        What rounds from one on weigh after the state 0, over the rounds after it, shape (rounds,);
        infinite if more than ``most`` rows would be distinct.
    """
    cdef Py_ssize_t rounds = runs.shape[0], kinds = factors.shape[1], t, j, last = 0, k, run
    out, sums, at = [np.ones(cells + 1)], np.empty(rounds), np.zeros(rounds + 1, dtype=np.intp)
    cdef double[::1] ahead = out[0], now = np.empty(cells + 1)
    cdef double[::1] norms = sums
    cdef Py_ssize_t[::1] places = at
    # What a state and a number of participations give does not depend on the round.
    cdef double[:, ::1] gain = np.empty((kinds, cells + 1)), share = np.empty((kinds, cells + 1))
    cdef Py_ssize_t[:, ::1] cell = np.empty((kinds, cells + 1), dtype=np.intp)
    cdef double per_cell = cells / largest, before, power, step, place, factor
    cdef bint same, repeated = False
    for j in range(cells + 1):
        before = scale * (largest * j / cells)
        power = exp(0.5 / variance * before * before)
        step = exp(before / variance)
        for k in range(kinds):
            gain[k, j] = power
            power *= step
            place = (decay * (largest * j / cells) + k) * per_cell
            cell[k, j] = min(<Py_ssize_t>place, cells - 1)
            share[k, j] = min(place - cell[k, j], 1.0)
    for t in range(rounds - 1, -1, -1):
        run = runs[t]
        if repeated and run == runs[t + 1]:
            # The same factors and the same row ahead: the same row again.
            norms[t] = norms[t + 1]
            places[t] = last
            continue
        with nogil:
            for j in range(cells + 1):
                now[j] = 0.0
            for k in range(kinds):
                factor = factors[run, k]
                for j in range(cells + 1):
                    place = ahead[cell[k, j]]
                    now[j] += factor * gain[k, j] * (
                        place + share[k, j] * (ahead[cell[k, j] + 1] - place)
                    )
            norms[t] = now[0]
            same = True
            for j in range(cells + 1):
                now[j] /= norms[t]
                # Beyond all numbers is the same everywhere.
                same &= (now[j] <= ahead[j] * (1 + 1e-14) and ahead[j] <= now[j] * (1 + 1e-14)) or (
                    not now[j] < INFINITY and not ahead[j] < INFINITY
                )
        if same and t < rounds - 1:
            repeated = True
        else:
            if last == most:
                sums[:] = INFINITY
                break
            out.append(np.asarray(now).copy())
            ahead = out[len(out) - 1]
            last += 1
            repeated = False
        places[t] = last
    return np.array(out), at, sums


def state_draws(
    const double[:, ::1] table,
    const Py_ssize_t[::1] places,
    const double[::1] norms,
    const double[:, ::1] factors,
    const Py_ssize_t[::1] runs,
    double decay,
    double scale,
    double variance,
    double largest,
    Py_ssize_t draws,
    object generator,
):
    """Means C N of drawn counts, of shape (rounds, draws), and the logarithms of their weights.

    The weights are over the product of the norms, at most 1 up to rounding.
    """
    cdef Py_ssize_t rounds = runs.shape[0], kinds = factors.shape[1]
    cdef Py_ssize_t cells = table.shape[1] - 1, t, d, pick
    cdef bitgen_t *bits = bits_of(generator)
    cdef double s, total, threshold, ratio, per_cell = cells / largest, worst = 1.0
    means = np.empty((rounds, draws))
    weights = np.zeros(draws)
    cdef double[:, ::1] out = means
    cdef double[::1] log_weight = weights, weight = np.ones(draws), state = np.zeros(draws)
    cdef double[::1] first = np.empty(kinds), terms = np.empty(kinds)
    cdef const double *chances
    cdef const double *factor
    cdef const double *ahead
    with generator.bit_generator.lock, nogil:
        # All draws of a round read the same rows of the table.
        for t in range(rounds):
            factor, ahead = &factors[runs[t], 0], &table[places[t + 1], 0]
            if t == 0 or runs[t] != runs[t - 1] or places[t + 1] != places[t]:
                # What rounds weigh after the state 0 is asked for most often.
                weigh(
                    factor, kinds, ahead, cells, per_cell, 0.0, 0.0, 1.0 / variance, &first[0]
                )
            for d in range(draws):
                s = state[d]
                threshold = bits.next_double(bits.state)
                if s == 0.0:
                    chances = &first[0]
                    threshold *= norms[t]
                else:
                    total = weigh(
                        factor, kinds, ahead, cells, per_cell, scale * s, decay * s,
                        1.0 / variance, &terms[0],
                    )
                    chances = &terms[0]
                    threshold *= total
                    ratio = total / (norms[t] * chord(&table[places[t], 0], cells, s * per_cell))
                    worst = max(worst, ratio)
                    weight[d] *= ratio
                    if weight[d] < 1e-200:
                        log_weight[d] += log(weight[d])
                        weight[d] = 1.0
                pick = 0
                while pick < kinds - 1:
                    threshold -= chances[pick]
                    if threshold < 0.0:
                        break
                    pick += 1
                out[t, d] = scale * s + pick
                s = decay * s + pick
                state[d] = 0.0 if s < SMALLEST else s
        for d in range(draws):
            log_weight[d] += log(weight[d])
    if not worst < 1.0 + ROUNDING:
        raise ArithmeticError(f"A weight exceeds its bound by a factor of {worst:.6g}.")
    return means, weights


cdef inline double pull_of(
    const double[:, ::1] gram, Py_ssize_t t, Py_ssize_t kinds, Py_ssize_t w
) noexcept nogil:
    """Overlap of a round's column with those of the last counts, which are the digits of a state.

    Before the first rounds there are no counts, and their digits are 0.
    """
    cdef double pull = 0.0
    cdef Py_ssize_t lag = 1
    while w > 0:
        pull += (w % kinds) * gram[max(t - lag, <Py_ssize_t>0), lag]
        w = w // kinds
        lag += 1
    return pull


def band_table(
    const double[:, ::1] log_binomial,
    const double[:, ::1] gram,
):
    """Logarithms of what later rounds weigh after the last counts, over what they weigh after none.

    ``gram[t, k]`` is (C^T C)[t, t + k] / sigma^2; the latest count is the last digit of a state.

    Returns
    -------
    table
        Shape (distinct, kinds^(bands - 1)), first column 0. Before the first rounds there are no
        counts: a row of round t < bands - 1 has only its first kinds^t entries, and zeros.
    kept
        Probability of no participation in the round after each state, of the same shape.
    places
        Row for each round and for the end, shape (rounds + 1,). Rounds share a row where rates and
        columns repeat themselves and no entry differs by more than 1e-14 from that of the next one.
    norms
        Logarithms of what rounds from one on weigh after no counts, over the rounds after it, shape
        (rounds,). Where rows are shared it is the largest factor of all states, which bounds those
        of earlier rounds, because the map is linear and monotone.
    """
    cdef Py_ssize_t rounds = log_binomial.shape[0], kinds = log_binomial.shape[1]
    cdef Py_ssize_t lags = gram.shape[1] - 1, states = kinds ** lags, t, w, k, l, next_, last = 0
    cdef Py_ssize_t reached
    cdef double pull, top, total, highest
    rows, chances = [np.zeros(states)], [np.ones(states)]
    sums, at = np.empty(rounds), np.zeros(rounds + 1, dtype=np.intp)
    cdef double[::1] norms = sums, ahead = rows[0], now = np.empty(states), keep = np.empty(states)
    cdef Py_ssize_t[::1] places = at
    cdef double[::1] terms = np.empty(kinds)
    cdef bint same, repeated = False
    for t in range(rounds - 1, -1, -1):
        with nogil:
            if repeated:
                for k in range(kinds):
                    repeated &= log_binomial[t, k] == log_binomial[t + 1, k]
                for l in range(lags + 1):
                    repeated &= (
                        gram[max(t - l, <Py_ssize_t>0), l]
                        == gram[max(t + 1 - l, <Py_ssize_t>0), l]
                    )
            if repeated:
                norms[t] = highest
                places[t] = last
                continue
            highest = -INFINITY
            same = True
            reached = kinds ** min(t, lags)
            for w in range(reached):
                pull = pull_of(gram, t, kinds, w)
                next_ = (w * kinds) % states
                top = -INFINITY
                for k in range(kinds):
                    terms[k] = (
                        log_binomial[t, k] + 0.5 * gram[t, 0] * k * (k - 1) + k * pull
                        + ahead[next_ + k if lags > 0 else 0]
                    )
                    top = max(top, terms[k])
                total = 0.0
                for k in range(kinds):
                    total += exp(terms[k] - top)
                now[w] = top + log(total)
                keep[w] = exp(terms[0] - now[w])
                highest = max(highest, now[w] - ahead[w])
            norms[t] = now[0]
            for w in range(reached):
                now[w] -= norms[t]
                same &= fabs(now[w] - ahead[w]) <= 1e-14 * (1.0 + fabs(now[w]))
        rows.append(np.asarray(now)[:reached].copy())
        chances.append(np.asarray(keep)[:reached].copy())
        ahead = rows[len(rows) - 1]
        last += 1
        repeated = same and t < rounds - 1
        places[t] = last
    tables = np.zeros((2, last + 1, states))
    for t in range(last + 1):
        tables[0, t, : len(rows[t])], tables[1, t, : len(rows[t])] = rows[t], chances[t]
    return tables[0], tables[1], at, sums


def band_draws(
    const double[:, ::1] table,
    const double[:, ::1] kept,
    const Py_ssize_t[::1] places,
    const double[::1] norms,
    const double[:, ::1] log_binomial,
    const double[:, ::1] gram,
    Py_ssize_t draws,
    object generator,
):
    """Drawn counts, of shape (rounds, draws); all have the weight ``exp(sum(norms))``."""
    cdef Py_ssize_t rounds = log_binomial.shape[0], kinds = log_binomial.shape[1]
    cdef Py_ssize_t states = table.shape[1], t, d, w, pick, next_
    cdef bitgen_t *bits = bits_of(generator)
    cdef double pull, threshold, before
    counts = np.empty((rounds, draws))
    cdef double[:, ::1] out = counts
    cdef Py_ssize_t[::1] last = np.zeros(draws, dtype=np.intp)
    with generator.bit_generator.lock, nogil:
        for t in range(rounds):
            for d in range(draws):
                w = last[d]
                threshold = bits.next_double(bits.state) - kept[places[t], w]
                pick = 0
                next_ = (w * kinds) % states if w > 0 else 0
                if threshold >= 0.0:
                    pull = pull_of(gram, t, kinds, w)
                    before = norms[t] + table[places[t], w]
                    pick = 1
                    while pick < kinds - 1:
                        threshold -= exp(
                            log_binomial[t, pick] + 0.5 * gram[t, 0] * pick * (pick - 1)
                            + pick * pull
                            + table[places[t + 1], next_ + pick if states > 1 else 0] - before
                        )
                        if threshold < 0.0:
                            break
                        pick += 1
                out[t, d] = pick
                last[d] = next_ + pick if states > 1 else 0
    return counts


def log_products(const double[:, ::1] a, const double[::1] energies, const double[::1] rates):
    """Logarithms of ``prod_t (1 - r_t + r_t exp(a_t - b_t / 2))`` of every column of fields."""
    cdef Py_ssize_t rounds = a.shape[0], draws = a.shape[1], t, d
    cdef double factor, product
    out = np.zeros(draws)
    cdef double[::1] result = out
    cdef double[::1] partial = np.ones(draws)
    with nogil:
        for t in range(rounds):
            for d in range(draws):
                # Fields are far below the 700 at which this would overflow, or the product is
                # infinite and the term that it divides is zero.
                factor = 1.0 - rates[t] + rates[t] * exp(a[t, d] - 0.5 * energies[t])
                product = partial[d] * factor
                if product > 1e200 or product < 1e-200:
                    result[d] += log(product)
                    product = 1.0
                partial[d] = product
        for d in range(draws):
            result[d] += log(partial[d])
    return out


def replica_round(
    const double[:, ::1] now,
    const int[:, ::1] to,
    const double[:, ::1] share,
    const double[:, ::1] gains,
    const double[:, ::1] chances,
    const int[:, ::1] free,
    bint counted,
    bint last,
    double[:, ::1] then,
):
    """What rounds from one on weigh in each state, from what the rounds after it weigh.

    A state is the number of replicas that have joined, the row of ``now`` (0 unless ``counted``),
    and a memory, its column. ``n`` of ``free`` replicas join with ``chances[free, n]``, weigh
    ``gains[n, memory]``, and leave the memory ``to[n, memory]``, none if that is negative, or the
    point at a ``share`` of the line from it to the next memory. After the ``last`` round of an
    epoch none has joined. All numbers are >= 0.
    """
    cdef Py_ssize_t rows = now.shape[0], states = now.shape[1], j, i, n, f, row, k
    cdef double total, value
    with nogil:
        for j in range(rows):
            for i in range(states):
                f = free[j, i]
                total = 0.0
                for n in range(f + 1):
                    k = to[n, i]
                    if k < 0 or chances[f, n] == 0.0:
                        continue
                    row = j + n if counted and not last else 0
                    value = now[row, k]
                    if share[n, i] > 0.0:
                        value += share[n, i] * (now[row, k + 1] - value)
                    total += chances[f, n] * gains[n, i] * value
                then[j, i] = total


def energy_law(
    const double[::1] energies,
    const double[::1] rates,
    const double[::1] s,
    const int[::1] idle_to,
    const int[::1] join_to,
    double decay,
    double cell,
    Py_ssize_t cells,
):
    """Law of ||C y||^2 / sigma^2 in whole cells, rounded up, for ``C[t, u] = decay^(t - u)``.

    A participation in round u after state s adds ``energies[u] (1 + 2 decay s)``. States move
    between the nodes s, the first of which is 0, along ``idle_to`` and ``join_to``. The last of the
    ``cells + 1`` probabilities also holds everything beyond.
    """
    cdef Py_ssize_t rounds = energies.shape[0], n = s.shape[0], t, j, e, ahead
    cdef double[:, :, ::1] tables = np.zeros((2, n, cells + 1))
    cdef double[:, ::1] now = tables[0]
    cdef double[:, ::1] then = tables[1]
    cdef double[:, ::1] swap
    cdef double steps, stay, join
    now[0, 0] = 1.0
    with nogil:
        for t in range(rounds):
            stay = 1.0 - rates[t]
            join = rates[t]
            for j in range(n):
                for e in range(cells + 1):
                    then[j, e] = 0.0
            for j in range(n):
                steps = energies[t] * (1.0 + 2.0 * decay * s[j]) / cell * (1.0 + 1e-14)
                ahead = cells if steps >= cells else <Py_ssize_t>steps
                if ahead < steps and ahead < cells:
                    ahead += 1
                for e in range(cells + 1):
                    then[idle_to[j], e] += stay * now[j, e]
                for e in range(cells + 1 - ahead):
                    then[join_to[j], e + ahead] += join * now[j, e]
                for e in range(cells + 1 - ahead, cells + 1):
                    then[join_to[j], cells] += join * now[j, e]
            swap = now
            now = then
            then = swap
    return np.asarray(now).sum(axis=0)
