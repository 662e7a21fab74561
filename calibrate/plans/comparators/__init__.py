"""Plan builders of the methods that the papers of this package are compared with."""
