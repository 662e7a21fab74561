"""What the commands that check a claim have in common: a run as it is told, and signs of life."""

__all__: list[str] = []
