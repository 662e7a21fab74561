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
    loader as loader,
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
