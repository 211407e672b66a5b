"""Numerical ground floor: linear algebra, stable tails, quadrature, randomness."""
