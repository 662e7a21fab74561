"""Plan builders of private minimax optimizers, and of the methods that they are compared with."""
