"""Attacks on your own runs, which find mistakes in privacy claims.

:func:`replay` runs anything that trains twice, on neighbouring data, with the same answers, and
checks every sum, batch, noise and entry of the ledger. :func:`likelihood` bounds epsilon from below
by all answers of a run about canaries; :func:`plant` and :func:`one_run` by the output of one run;
:func:`many_runs` and :func:`from_confusion_matrix` by tests of many runs, of any package.
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.optim.attacks.canaries import (
        OneRun as OneRun,
        one_run as one_run,
        plant as plant,
        power as power,
    )
    from dpcal.optim.attacks.findings import (
        VIOLATIONS as VIOLATIONS,
        Finding as Finding,
        Replay as Replay,
    )
    from dpcal.optim.attacks.likelihood_ratio import (
        Canaries as Canaries,
        Likelihood as Likelihood,
        likelihood as likelihood,
    )
    from dpcal.optim.attacks.rates import (
        LowerBound as LowerBound,
        from_confusion_matrix as from_confusion_matrix,
        many_runs as many_runs,
    )
    from dpcal.optim.attacks.recording import without as without
    from dpcal.optim.attacks.replaying import replay as replay
    from dpcal.optim.attacks.searching import (
        Neighbours as Neighbours,
        neighbours as neighbours,
        random_table as random_table,
        replay_table as replay_table,
    )
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
