"""Which numbers make a good proof? Chosen in floats, by the kind of argument; never trusted."""

__all__: list[str] = []
