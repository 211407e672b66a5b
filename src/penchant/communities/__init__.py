"""Communities of taste: a Dirichlet-process mixture of preference models."""
