"""Compiled kernels."""

__all__: list[str] = []
