"""New items of a relational model: nodes that its graphs have since got."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from penchant.gp import ItemProblem, Learned, Posterior
from penchant.kernels import Inputs, as_relations
from penchant.models.features import FeatureColumns, stacked
from penchant.models.validation import size_of_relations


def posterior_of_new_nodes(
    learned: Learned[ItemProblem], columns: FeatureColumns, X: Any, relations: Mapping[str, Any]
) -> Posterior:
    """New nodes change the graph, so the prior is rebuilt over old and new items together.

    The comparisons are the same, hence the sites are nearly so: a warm start settles them.
    """
    known = learned.problem.universe
    n_old, n_all = len(known), size_of_relations(relations)
    features = known.X
    if features is not None:
        new = columns.rows(X, n_all - n_old, "items").X
        features = stacked(features, new)
    graphs, every = as_relations(relations, n_all), np.arange(n_all)
    universe = Inputs(features, graphs, every).on(known.device)
    problem = replace(learned.problem, universe=universe)
    extended: Posterior = learned.settle(learned.data, problem).posterior
    return extended.at(universe.take(np.arange(n_old, n_all)))
