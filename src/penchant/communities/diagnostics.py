"""Whether chains can be trusted: traces, effective sample size, agreement between chains."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from penchant.communities.assignment import Answers
from penchant.communities.chains import Chain
from penchant.communities.draws import Draws
from penchant.metrics import adjusted_rand
from penchant.numerics.types import FloatArray, IntArray

ENOUGH_DRAWS = 10.0
"""Fewer effective draws than this deserve a warning."""
GOOD_AGREEMENT = 0.7
"""Chains whose partitions agree less than this (adjusted Rand) deserve a warning."""


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """How the chains went.

    n_communities, log_joint: traces of each chain from its start on, groups of any size counted.
    n_warmup: sweeps that were not used. effective_size: independent draws that the log joint's
    are worth, over all chains. rhat: spread of log joint between chains against that within,
    near 1 when they agree. agreement: adjusted Rand index between the chains' memberships, on
    average; NaN with one chain. split_rate, merge_rate: moves made of those tried.
    completed: False after an interrupt.
    """

    n_communities: tuple[IntArray, ...]
    log_joint: tuple[FloatArray, ...]
    n_warmup: int
    effective_size: float
    rhat: float
    agreement: float
    split_rate: float
    merge_rate: float
    completed: bool

    @property
    def converged(self) -> bool:
        """Whether nothing speaks against the chains having converged."""
        return self.advice() is None

    def advice(self) -> str | None:
        """What to tell a user whose chains did not settle; None if they did."""
        if not self.completed:
            done = [len(trace) - 1 for trace in self.log_joint]
            return (
                f"sampling was interrupted after {done} sweeps of {len(done)} chains: results rest "
                "on these; call resume(n_sweeps) for more"
            )
        if self.effective_size < ENOUGH_DRAWS:
            return (
                f"the draws are worth only {self.effective_size:.0f} independent ones: raise "
                "n_sweeps or call resume(n_sweeps)"
            )
        if self.agreement < GOOD_AGREEMENT:
            return (
                f"the chains found different communities (adjusted Rand {self.agreement:.2f}): "
                "outlines and number are uncertain, predictions average over them; raise n_sweeps, "
                "or take memberships as soft: tastes may shade into each other"
            )
        return None


def diagnose(
    chains: Sequence[Chain], draws: Draws, answers: Answers, n_warmup: int, completed: bool
) -> Diagnostics:
    """Look at all chains together."""
    traces = [chain.log_joint[min(n_warmup, len(chain.log_joint) - 1) + 1 :] for chain in chains]
    partitions = [
        draws.of_chain(chain.state.seed[-1]).membership(answers).argmax(axis=1) for chain in chains
    ]
    pairs = [adjusted_rand(a, b) for a, b in combinations(partitions, 2)]
    splits, made_splits, merges, made_merges = np.sum(
        [chain.state.n_moves for chain in chains], axis=0
    )
    return Diagnostics(
        n_communities=tuple(chain.n_communities for chain in chains),
        log_joint=tuple(chain.log_joint for chain in chains),
        n_warmup=n_warmup,
        effective_size=float(sum(effective_size(trace) for trace in traces)),
        rhat=potential_scale_reduction(traces),
        agreement=float(np.mean(pairs)) if pairs else float("nan"),
        split_rate=float(made_splits / max(splits, 1)),
        merge_rate=float(made_merges / max(merges, 1)),
        completed=completed,
    )


def effective_size(trace: FloatArray) -> float:
    """How many independent draws a trace is worth (Geyer's initial positive sequence).

    >>> effective_size(np.array([0.0, 1.0] * 50)) > 50
    True
    """
    n = len(trace)
    centred = trace - trace.mean() if n else trace
    power = float(centred @ centred)
    if n < 4 or power == 0.0:
        return float(n)
    correlation = np.correlate(centred, centred, "full")[n - 1 :] / power
    pairs = correlation[0 : n - 1 : 2] + correlation[1:n:2]
    negative = np.flatnonzero(pairs <= 0.0)
    last = negative[0] if len(negative) else len(pairs)
    return float(n / max(2.0 * pairs[:last].sum() - 1.0, 1.0 / n))


def potential_scale_reduction(traces: Sequence[FloatArray]) -> float:
    """Gelman and Rubin's R̂; NaN unless there are several traces of at least two values.

    >>> potential_scale_reduction([np.array([0.0, 1.0]), np.array([0.0, 1.0])]) < 1.0
    True
    """
    n = min((len(trace) for trace in traces), default=0)
    if len(traces) < 2 or n < 2:
        return float("nan")
    last = np.stack([trace[-n:] for trace in traces])
    within = float(last.var(axis=1, ddof=1).mean())
    between = float(last.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return 1.0 if between == 0.0 else float("inf")
    return float(np.sqrt((n - 1) / n + between / within))
