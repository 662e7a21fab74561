"""Whether what is claimed of a run holds."""
