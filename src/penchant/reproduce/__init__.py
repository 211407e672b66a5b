"""The papers' experiments, one module each, with our numbers beside the printed ones.

Every module has `run(quick=False, out=None, data=None)`: it returns the result as Markdown and
writes figures into the folder `out`. `data` is the folder of data sets.
"""
