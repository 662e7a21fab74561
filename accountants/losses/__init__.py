"""Privacy losses: one family of dominating pairs a module, each with its log-MGF and its tilts."""
