"""Where the parts of a large data set are worked on: in this process, or by Ray's actors.

Work is `work(part, state, broadcast)`: it sees one part of the data, the arrays that the last
sweep left there, and what the driver tells everybody. What it returns is small, and comes back in
the order of the parts, so that `tree` adds it up the same way on every engine.
"""

from penchant.engines.engine import ENGINES, Engine, open_engine, tree
from penchant.engines.worker import Journal, Parts, ShardWorker, State, Work

__all__ = [
    "ENGINES",
    "Engine",
    "Journal",
    "Parts",
    "ShardWorker",
    "State",
    "Work",
    "open_engine",
    "tree",
]
