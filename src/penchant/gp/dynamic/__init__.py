"""Utilities that drift: one Ornstein–Uhlenbeck path an item, around a constant of its own."""
