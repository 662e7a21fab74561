"""Plans of the optimizers under the KL condition, and a table for them."""

import numpy as np
from _built_plans import records, theory_of
from _problems import Tilted

from dpcal import calibrate
from dpcal.calibrate import Constants

TARGET = {"epsilon": 2.0, "delta": 1e-5}
N = 300
X, Y = records(N)
# delta(1) of a Gaussian release with sensitivity equal to its noise: rho = 1/2.
HALF = {"epsilon": 1.0, "delta": 0.12693673750664397, "neighboring_relation": "replace-one"}


def start(objective):
    return np.eye(objective.dimension)[0]


def plan_for(build, objective, **options):
    given = {"n": objective.n, "dimension": objective.dimension, **TARGET, **options}
    if isinstance(objective, Tilted) and build is not calibrate.adaptive_gd:
        given = dict(zip(("gamma", "kappa"), objective.kl, strict=True)) | given
    constants = given.pop("constants", None) or objective.constants
    if isinstance(build, str):
        return theory_of(build, constants, **given)
    return build(constants, **{"public": True, **given})


def big_plan(kappa, **options):
    constants = Constants(lipschitz=1.0, smoothness=2.0, gap=0.5)
    given = {"n": 10**7, "dimension": 100, "gamma": 1.0, "kappa": kappa, **HALF, **options}
    return theory_of("kl_condition", constants, **given)
