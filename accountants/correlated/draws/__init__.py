"""What do random draws say about delta? Estimators, simulation, and confidence bounds."""

__all__: list[str] = []
