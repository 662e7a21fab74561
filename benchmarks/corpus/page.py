"""Tables of scores in Markdown: verdicts by accountant, and by family of questions."""

from __future__ import annotations

from typing import Any

from benchmarks.corpus.scoring import VERDICTS

Score = dict[str, Any]


def markdown(scores: list[Score]) -> str:
    """Return the tables of the page as Markdown, without families that no peer answers."""
    head = ["accountant", "version", "rows", *VERDICTS, "median excess", "median time"]
    lines = [head, ["---"] * len(head)]
    for each in scores:
        totals = each["totals"]
        excess, seconds = totals["median_excess"], totals["median_seconds"]
        lines.append(
            [
                each["accountant"],
                each["version"],
                f"{each['rows']:,}",
                *(_bold(totals[name], name) for name in VERDICTS),
                "" if excess is None else f"{excess:.1e}",
                "" if seconds is None else f"{1000 * seconds:.0f} ms",
            ]
        )
    names = list(dict.fromkeys(name for each in scores for name in each["families"]))
    second = [["family", *(each["accountant"] for each in scores)], ["---"] * (len(scores) + 1)]
    for name in names:
        cells = [_cell(each["families"].get(name)) for each in scores]
        peers = [
            cell for each, cell in zip(scores, cells, strict=True) if each["package"] != "dpcal"
        ]
        if any(peers):
            second.append([name, *cells])
    return "\n\n".join(
        "\n".join("| " + " | ".join(cells) + " |" for cells in table) for table in (lines, second)
    )


def _bold(count: int, name: str) -> str:
    return f"**{count}**" if name == "below" and count else str(count)


def _cell(totals: dict[str, Any] | None) -> str:
    """Return numbers inside, above and below; nothing where no answer is a number."""
    if totals is None or not any(totals[name] for name in VERDICTS[:4]):
        return ""
    return " / ".join(_bold(totals[name], name) for name in ("inside", "above", "below"))
