"""False claims and true ones that look like them (``data/falsehoods.toml``), in one language."""

import tomllib

from _tree import DATA

from dpcal.calibrate.papers import Enumeration, Quantity, Schedule, auxiliary, settings_of
from dpcal.calibrate.papers.claims.language import theorems_of

QUANTITIES = (
    Quantity("n", "records", range="[1, oo)", whole=True),
    Quantity("m", "silos", range="[1, oo)", whole=True),
    Quantity("d", "dimension", range="[1, oo)", whole=True),
    Quantity("k", "index", range="[0, oo)", whole=True),
    Quantity("epsilon", "target", range="(0, 1]"),
    Quantity("delta", "target", range="(0, 1)"),
    Quantity("q", "rate", range="(0, 1]"),
    Quantity("kappa", "exponent", range="[1, 2]"),
    Quantity("G", "Lipschitz constant", {"loss": 1, "parameter": -1}),
    Quantity("L", "smoothness", {"loss": 1, "parameter": -2}),
    Quantity("F0", "gap", {"loss": 1}),
    Quantity("D", "diameter", {"parameter": 1}),
    Quantity("s", "a value"),
    *auxiliary("x y z a b c u"),
    *auxiliary("w v", range="(-oo, oo)"),
)
SETTINGS = settings_of("""
    T: n**2*epsilon**2/(8*d*log(1/delta)); up  # made up
    P: n/4; down  # made up
    sigma: G*sqrt(T*log(1/delta))/(n*epsilon)  # made up
    eta: D/(G*sqrt(T))  # made up
""")
CHECKS = {"all_but_one": Enumeration("", lambda j: j != 7, range(10), complete=True)}
FALSE, TRUE = tomllib.loads((DATA / "falsehoods.toml").read_text(encoding="utf-8")).values()


def schedule(text: str) -> Schedule:
    """Return claims as a schedule."""
    return Schedule(
        name="s",
        title="",
        citation="",
        quantities=QUANTITIES,
        settings=SETTINGS,
        claims=theorems_of(text, CHECKS),
    )
