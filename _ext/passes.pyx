"""One pass of projected gradient descent over records, a step for each, for its mean iterate.

>>> import numpy as np
>>> from dpcal._ext.gradients import ClippedSum
>>> from dpcal._ext.losses import SquaredLoss
>>> kernel = ClippedSum(SquaredLoss(), np.eye(2), np.ones(2), intercept=False)
>>> none = np.zeros(2)
>>> one_pass(kernel, none, np.array([0, 1]), np.ones(2), none, none, learning_rate=1.0,
...          max_norm=9.0, radius=9.0).tolist()
[0.5, 0.0]
"""

from libc.math cimport sqrt

from dpcal._ext.gradients cimport Batch, ClippedSum

import numpy as np

from dpcal._ext.gradients import aligned_zeros


def one_pass(
    ClippedSum kernel not None,
    w,
    rows,
    const double[::1] scales not None,
    const double[::1] pull not None,
    const double[::1] target not None,
    *,
    double learning_rate,
    double max_norm,
    double radius,
):
    """Return the mean of the iterates at which one pass asks for gradients, a record at a time.

    ``w <- P(w - eta (s_i clipped gradient + pull * (w - target)))``, P being the projection onto
    the ball around the origin. Ranges are the caller's to check.

    Parameters
    ----------
    kernel
        Clipped gradient sums of the records.
    w
        Where to start, shape (dimension,).
    rows, scales
        Records in the order in which they are asked, and s_i for each, shape (m,).
    pull, target
        Strength >= 0 and center of the regulariser in each coordinate, shape (dimension,).
    learning_rate, max_norm, radius
        Step size, clipping bound and radius, > 0; the radius may be infinite.
    """
    cdef const Py_ssize_t[::1] order = kernel.checked(rows)
    cdef double[::1] at = kernel.padded(w)
    cdef double[::1] gradient = aligned_zeros(kernel.stride)
    cdef Py_ssize_t d = kernel.dimension
    cdef Py_ssize_t i, j
    cdef double squares
    if pull.shape[0] != d or target.shape[0] != d or scales.shape[0] != order.shape[0]:
        raise ValueError("pull and target must have shape (dimension,), scales one number a row.")
    mean = np.zeros(d)
    cdef double[::1] averaged = mean
    with nogil:
        for i in range(order.shape[0]):
            for j in range(d):
                averaged[j] += (at[j] - averaged[j]) / (i + 1)
            gradient[:] = 0.0
            kernel.add(&at[0], NULL, Batch(&order[i], 1, max_norm), &gradient[0])
            squares = 0
            for j in range(d):
                at[j] -= learning_rate * (scales[i] * gradient[j] + pull[j] * (at[j] - target[j]))
                squares += at[j] * at[j]
            if squares > radius * radius:
                squares = radius / sqrt(squares)
                for j in range(d):
                    at[j] *= squares
    return mean
