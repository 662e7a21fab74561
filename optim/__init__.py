"""Private optimizers."""
