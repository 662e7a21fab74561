"""Checks, roots, files and late imports, for the package's own use."""

__all__: list[str] = []
