"""Privacy of mechanisms that are chosen on the way: filters, odometers, dp-accounting accounts."""

__all__: list[str] = []
