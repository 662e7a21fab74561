"""A silo in a process of its own, as an owner runs it who trusts nobody: five methods by a pipe."""

from contextlib import suppress
from functools import partial
from multiprocessing import get_context

from dpcal.optim.silos import Silo, SiloLost

METHODS = ("describe", "open", "answer", "close", "ledger", "fingerprints")


def _served(make, pipe):
    """Make the silo here, and answer calls until the pipe ends."""
    made = make()
    silo = made if isinstance(made, Silo) else Silo(made, gives_digests=True)
    with suppress(EOFError):
        while True:
            name, given, options = pipe.recv()
            try:
                pipe.send((getattr(silo, name)(*given, **options), None))
            except Exception as error:
                pipe.send((None, error))


class Elsewhere:
    """The silo as its server sees it; ``make`` is called in the silo's process."""

    def __init__(self, make):
        processes = get_context("fork")
        self._pipe, there = processes.Pipe()
        self.process = processes.Process(target=_served, args=(make, there), daemon=True)
        self.process.start()
        there.close()

    def __getattr__(self, name):
        if name not in METHODS:
            raise AttributeError(name)
        return partial(self._called, name)

    def _called(self, name, *given, **options):
        try:
            self._pipe.send((name, given, options))
            value, error = self._pipe.recv()
        except (EOFError, OSError) as lost:
            raise SiloLost from lost
        if error is not None:
            raise error
        return value
