"""What all packages share, and nobody else should import: checks, roots, files, late imports."""

__all__: list[str] = []
