"""Communities of taste: a Dirichlet-process mixture of Gaussian processes."""

from penchant.communities.assignment import Answers, log_likelihoods, some_of
from penchant.communities.chains import Chain, ChainPlan, Watch
from penchant.communities.diagnostics import Diagnostics
from penchant.communities.draws import Draw, Draws
from penchant.communities.effects import beside_effects, common_effects
from penchant.communities.finding import Finding, PersonalTaste
from penchant.communities.found import Found
from penchant.communities.insight import (
    attribute_slopes,
    directions,
    distinctiveness,
    feature_contrasts,
    item_agreement,
    value_win_rates,
)
from penchant.communities.mixture import SearchReport, Step, find_communities
from penchant.communities.one_taste import one_taste
from penchant.communities.samplers import SAMPLERS, ChainState
from penchant.communities.sharded import (
    CrowdPart,
    Members,
    Views,
    add_members,
    answers_of_all,
    choose_communities,
    keys_of,
    memberships,
    settle_parts,
)
from penchant.communities.taste import Crowd
from penchant.communities.update import LEARNING_SWEEPS
from penchant.communities.utility import Mixture, fit_community
from penchant.communities.variation import WITHIN
from penchant.communities.verdict import Support, judge

__all__ = [
    "LEARNING_SWEEPS",
    "SAMPLERS",
    "WITHIN",
    "Answers",
    "Chain",
    "ChainPlan",
    "ChainState",
    "Crowd",
    "CrowdPart",
    "Diagnostics",
    "Draw",
    "Draws",
    "Finding",
    "Found",
    "Members",
    "Mixture",
    "PersonalTaste",
    "SearchReport",
    "Step",
    "Support",
    "Views",
    "Watch",
    "add_members",
    "answers_of_all",
    "attribute_slopes",
    "beside_effects",
    "choose_communities",
    "common_effects",
    "directions",
    "distinctiveness",
    "feature_contrasts",
    "find_communities",
    "fit_community",
    "item_agreement",
    "judge",
    "keys_of",
    "log_likelihoods",
    "memberships",
    "one_taste",
    "settle_parts",
    "some_of",
    "value_win_rates",
]
