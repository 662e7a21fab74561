"""Objectives: a mean of losses over records, with gradients per record and constants."""

__all__: list[str] = []
