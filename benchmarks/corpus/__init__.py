"""Questions about privacy with proved answers, and the scores of accountants on them."""
