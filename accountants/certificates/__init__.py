"""Bounds on delta that are proved in ball arithmetic and can be checked again from a document."""

__all__: list[str] = []
