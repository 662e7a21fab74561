"""Plan builders of private minimax optimizers."""
