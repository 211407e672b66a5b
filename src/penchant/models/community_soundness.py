"""Whether what a model file says of communities fits together; see `models.soundness`."""

import numpy as np

from penchant.communities import Chain, ChainState, Diagnostics, Draw, Draws, SearchReport
from penchant.data import Comparisons
from penchant.gp import Learned, Posterior
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.models.fields import Fields, check, is_whole


def speaks_of(fields: Fields, name: str, items: Inputs, data: Comparisons) -> None:
    """A part of a field must be about the items of the comparisons."""
    fields.need(name, len(items) == data.n_items, f"must be of the {data.n_items} items there")


@check("communities")
def _communities(fields: Fields) -> None:
    data, sampled = fields.made("data", Comparisons), fields.made("sampled", Comparisons)
    fields.need("sampled", sampled.n_items == data.n_items, "must have the items of `data`")
    theta = [*fields.made("kernel", Kernel).theta, *fields.made("likelihood", Likelihood).theta]
    fields.array("start", (len(theta),), "f")
    posteriors = fields.made("posteriors", tuple)
    for posterior in posteriors:
        known = fields.is_a("posteriors", posterior, Posterior)
        speaks_of(fields, "posteriors", known.universe, data)
    if fields.has("draws"):
        same = len(posteriors) == fields.made("draws", Draws).n_communities
        fields.need("draws", same, f"must report the {len(posteriors)} communities there are")
        fields.made("report", Diagnostics)
    else:
        fields.made("report", SearchReport)
    membership = fields.array("membership", (data.n_users, len(posteriors)), "f")
    sums = np.abs(membership.sum(axis=1) - 1.0).max(initial=0.0)
    fields.need(
        "membership",
        bool((membership >= 0).all()) and sums < 1e-6,
        "must have rows that sum to one",
    )
    if fields.has("n_elsewhere"):
        fields.whole("n_elsewhere")
    if fields.has("all_sizes"):
        sizes = fields.array("all_sizes", (len(posteriors),), "f")
        fields.need("all_sizes", bool((sizes >= 0).all() and sizes.sum() > 0), "must be sizes")
    for chain in fields.made("chains", tuple):
        utilities = fields.is_a("chains", chain, Chain).state.utilities
        fields.need("chains", utilities.shape[1] == data.n_items, "must be of the items")
    if fields.has("max_rank"):
        fields.whole("max_rank", 1)
    if fields.has("user_features"):
        fields.array("user_features", (data.n_users, None), "f")
    if fields.has("personal"):
        fields.made("personal", Learned)
    fields.number("communal_share", 0.0, 1.0)


@check("search")
def _search(fields: Fields) -> None:
    n_steps = len(fields.made("steps", tuple))
    for name in ("n_communities", "log_evidence"):
        same = len(fields.made(name, tuple)) == n_steps
        fields.need(name, same, f"must have one entry for each of the {n_steps} steps")


@check("chain")
def _chain(fields: Fields) -> None:
    fields.made("state", ChainState)
    fields.index("n_communities", None, len(fields.array("log_joint", (None,), "f")))
    for draw in fields.made("draws", tuple):
        fields.is_a("draws", draw, Draw)


@check("chain state")
def _chain_state(fields: Fields) -> None:
    K = len(fields.array("utilities", (None, None), "f"))
    fields.index("assignment", K)
    m = fields.array("tau", (K, None), "f").shape[1]
    fields.array("nu", (K, m), "f")
    fields.array("thetas", (K, len(fields.array("theta", (None,), "f"))), "f")
    fields.array("log_evidence", (K,), "f")
    fields.need("concentration", fields.number("concentration") > 0, "must be positive")
    fields.number("log_joint")
    fields.whole("sweep")
    for name, length in (("seed", None), ("n_moves", 4)):
        numbers = fields.made(name, tuple)
        right = length in (None, len(numbers)) and all(is_whole(k) and k >= 0 for k in numbers)
        fields.need(name, right, "must be whole numbers of at least 0")


@check("draws")
def _draws(fields: Fields) -> None:
    fields.made("likelihood", Likelihood)
    C, kept = fields.whole("n_communities", 1), fields.made("kept", tuple)
    fields.need("kept", len(kept) > 0, "must hold at least one")
    for draw in kept:
        labels = fields.is_a("kept", draw, Draw).labels
        fields.need("kept", int(labels.max()) < C, f"must have labels below {C}")


@check("draw")
def _draw(fields: Fields) -> None:
    sizes = fields.index("sizes", None)
    fields.need("sizes", len(sizes) > 0 and sizes.min() >= 1, "must be at least 1 each")
    K = len(sizes)
    fields.array("utilities", (K, None), "f")
    fields.array("likelihood_thetas", (K, None), "f")
    fields.array("is_supported", (K,), "b")
    fields.index("labels", None, K)
    fields.whole("chain")


@check("diagnostics")
def _diagnostics(fields: Fields) -> None:
    fields.whole("n_warmup")
    fields.made("completed", bool)
    for name in ("effective_size", "rhat", "agreement", "split_rate", "merge_rate"):
        fields.made(name, float, int)
    for name in ("n_communities", "log_joint"):
        for trace in fields.made(name, tuple):
            fields.is_a(name, trace, np.ndarray)
