"""Plans of the optimizers that look for second-order stationary points."""
