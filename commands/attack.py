"""``dpcal attack``: try to tell a record from a run; the exit status is 1 if a claim breaks.

replay: record a run and play it again on neighbouring tables. likelihood: bound epsilon from below
by likelihood ratios of canaries. canaries: bound it from one run seen from outside. loader: bound
it by runs of a loader, on a data set that tells a record's batch.
"""

from __future__ import annotations

import importlib.util
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal import _validate
from dpcal._files import text_of
from dpcal.commands._options import add_options, fields_of, relation, required
from dpcal.commands.checking.mechanism import Mechanism, noise_of
from dpcal.commands.checking.output import interval, present
from dpcal.commands.checking.progress import stage

if TYPE_CHECKING:
    from dpcal.calibrate import Plan

EXAMPLES = (
    "likelihood --records 2000 --batch-size 200 --steps 100 --epsilon 2 --delta 1e-5",
    "loader --records 60000 --batch-size 512 --epochs 1 --epsilon 1.38 --delta 1e-5",
)
# Features of the random table that a plan's own optimizer is replayed on.
_FEATURES = 5


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the attack, and what is attacked."""
    add_options(
        parser,
        """
attack replay|likelihood|canaries|loader  replay: on neighbouring tables; likelihood: all answers,
    many canaries; canaries: one run, from outside; loader: runs of a loader that was not priced
""",
    )
    parser.add_argument(
        "--run",
        dest="function",
        metavar="FILE:FUNCTION",
        help="for replay: a function of a table (X, y) that trains, in a Python file; otherwise "
        "the plan's optimizer, on a logistic regression",
    )
    add_options(
        parser,
        """
--plan FILE:path       a plan in JSON; or DP-SGD with:
--records N:whole      number of records
--batch-size B:number  expected, of Poisson samples; of a loader, the size of its batches
--steps T:whole        number of steps
--epsilon E:number     the claim
--delta D:number       the claim's delta
[loader]
--sampler NAME=shuffled-epochs  shuffled-epochs, random-allocation (default: %(default)s)
--epochs E:whole                passes, whole
--noise-multiplier S:number     noise over the clipping norm (default: the least at which Poisson
    samples of these sizes meet the claim)
""",
        relation("add-or-remove-one; of shuffled-epochs replace-special"),
        """
--samples M:whole           canaries (default: 1000000), or runs of a loader (default: 100000)
--confidence C:number=0.99  of bounds (default: 0.99)
--seed S:whole              to repeat an attack
--seconds T:number=0        for replay: go on trying random neighbours for so long (default: 0)
-o --output FILE:path       for likelihood: draw a picture
""",
    )


def run(options: Namespace) -> int:
    """Attack, and print what was found."""
    if options.output is not None:
        if options.attack != "likelihood":
            raise ValueError(f"--output is for likelihood, got it with {options.attack}.")
        dpcal.plot.check_picture(options.output)
    if options.function is not None and options.attack != "replay":
        raise ValueError(f"--run is for replay, got it with {options.attack}.")
    return ATTACKS[options.attack](options)


def _plan(options: Namespace) -> Plan:
    """Return the plan in a file, or one of DP-SGD."""
    if options.plan is not None:
        return dpcal.calibrate.Plan.from_json(
            text_of(options.plan, "--plan must be a readable file")
        )
    names = ("batch_size", "steps", "epsilon", "delta")
    required(options, "records", *names)
    given = fields_of(options, *names)
    relation = options.neighboring_relation or "add-or-remove-one"
    return dpcal.calibrate.dpsgd(n=options.records, neighboring_relation=relation, **given)


def _replay(options: Namespace) -> int:
    plan = None if options.function is not None else _plan(options)
    if plan is None:
        required(options, "records")
    n = options.records if plan is None else plan.n
    X, y = dpcal.optim.attacks.random_table(n, _FEATURES, seed=options.seed)
    train = _optimizer(plan) if plan is not None else _function(options.function)
    found = dpcal.optim.attacks.replay_table(
        train, X, y, seconds=options.seconds, seed=options.seed
    )
    holds = all(each.holds for each in found)
    verdict = "no violation found" if holds else "VIOLATIONS FOUND"
    document = {"holds": holds, "replays": [each.to_dict() for each in found]}
    present(options, document, "\n".join([*map(str, found), verdict]))
    return 0 if holds else 1


def _optimizer(plan: Plan) -> Callable[[Any], Any]:
    """Return a run of the plan's optimizer on a logistic regression."""
    return lambda table: dpcal.run(
        dpcal.optim.Logistic(*table, fit_intercept=False, classes=[0, 1]), plan
    )


def _function(place: str) -> Callable[[Any], Any]:
    """Return the function that ``FILE:FUNCTION`` names."""
    path, _, name = place.rpartition(":")
    if not path or not Path(path).is_file():
        raise ValueError(f"--run must be FILE:FUNCTION with a Python file, got {place!r}.")
    spec = importlib.util.spec_from_file_location("attacked", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"--run must name a Python file, got {path!r}.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"--run must name a function in {path!r}, got {name!r}.")
    return function  # type: ignore[no-any-return]


def _likelihood(options: Namespace) -> int:
    plan = _plan(options)
    curve = None
    if options.output is not None:  # before the attack, for not every plan has a curve
        curve = dpcal.accountants.trade_off(
            plan.event, neighboring_relation=plan.neighboring_relation
        )
    found = dpcal.optim.attacks.likelihood(
        plan,
        samples=1_000_000 if options.samples is None else options.samples,
        confidence=options.confidence,
        seed=options.seed,
    )
    if curve is not None:
        many = len(found.members) + len(found.others)
        figure = dpcal.plot.trade_off_curve(
            [(f"claimed, epsilon = {plan.epsilon:.4g}", curve)],
            attacks=[(f"likelihood ratios, {many} canaries", *found.rates())],
        )
        dpcal.plot.save(figure, options.output)
    return _said(options, found.holds, found.to_dict(), str(found))


def _canaries(options: Namespace) -> int:
    found, expected = dpcal.optim.attacks.plant(
        _plan(options), confidence=options.confidence, seed=options.seed
    )
    power = (
        f"of a run that leaks all that it may, such an attack shows about epsilon "
        f"{expected.epsilon:.4g}, mu {expected.mu:.4g}"
    )
    document = {**found.to_dict(), "expected": expected.to_dict()}
    return _said(options, found.holds, document, f"{found}\n{power}")


def _loader(options: Namespace) -> int:
    required(options, "records", "batch_size", "epochs", "epsilon", "delta")
    size = _validate.count(batch_size=options.batch_size)
    sizes = {"n": options.records, "batch_size": size, "sampling_probability": None}
    told = Mechanism.of(Namespace(**{**vars(options), **sizes}))
    target = fields_of(options, "epsilon", "delta")
    noise, how = told.noise_multiplier, ""
    if noise is None:
        stage(options, "noise of Poisson samples")
        noise = noise_of(replace(told, sampler="poisson"), **target)
        how = ", with which Poisson samples of these sizes meet the claim"
    told = replace(told, noise_multiplier=noise)
    relation: dict[str, Any] = {"neighboring_relation": told.relation}
    stage(options, "price")
    price = dpcal.accountants.epsilon(told.event(), delta=options.delta, **relation)
    stage(options, "attack")
    found = dpcal.optim.attacks.loader(
        told.sampler,
        **fields_of(told, "n", "batch_size", "noise_multiplier"),
        epochs=told.passes,
        samples=100_000 if options.samples is None else options.samples,
        **fields_of(options, "confidence", "seed"),
        **target,
        **relation,
    )
    text = (
        f"{told.sentence()}{how}\n{found}\nits price: epsilon in "
        f"{interval(price.lower, price.upper, digits=5)}, {price.method}, {told.relation}"
    )
    document = {**found.to_dict(), "mechanism": told.to_dict(), "price": price.to_dict()}
    return _said(options, found.holds, document, text)


def _said(options: Namespace, holds: bool, document: dict[str, Any], text: str) -> int:
    """Print an outcome, and return the exit status."""
    verdict = "the claim holds" if holds else "THE CLAIM DOES NOT HOLD"
    present(options, {**document, "holds": holds}, f"{text}\n{verdict}")
    return 0 if holds else 1


ATTACKS = {
    "replay": _replay,
    "likelihood": _likelihood,
    "canaries": _canaries,
    "loader": _loader,
}
