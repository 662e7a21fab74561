"""Methods that the recommended optimizers are compared with; they run, and nothing advises them."""

__all__: list[str] = []
