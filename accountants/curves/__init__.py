"""Readings of a whole privacy profile: many points, trade-off curves, other currencies."""

__all__ = ["conversions"]
