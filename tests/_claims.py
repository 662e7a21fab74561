"""Claims of tests/data/claims.toml and the schedules of their quantities."""

import tomllib

from _tree import DATA

from dpcal.calibrate.papers import Enumeration, Quantity, Schedule, theorems_of
from dpcal.calibrate.papers.claims.language import standalone
from dpcal.calibrate.papers.claims.notation import line

SECTIONS = tomllib.loads((DATA / "claims.toml").read_text(encoding="utf-8"))
STATUSES = ("PROVED", "REFUTED", "OPEN", "LOOSE", "DEFINITION")
CHECKS = {
    "all_but_one": Enumeration(lambda j: j != 7, range(10), complete=True),
    "halves": Enumeration(lambda size: size % 2 == 0, [2, 4], complete=True),
}


def theorems(text):
    """Return the claims of a text that may name a program."""
    return theorems_of(text, CHECKS)


def claims(section, status):
    """Return the claims of a section that have a status."""
    return theorems(SECTIONS[section].get(status, ""))


def schedule(section, text="", **more):
    """Return the quantities and settings of a section as a schedule, with claims of a text."""
    table = SECTIONS[section]
    units = table.get("units", {})
    quantities = tuple(
        Quantity(
            name,
            "",
            units.get(name, {}),
            range=values.removeprefix("whole "),
            whole=values.startswith("whole "),
        )
        for names, values in table["quantities"].items()
        for name in names.split()
    )
    parts = {
        "quantities": quantities,
        "settings": table.get("settings", ""),
        "claims": theorems(text),
    }
    return Schedule(name=section, **{**parts, **more})


def alone(text):
    """Return the claim of a line about ranges that the line gives."""
    return standalone(line(text, "c"))


def resolved(section, text):
    """Return the claim of a line, about the quantities and settings of a section."""
    return schedule(section).resolve(line(text, "c", CHECKS))
