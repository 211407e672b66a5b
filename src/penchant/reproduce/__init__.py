"""The papers' experiments, one module each, with our numbers beside the printed ones.

Every experiment has `run(quick=False, out=None, data=None)`: it returns its page as Markdown and
writes figures into the folder `out`. `data` is the folder of data sets. `results.produce` writes
the page too, and the table of all claims.
"""
