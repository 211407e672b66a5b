"""Shapes of files that comparisons and features come in: one file a shape.

Every module here is loaded when tables are recognised: a new one needs no list to stand in.
"""
