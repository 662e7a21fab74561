"""Budget books: a total (epsilon, delta) for a data set, in a file that several processes share."""

__all__: list[str] = []
