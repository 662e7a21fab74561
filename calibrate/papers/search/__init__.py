"""The search for proofs: clever, and not trusted. Only what the kernel accepts is proved."""

__all__: list[str] = []
