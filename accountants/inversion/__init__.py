"""From the log-MGF of a sum of privacy losses to delta at an epsilon, with every error bounded."""

__all__: list[str] = []
