"""Plans of the optimizers that look for second-order stationary points."""

__all__: list[str] = []
