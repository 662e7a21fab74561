"""Annex: how well, and how fast, would a plan do? Predicted errors and processor seconds."""

__all__: list[str] = []
