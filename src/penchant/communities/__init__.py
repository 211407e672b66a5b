"""Communities of taste: a Dirichlet-process mixture of Gaussian processes."""

from penchant.communities.chains import (
    LEARNING_SWEEPS,
    SAMPLERS,
    Chain,
    ChainPlan,
    ChainState,
    Diagnostics,
    Draw,
    Draws,
    Watch,
)
from penchant.communities.component import MixtureData, fit_community
from penchant.communities.contrasts import (
    attribute_slopes,
    directions,
    distinctiveness,
    feature_contrasts,
    item_agreement,
    value_win_rates,
)
from penchant.communities.data import (
    Answers,
    count_pairs,
    log_likelihoods,
    separate_pairs,
    some_of,
)
from penchant.communities.mixture import (
    FittedMixture,
    MixtureFitter,
    PersonalSettings,
    common_effects,
)
from penchant.communities.population import WITHIN, beside_effects, single_population
from penchant.communities.search import SearchReport, Step, find_communities, log_predictive
from penchant.communities.sharded import (
    ComponentTables,
    Members,
    MixturePart,
    add_members,
    answers_of_all,
    choose_communities,
    keys_of,
    memberships,
    settle_parts,
)
from penchant.communities.verdict import Support, judge

__all__ = [
    "LEARNING_SWEEPS",
    "SAMPLERS",
    "WITHIN",
    "Answers",
    "Chain",
    "ChainPlan",
    "ChainState",
    "ComponentTables",
    "Diagnostics",
    "Draw",
    "Draws",
    "FittedMixture",
    "Members",
    "MixtureData",
    "MixtureFitter",
    "MixturePart",
    "PersonalSettings",
    "SearchReport",
    "Step",
    "Support",
    "Watch",
    "add_members",
    "answers_of_all",
    "attribute_slopes",
    "beside_effects",
    "choose_communities",
    "common_effects",
    "count_pairs",
    "directions",
    "distinctiveness",
    "feature_contrasts",
    "find_communities",
    "fit_community",
    "item_agreement",
    "judge",
    "keys_of",
    "log_likelihoods",
    "log_predictive",
    "memberships",
    "separate_pairs",
    "settle_parts",
    "single_population",
    "some_of",
    "value_win_rates",
]
