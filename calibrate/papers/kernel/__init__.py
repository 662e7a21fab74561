"""The trusted part of the audit: terms, normal forms, balls, rules, and the checker over them."""

__all__: list[str] = []
