"""Which delta do random draws confirm? Estimators, simulation, and confidence bounds."""

__all__: list[str] = []
