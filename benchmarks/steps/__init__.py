"""Times of one private step, beside other ways to take it."""
