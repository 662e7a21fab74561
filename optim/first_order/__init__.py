"""First-order optimizers: one file an algorithm, each a loop that reads like its pseudocode."""

__all__: list[str] = []
