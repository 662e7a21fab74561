"""The graph of modules: no cycles, no arrow that goes up, no import hidden inside a function.

An exception is listed with its reason; one that is no longer needed fails its test, so that the
lists can only shrink.
"""

import importlib

import pytest
from _modules import (
    Arrow,
    arrows,
    cycles,
    imports_of,
    missing as optional_and_missing,
    names_imported,
    paths,
)
from _tree import ROOT

# From the ground up. A module may import what stands in its own room or on a lower floor; rooms on
# one floor do not know each other. The longest name that begins a module's own is its room.
FLOORS = (
    ("_lazy",),
    ("dpcal", "errors"),
    ("_roots", "_validate", "_ext"),
    ("accountants.events", "accountants.answers", "accountants.rounding"),
    ("accountants.losses", "accountants.matrix"),
    ("accountants.directions",),
    ("accountants.inversion",),
    ("accountants.renyi",),
    ("accountants.characteristic",),
    ("accountants.direction_profile",),
    # Theorems about repeated runs speak of a run's Renyi divergences and of its privacy profile:
    # mechanisms ask both accountants.
    ("accountants.mechanisms", "accountants.pld", "accountants.prv"),
    ("accountants.interface",),
    ("accountants.curves",),
    ("accountants.adaptive", "accountants.certificates", "accountants.correlated"),
    ("accountants",),
    ("calibrate",),
    ("optim", "tables"),
    ("report",),
    ("adapters", "estimators"),
    ("plot",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# Packages that may be imported when they are needed: optional ones, and ones that take longer to
# import than most questions take to answer.
LATE = {
    "cryptography": "optional",
    "distributed": "optional",
    "flint": "optional",
    "matplotlib": "optional",
    "polars": "optional",
    "sklearn": "optional",
    "tqdm": "optional",
    "dp_accounting": "slow",
    "importlib.metadata": "slow",
    "prv_accountant": "slow",
    "scipy.interpolate": "slow",
    "scipy.optimize": "slow",
    "scipy.signal": "slow",
    "scipy.sparse.linalg": "slow",
    "scipy.stats": "slow",
    "sympy": "slow",
}

KNOWN_UP: dict[str, str] = {}

KNOWN_UP_FOR_TYPES: dict[str, str] = {}

# By the module that imports.
KNOWN_INSIDE_FUNCTIONS: dict[str, str] = {}


def room(name):
    """Return the room of a module of the package."""
    inner = name.removeprefix("dpcal.")
    while inner not in FLOOR:
        assert inner, f"{name} has no floor"
        inner = inner.rpartition(".")[0]
    return inner


def own(*places):
    """Return the arrows between modules of the package that stand in one of these places."""
    return [arrow for arrow in arrows() if arrow.target in paths() and arrow.place in places]


def goes_up(arrow):
    """Whether an arrow leaves its room and does not go to a lower floor."""
    source, target = room(arrow.source), room(arrow.target)
    return source != target and FLOOR[source] <= FLOOR[target]


def unlisted(found, known):
    """Return what was found and is not known, and what is known and was not found."""
    return sorted(set(found) - set(known)), sorted(set(known) - set(found))


def pairs(found):
    """Return the two ends of arrows, as they are listed above."""
    return [f"{arrow.source} -> {arrow.target}" for arrow in found]


def late(name):
    """Whether a package may be imported inside a function."""
    return any(name == each or name.startswith(f"{each}.") for each in LATE)


@pytest.mark.slow
def test_every_import_of_the_package_is_of_a_module_that_exists():
    missing = [
        str(arrow)
        for arrow in arrows()
        if arrow.target.partition(".")[0] == "dpcal" and arrow.target not in paths()
    ]
    assert missing == []


@pytest.mark.slow
def test_no_cycle():
    """Imports inside functions count: hiding one half of a cycle there does not break it."""
    followed = [
        arrow
        for arrow in own("module", "function")
        if arrow.place == "module" or arrow.source not in KNOWN_INSIDE_FUNCTIONS
    ]
    assert cycles({(arrow.source, arrow.target) for arrow in followed}) == []


def test_no_arrow_goes_up():
    up = [arrow for arrow in own("module", "function") if goes_up(arrow)]
    assert unlisted(pairs(up), KNOWN_UP) == ([], []), [str(arrow) for arrow in up]


def test_no_import_inside_a_function_but_of_what_is_optional_or_slow():
    inside = [arrow for arrow in arrows() if arrow.place == "function" and not late(arrow.target)]
    sources = [arrow.source for arrow in inside]
    assert unlisted(sources, KNOWN_INSIDE_FUNCTIONS) == ([], []), [str(arrow) for arrow in inside]


def test_the_package_itself_is_asked_for_its_rooms_by_commands_alone():
    """``import dpcal`` finds every room when it is used, which would hide any arrow."""
    asked = {
        arrow.source for arrow in own("module", "function", "types") if arrow.target == "dpcal"
    }
    assert {room(name) for name in asked} <= {"commands", "cli"}


def test_no_arrow_goes_up_for_types_but_those_listed():
    """Type checkers alone follow these; still, a lower room that names a higher one knows it."""
    up = [arrow for arrow in own("types") if goes_up(arrow)]
    assert unlisted(pairs(up), KNOWN_UP_FOR_TYPES) == ([], []), [str(arrow) for arrow in up]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["benchmarks", "tests"])
def test_names_that_are_imported_from_the_package_exist(folder):
    """Also those that a function of a benchmark would import hours later."""
    missing = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for module, name in names_imported(path.read_text()):
            if module.partition(".")[0] != "dpcal" or module.startswith("dpcal._ext"):
                continue
            if optional_and_missing(module):
                continue
            found = importlib.import_module(module)
            if not hasattr(found, name) and f"{module}.{name}" not in paths():
                missing.append(f"{path.relative_to(ROOT)}: from {module} import {name}")
    assert missing == []


# The reading of imports is checked on sources of which the answer is known.

SOURCE = """
from typing import TYPE_CHECKING
import numpy
from dpcal import b
from dpcal.b import c, thing
if TYPE_CHECKING:
    from dpcal.d import e
else:
    import f
def one():
    if True:
        import g.h
class Two:
    import i
    def three(self):
        from dpcal.b import c
"""


def test_reads_every_kind_of_import():
    found = imports_of("dpcal.a", SOURCE, modules={"dpcal.b", "dpcal.b.c", "dpcal.d"})
    assert [(arrow.target, arrow.place) for arrow in found] == [
        ("typing", "module"),
        ("numpy", "module"),
        ("dpcal.b", "module"),
        ("dpcal.b.c", "module"),
        ("dpcal.b", "module"),
        ("dpcal.d", "types"),
        ("f", "module"),
        ("g.h", "function"),
        ("i", "module"),
        ("dpcal.b.c", "function"),
    ]


@pytest.mark.parametrize(
    ("pairs", "groups"),
    [
        ("ab bc", []),
        ("ab bc ca cd", [["a", "b", "c"]]),
        ("ab ba cd dc bc", [["a", "b"], ["c", "d"]]),
        ("aa", [["a"]]),
    ],
)
def test_finds_cycles(pairs, groups):
    assert cycles({tuple(pair) for pair in pairs.split()}) == groups


def test_an_arrow_goes_up_to_a_higher_floor_or_across_its_own():
    def up(source, target):
        return goes_up(Arrow(f"dpcal.{source}", f"dpcal.{target}", 1, "module"))

    assert up("accountants.losses.base", "accountants.renyi")
    assert up("accountants.pld", "accountants.prv")
    assert up("calibrate.plan", "optim.result")
    assert not up("optim.result", "calibrate.plan")
    assert not up("accountants.losses.base", "accountants.losses.quadrature")
