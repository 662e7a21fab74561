"""Whole runs over a loader's batches: shuffled epochs, replaced records, rounds of an epoch."""

__all__: list[str] = []
