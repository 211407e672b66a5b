"""Toys are run by test_extension, in a process of their own."""

collect_ignore_glob = ["toys/*"]
