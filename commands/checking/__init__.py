"""What commands have in common: a run as it is told, signs of life, and what they print."""

__all__: list[str] = []
