"""Optimizers that look for second-order stationary points, and tests of such points."""

__all__: list[str] = []
