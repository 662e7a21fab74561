"""The search for proofs. It is not trusted: the kernel must accept each proof."""

__all__: list[str] = []
