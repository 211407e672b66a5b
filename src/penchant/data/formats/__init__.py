"""Shapes of files that comparisons and features come in: one file a shape."""
