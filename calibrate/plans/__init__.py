"""One plan builder an optimizer: from constants and a target to every noisy answer of a run."""
