"""Contours for each layer of rare large losses."""

__all__: list[str] = []
