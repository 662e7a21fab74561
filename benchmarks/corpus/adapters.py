"""Adapters of other packages to rows of the corpus: workers in the packages' own environments.

    python adapters.py PACKAGE ACCOUNTANT SECONDS < rows > answers

It needs Python's standard library, the package and the rows' own module, and reads one row a line.
Each answer is a line too: ``id``, ``seconds`` of processor time, and ``upper``, with ``lower``
where the package has one; or ``refused``, ``failed`` or ``slow`` with the reason. Each package is
called as its documentation shows, at its default accuracy.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
import warnings
from fractions import Fraction

from benchmarks.corpus.rows import event_of, leaves
from benchmarks.limits import TooSlow, at_most

ADD, REPLACE, SPECIAL = "add-or-remove-one", "replace-one", "replace-special"


# Seconds on the clock after which a row has no answer.
PATIENCE = 180


class Refused(Exception):  # noqa: N818
    """The package has no accountant for this row, or refuses it."""


def worst(row):
    """Refuse a single direction, which few packages distinguish."""
    if row["direction"] != "worst":
        raise Refused("one direction alone")


def gaussian_steps(row, relations=(ADD, SPECIAL)):
    """Return (sampling probability, noise multiplier, count) of every part, all Gaussian."""
    worst(row)
    if row["neighboring_relation"] not in relations:
        raise Refused(row["neighboring_relation"])
    steps = []
    for event, count in leaves(row["event"]):
        if event["type"] == "GaussianDpEvent":
            steps.append((1.0, event["noise_multiplier"], count))
        elif event["type"] == "PoissonSampledDpEvent" and (
            event["event"]["type"] == "GaussianDpEvent"
        ):
            sigma = event["event"]["noise_multiplier"]
            steps.append((event["sampling_probability"], sigma, count))
        else:
            raise Refused(event["type"])
    return steps


def asked(row, name):
    """Return the given quantity; refuse a row with the other quantity."""
    if name not in row["asked"]:
        raise Refused(f"no answer at a given {next(iter(row['asked']))}")
    return row["asked"][name]


def _google(row, make):
    import dp_accounting

    worst(row)
    relation = dp_accounting.NeighboringRelation[
        row["neighboring_relation"].upper().replace("-", "_")
    ]
    try:
        event = event_of(row["event"], dp_accounting)
    except AttributeError as error:
        raise Refused(str(error)) from error
    try:
        accountant = make(relation).compose(event)
    except dp_accounting.UnsupportedEventError as error:
        raise Refused(str(error)) from error
    if "delta" in row["asked"]:
        return None, accountant.get_epsilon(row["asked"]["delta"])
    return None, accountant.get_delta(row["asked"]["epsilon"])


def google_pld(row):
    from dp_accounting.pld import PLDAccountant

    return _google(row, lambda relation: PLDAccountant(relation))


def google_rdp(row):
    from dp_accounting.rdp import RdpAccountant

    return _google(row, lambda relation: RdpAccountant(neighboring_relation=relation))


def microsoft(row):
    from prv_accountant import (
        GaussianMechanism,
        LaplaceMechanism,
        PoissonSubsampledGaussianMechanism,
        PRVAccountant,
    )

    worst(row)
    items = leaves(row["event"])
    if {event["type"] for event, _ in items} == {"LaplaceDpEvent"}:
        if row["neighboring_relation"] == REPLACE:
            raise Refused(REPLACE)
        prvs = [LaplaceMechanism(mu=1 / event["noise_multiplier"]) for event, _ in items]
        counts = [count for _, count in items]
    else:
        steps = gaussian_steps(row)
        prvs = [
            GaussianMechanism(s) if q == 1 else PoissonSubsampledGaussianMechanism(q, s)
            for q, s, _ in steps
        ]
        counts = [count for *_, count in steps]
    delta = row["asked"].get("delta")
    accountant = PRVAccountant(
        prvs=prvs,
        max_self_compositions=counts,
        eps_error=0.01,
        delta_error=1e-10 if delta is None else delta / 1000,
    )
    if delta is None:
        lower, _, upper = accountant.compute_delta(row["asked"]["epsilon"], counts)
    else:
        lower, _, upper = accountant.compute_epsilon(delta, counts)
    return lower, upper


def autodp(row):
    from autodp.mechanism_zoo import GaussianMechanism, LaplaceMechanism
    from autodp.transformer_zoo import Composition

    worst(row)
    relation, mechanisms, counts = row["neighboring_relation"], [], []
    # autodp's noise is over the distance of two neighboring sums.
    distance = 2 if relation == REPLACE else 1
    for event, count in leaves(row["event"]):
        if event["type"] == "GaussianDpEvent":
            mechanism = GaussianMechanism(sigma=event["noise_multiplier"] / distance)
        elif event["type"] == "LaplaceDpEvent":
            mechanism = LaplaceMechanism(b=event["noise_multiplier"] / distance)
        elif event["type"] == "PoissonSampledDpEvent" and relation != REPLACE:
            mechanism = _autodp_sampled(event, event["sampling_probability"], 1)
        elif event["type"] == "SampledWithoutReplacementDpEvent" and relation == REPLACE:
            q = event["sample_size"] / event["source_dataset_size"]
            mechanism = _autodp_sampled(event, q, 2)
        else:
            raise Refused(event["type"])
        mechanisms.append(mechanism)
        counts.append(count)
    whole = Composition()(mechanisms, counts)
    if "delta" in row["asked"]:
        return None, whole.get_approxDP(row["asked"]["delta"])
    return None, whole.get_approx_delta(row["asked"]["epsilon"])


def _autodp_sampled(event, q, distance):
    from autodp.mechanism_zoo import GaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling

    if event["event"]["type"] != "GaussianDpEvent":
        raise Refused(event["event"]["type"])
    gaussian = GaussianMechanism(sigma=event["event"]["noise_multiplier"] / distance)
    if distance == 2:
        gaussian.neighboring = "replace_one"
    sample = AmplificationBySampling(PoissonSampling=distance == 1)
    return sample(gaussian, q, improved_bound_flag=True)


def _opacus(row, name):
    from opacus.accountants import create_accountant

    accountant = create_accountant(name)
    delta = asked(row, "delta")
    accountant.history = [(sigma, q, count) for q, sigma, count in gaussian_steps(row)]
    return None, accountant.get_epsilon(delta)


def opacus_rdp(row):
    return _opacus(row, "rdp")


def opacus_prv(row):
    return _opacus(row, "prv")


def _jax(row, config):
    from jax_privacy import accounting

    delta, steps = asked(row, "delta"), gaussian_steps(row)
    if len(steps) > 1:
        raise Refused("ComposedDpEvent")
    ((q, sigma, count),) = steps
    share = Fraction(str(q))
    parameters = accounting.DpParams(
        noise_multipliers=sigma,
        num_samples=share.denominator,
        batch_size=share.numerator,
        delta=delta,
    )
    accountant = accounting.DpsgdTrainingAccountant(dp_accountant_config=config)
    return None, accountant.compute_epsilon(count, parameters)


def jax_pld(row):
    from jax_privacy.accounting import PldAccountantConfig

    return _jax(row, PldAccountantConfig(value_discretization_interval=1e-4))


def jax_rdp(row):
    from jax_privacy.accounting import RdpAccountantConfig

    return _jax(row, RdpAccountantConfig())


def riskcal(row):
    from riskcal.accountants import CTDAccountant

    accountant = CTDAccountant()
    accountant.history = [(sigma, q, count) for q, sigma, count in gaussian_steps(row)]
    if "delta" in row["asked"]:
        return None, accountant.get_epsilon(delta=row["asked"]["delta"])
    return None, accountant.get_pld().get_delta_for_epsilon(row["asked"]["epsilon"])


def dpcal(row):
    import dpcal as package
    from dpcal.errors import DpcalError

    event, relation = event_of(row["event"]), row["neighboring_relation"]
    try:
        if row["direction"] != "worst":
            return _direction(event, row)
        if "delta" in row["asked"]:
            found = package.accountants.epsilon(
                event, delta=row["asked"]["delta"], neighboring_relation=relation
            )
        else:
            found = package.accountants.delta(
                event, epsilon=row["asked"]["epsilon"], neighboring_relation=relation
            )
    except DpcalError as error:
        raise Refused(str(error)) from error
    return found.lower, found.upper


def _direction(event, row):
    from dpcal.accountants import characteristic
    from dpcal.accountants.mechanisms.decompose import decompose

    found = decompose(event, row["neighboring_relation"]).directions
    direction = found[0] if row["direction"] == "remove" else found[-1]
    if "delta" in row["asked"]:
        bounds = characteristic.epsilon_bounds(direction, math.log(row["asked"]["delta"]))
        return bounds.lower, bounds.upper
    bounds = characteristic.log_delta_bounds(direction, row["asked"]["epsilon"])
    return math.exp(bounds.lower), math.exp(bounds.upper)


PACKAGES = {
    "dpcal": {"dpcal": dpcal},
    "dp-accounting": {"PLD": google_pld, "RDP": google_rdp},
    "prv-accountant": {"PRV": microsoft},
    "autodp": {"RDP": autodp},
    "opacus": {"RDP": opacus_rdp, "PRV": opacus_prv},
    "jax-privacy": {"PLD": jax_pld, "RDP": jax_rdp},
    "riskcal": {"CTD": riskcal},
}
"""For each name on PyPI its accountants, functions of a row."""


def answer(function, row, seconds):
    """Return the answer to a row, or how it failed, with its processor time."""
    found, start = {"id": row["id"]}, time.process_time()
    try:
        with at_most(seconds):
            lower, upper = function(row)
        found["upper"] = repr(float(upper))
        if lower is not None:
            found["lower"] = repr(float(lower))
    except TooSlow as error:
        found["slow"] = str(error)
    except Refused as error:
        found["refused"] = str(error)[:200]
    except BaseException as error:
        found["failed"] = f"{type(error).__name__}: {error}"[:200]
    found["seconds"] = time.process_time() - start
    return found


# These run first, so that the time of no row includes imports.
_FIRST = [
    {
        "id": "",
        "event": event,
        "neighboring_relation": ADD,
        "direction": "worst",
        "asked": {"delta": 1e-3},
    }
    for event in (
        {"type": "GaussianDpEvent", "noise_multiplier": 2.0},
        {"type": "RandomAllocationDpEvent", "noise_multiplier": 2.0, "batches": 2},
    )
]


def main():
    package, name, seconds = sys.argv[1:4]
    function = PACKAGES[package][name]
    warnings.simplefilter("ignore")
    answers, sys.stdout = sys.stdout, sys.stderr
    for row in _FIRST:
        answer(function, row, 60.0)
    for line in sys.stdin:
        signal.alarm(PATIENCE)  # ends the process, also within a package's own loop
        found = answer(function, json.loads(line), float(seconds))
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
