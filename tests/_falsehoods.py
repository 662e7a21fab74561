"""False claims and true ones that look like them (``data/falsehoods.toml``), in one language."""

import tomllib

from _tree import DATA

from dpcal.calibrate.papers import Enumeration, Quantity, Schedule, auxiliary, settings_of
from dpcal.calibrate.papers.claims.language import theorems_of

DOCUMENT = tomllib.loads((DATA / "falsehoods.toml").read_text(encoding="utf-8"))
FALSE, TRUE = DOCUMENT["false"], DOCUMENT["true"]
QUANTITIES = (
    *(Quantity(**row) for row in DOCUMENT["quantities"]),
    *auxiliary("x y z a b c u"),
    *auxiliary("w v", range="(-oo, oo)"),
)
CHECKS = {"all_but_one": Enumeration("", lambda j: j != 7, range(10), complete=True)}


def schedule(text: str) -> Schedule:
    """Return claims as a schedule."""
    return Schedule(
        name="s",
        title="",
        citation="",
        quantities=QUANTITIES,
        settings=settings_of(DOCUMENT["settings"]),
        claims=theorems_of(text, CHECKS),
    )
