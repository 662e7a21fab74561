"""Optimizers that look for second-order stationary points, and tests of such points."""
