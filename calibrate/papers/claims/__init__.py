"""Claims as data: the language they are written in, formulas, verdicts, errata, sources."""

__all__: list[str] = []
