"""One utility a user and item: the arrow."""
