"""Problems with known constants and optima, and methods that others are measured against."""
