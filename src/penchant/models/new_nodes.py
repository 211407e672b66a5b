"""New items of a relational model: nodes that its graphs have since got."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from penchant.gp import ItemProblem, Learned, Posterior
from penchant.kernels import Inputs, as_relations
from penchant.kernels.relations import Names, is_numbered, row_names
from penchant.models.features import FeatureColumns, named_relations, stacked
from penchant.models.validation import size_of_relations


def posterior_of_new_nodes(
    learned: Learned[ItemProblem], columns: FeatureColumns, X: Any, relations: Mapping[str, Any]
) -> Posterior:
    """New nodes change the graph, so the prior is rebuilt over old and new items together.

    The comparisons are the same, hence the sites are nearly so: a warm start settles them.
    """
    known = learned.problem.universe
    n_old, n_all = len(known), size_of_relations(relations)
    features, names = known.X, _all_names(learned.data.items, n_all, X, relations)
    if features is not None:
        features = stacked(features, columns.rows_of(names[n_old:], X, "items").X)
    graphs = named_relations(relations, names, "items")
    universe = Inputs(features, graphs, np.arange(n_all)).on(known.device)
    problem = replace(learned.problem, universe=universe)
    extended: Posterior = learned.settle(learned.data, problem).posterior
    return extended.at(universe.take(np.arange(n_old, n_all)))


def _all_names(known: Names, n: int, X: Any, relations: Mapping[str, Any]) -> Names:
    """The items of the fit and then the new ones, as X or else a graph names them."""
    named = [row_names(X), *(r.names for r in as_relations(relations, n).values())]
    old = set(map(str, known))
    for names in named:
        if names is not None and not is_numbered(names):
            new = tuple(name for name in names if str(name) not in old)
            return (*known, *new)
    return (*known, *range(len(known), n))
