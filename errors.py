"""Domain errors: requests that the library refuses, and the reason.

Wrong arguments raise ``ValueError`` or ``TypeError``. You get these for requests that are well
formed but that no theorem covers, that would overrun a budget, or with records that disagree.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "AccountantsDisagree",
    "BackendRefused",
    "BrokenLaw",
    "BrokenObjective",
    "BudgetExceeded",
    "CertificateRejected",
    "DisagreementWarning",
    "DpcalError",
    "DrawsCannotTell",
    "LedgerMismatch",
    "MissingExtra",
    "NoiseReused",
    "NonFiniteAnswer",
    "TargetUnreachable",
    "TooLarge",
    "UnobservedOracle",
    "UnsupportedEvent",
    "VacuousSchedule",
    "extra",
    "needing",
    "warn_caller",
]


def extra(name: str) -> str:
    """Return how to install an extra, of the source that this package was installed from.

    >>> extra("train")
    "install it from its checkout or wheel with the extra 'train': pip install '.[train]'"
    """
    return f"install it from its checkout or wheel with the extra {name!r}: pip install '.[{name}]'"


class DpcalError(Exception):
    """Base class of the domain errors of this package."""


class UnsupportedEvent(DpcalError):  # noqa: N818 -- reads as what happened
    """No theorem in this package covers this event under this neighboring relation."""


class TooLarge(UnsupportedEvent):
    """A question that would take more memory or work than any question may take."""


class BudgetExceeded(DpcalError):  # noqa: N818
    """A query or spend would overrun its plan or budget; no record was touched."""


class BrokenLaw(DpcalError):  # noqa: N818
    """A law of losses lost or gained probability: a fault of this package, instead of an answer."""


class BrokenObjective(DpcalError):  # noqa: N818
    """An objective does not keep a condition of the privacy claim."""


class LedgerMismatch(DpcalError):  # noqa: N818
    """The released answers do not agree with the plan."""


class NoiseReused(DpcalError):  # noqa: N818
    """Two runs in one process would draw the same noise, so that their difference had none."""


class NonFiniteAnswer(DpcalError):  # noqa: N818
    """A regulariser overflowed at the given parameters; no answer left the oracle.

    Records that are not finite contribute zero, so that this depends on released values only.
    """


class TargetUnreachable(DpcalError):  # noqa: N818
    """No value of the free parameter meets the target."""


class DrawsCannotTell(DpcalError):  # noqa: N818
    """Random draws bound no value, or hang on too few of them; the message names the rest."""


class BackendRefused(DpcalError):  # noqa: N818
    """Another package, used as a backend, gave no answer."""


class AccountantsDisagree(DpcalError):  # noqa: N818
    """Two accountants proved intervals for one question that do not meet: one of them is wrong."""


class DisagreementWarning(UserWarning):
    """A comparison in which two accountants' intervals do not meet."""


class MissingExtra(DpcalError, ImportError):  # noqa: N818
    """An optional package that this needs is not installed."""


@contextmanager
def needing(name: str) -> Iterator[None]:
    """Raise MissingExtra, with the extra of this name, where a block imports a missing package."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "dpcal":
            raise
        raise MissingExtra(f"{error.name} is not installed: {extra(name)}.") from error


class CertificateRejected(DpcalError):  # noqa: N818
    """A certificate is malformed, was changed, or does not prove its claim."""


class UnobservedOracle(DpcalError):  # noqa: N818
    """An attack on a run could not see an oracle of its process, or of a forked one."""


class VacuousSchedule(UserWarning):
    """A theorem promises nothing at these sizes that would not hold without an optimizer.

    Or a run takes no step and returns its start, or its own answers show that it ended no better
    than there; its budget is spent. Or the run would take too long to wait for, or noise decides
    its tests.
    """


def reason_of(error: Exception) -> str:
    """Return why a file could not be used, without the number that the system has for it.

    >>> reason_of(FileNotFoundError(2, "No such file or directory", "a.json"))
    'No such file or directory'
    """
    return getattr(error, "strerror", None) or str(error)


def warn_caller(sentence: str, category: type[Warning] = VacuousSchedule) -> None:
    """Warn at the caller's line outside of this package; of a vacuous schedule when omitted."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dpcal."):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)
