"""Estimators of delta by random draws, simulation, and confidence bounds."""

__all__: list[str] = []
