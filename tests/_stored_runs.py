"""Runs that are kept in a store or a book: one small problem, plans for it, and how runs end."""

import contextlib
import gc
import itertools
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pytest
from _built_plans import plan_of, query

from dpcal import calibrate, optim

N, D = 200, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = X[:, 0] > 0
OBJECTIVE = optim.Logistic(X, Y, l2=0.1, fit_intercept=False, classes=[False, True])
SAMPLED = calibrate.dpsgd(n=N, batch_size=20, steps=30, epsilon=4.0, delta=1e-5)

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def gaussian(sigma=4.0, count=1, *, relation="add-or-remove-one", group_size=1, **parameters):
    """Return a plan of full-batch Gaussian answers."""
    asked = query(noise_multiplier=sigma, count=count, group_size=group_size)
    given = {"neighboring_relation": relation, "parameters": {"learning_rate": 0.1, **parameters}}
    return plan_of(asked, n=N, optimizer="noisy_gd", delta=1e-6, **given)


def interrupted_at(count):
    """Return a callback that raises at its ``count``-th call, as Ctrl-C would."""
    calls = iter(range(count))

    def callback(progress):
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return callback


def ask(book, plan=None, **options):
    """Open an oracle about a plan in a book, ask it once, and return it."""
    oracle = book.oracle(OBJECTIVE, plan or gaussian(), **options)
    oracle.gradient(np.zeros(D), "gradient")
    return oracle


@contextlib.contextmanager
def in_memory():
    """Yield a folder in memory where there is one: a killed process leaves no less on a disk.

    A child shares its parent's pages: a collection would touch, and so copy, all of them.
    """
    gc.collect()
    gc.freeze()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)


def forked(work):
    """Start a child that does some work and ends, whatever happens: by its status, or else 0.

    A child that left by an exception would go on with the tests of its parent.
    """
    child = os.fork()
    if not child:
        status = 1
        try:
            status = work() or 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def struck(work, at=0, strike=None):
    """Do some work, call ``strike`` at its ``at``-th call or return, and return how many it has.

    Calls of compiled functions are none: no handler runs between the end of a block and the call of
    its exit.
    """
    moments = itertools.count(1)

    def passed(frame, event, argument):
        if event != "c_call" and next(moments) == at:
            strike()

    sys.setprofile(passed)
    try:
        work()
    finally:
        sys.setprofile(None)
    return next(moments)


def killed(work, at, *about):
    """Do some work in a child that SIGKILL ends at a moment; return what it told before.

    The work is called with a function that tells bytes, less than the 64 kB that a pipe holds, and
    with what it is about.
    """
    reader, writer = os.pipe()

    def tell(told):
        os.write(writer, told)

    def child():
        struck(lambda: work(tell, *about), at, lambda: os.kill(os.getpid(), signal.SIGKILL))

    assert os.waitpid(forked(child), 0)[1] in (0, signal.SIGKILL)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read()
