"""Whether communities are real, by evidence, two halves of the votes and simulated crowds.

Three tests, each against what a search finds where there are no communities:

* evidence of the communities against one population with personal deviations, whose covariance is
  free along the main directions of disagreement; of pairs broken out of choices, over their design
  effect;
* agreement of the memberships found from either half of everybody's votes, above that in a crowd
  simulated from the one-population model with the same questions (held-out accuracy cannot tell:
  small groups fit their own members' votes). Item random effects are the same in both halves, so
  where they are large the halves are of votes about different items, and pairs broken out of one
  choice are never in both;
* power: where no communities are supported, whether a search would have found two.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from penchant.communities.component import MixtureData
from penchant.communities.data import Answers
from penchant.communities.population import (
    CLEAR_EVIDENCE,
    SinglePopulation,
    design_effect,
    item_effect_share,
    single_population,
    with_item_effects,
)
from penchant.communities.search import SearchResult, find_communities
from penchant.data import Comparisons
from penchant.likelihoods import Gaussian, Outcomes
from penchant.metrics import adjusted_rand
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import BoolArray, FloatArray, IntArray

CLEAR_AGREEMENT, MARGIN = 0.005, 0.25
"""The halves' adjusted Rand index must exceed that of the simulated crowd by so much, and by a
share of it, or, where even that crowd nearly agrees, of what it lacks to one."""
MODES_EVIDENCE = 3.0
"""Nats by which communities whose members deviate must beat one population: fewer than without
deviations, since the prior of the spread is the one population's, which penalises narrower ones;
twice as many by pairs broken out of choices, whose design effect is estimated."""
LARGE_ITEM_EFFECT = 0.05
"""Share of the noise in item random effects from which on halves are about different items."""


Halving = Callable[[Answers, np.random.Generator], list[sparse.csr_array]]


class Support(NamedTuple):
    """Whether communities are real, and by what numbers.

    evidence: nats for the communities, against one taste with personal deviations;
    personal: nats for personal deviations, against one taste for all;
    agreement, by_chance: adjusted Rand index of two halves of the votes, and of a simulated crowd
    without communities (NaN where not needed); detectable: whether two communities would have
    been found with these questions (None where not needed).
    """

    verdict: Literal["supported", "personal", "too few"]
    sentence: str
    n_communities: int
    evidence: float
    personal: float
    agreement: float = float("nan")
    by_chance: float = float("nan")
    detectable: bool | None = None


def judge(result: SearchResult, random_state: RandomState = 0) -> Support:
    """Whether the communities of a search are real; it takes a few more searches."""
    rng = as_rng(random_state)
    mixture, single = result.allocation.mixture, single_population(result)
    is_broken = mixture.answers.are_broken_choices
    repeated = design_effect(single) if is_broken else 1.0
    evidence = (result.objective - single.evidence) / repeated
    found = Support("personal", "", result.n_communities, evidence, single.personal)
    if result.n_communities > 1:
        clear = evidence > CLEAR_EVIDENCE
        if not clear:
            evidence = max(evidence, single.modes_of(result)[1] / repeated)
            found = found._replace(evidence=evidence)
            clear = evidence > MODES_EVIDENCE * (2.0 if is_broken else 1.0)
        if clear:
            learned = replace(mixture, hyper=result.hyper)
            simulated = replace(learned, answers=simulate_population(single, rng))
            by_item = item_effect_share(single) > LARGE_ITEM_EFFECT
            halve = halve_items if by_item else partial(halve_votes, by_choice=is_broken)
            found = found._replace(
                agreement=agreement_of_halves(learned, result.n_communities, halve, rng),
                by_chance=agreement_of_halves(simulated, result.n_communities, halve, rng),
            )
            chance = max(found.by_chance, 0.0)
            if found.agreement > chance + MARGIN * min(chance, 1.0 - chance) + CLEAR_AGREEMENT:
                return _with_sentence(found._replace(verdict="supported"))
    detectable = would_show_two(single, rng)
    found = found._replace(detectable=detectable)
    return _with_sentence(found if detectable else found._replace(verdict="too few"))


def _with_sentence(found: Support) -> Support:
    if found.verdict == "supported":
        said = (
            f"{found.n_communities} communities, well supported: {found.evidence:.0f} nats better "
            f"than one taste with personal differences, and two halves of the votes agree "
            f"(adjusted Rand {found.agreement:.2f}, by chance {found.by_chance:.2f})"
        )
    elif found.verdict == "too few":
        said = "too few votes to tell whether there are communities"
    elif found.personal > CLEAR_EVIDENCE:
        said = "tastes differ from person to person without falling into groups"
    else:
        said = "one taste fits all as far as the votes tell: no groups"
    return found._replace(sentence=said)


def simulate_population(single: SinglePopulation, rng: np.random.Generator) -> Answers:
    """Answers to the same questions by as many people, without communities."""
    votes, modes = single.effects.votes, single.modes
    own = rng.multivariate_normal(modes.means[0], modes.spread, votes.n_users)
    g = with_item_effects(single, votes.differences(own), rng)
    return draw_answers(single.allocation.mixture, g, rng)


def would_show_two(single: SinglePopulation, rng: np.random.Generator) -> bool:
    """Whether the search would find two equal communities with the same questions.

    They differ by as much as users deviate along their widest direction or, where users hardly
    deviate, are two draws from the prior.
    """
    model, votes = single.allocation.model, single.effects.votes
    if single.personal > CLEAR_EVIDENCE:
        values, vectors = np.linalg.eigh(single.modes.spread)
        side = np.where(np.arange(votes.n_users) % 2, 1.0, -1.0)
        own = single.modes.means[0] + side[:, None] * np.sqrt(values[-1]) * vectors[:, -1]
        g = votes.differences(own)
    else:
        z = rng.standard_normal((model.prior.rank, 2))
        tastes = model.prior.design.forward(model.prior.points(z))
        answers = model.mixture.answers
        g = tastes[answers.counts.indices, answers.user % 2]
    simulated = replace(model.mixture, answers=draw_answers(model.mixture, g, rng))
    return find_communities(simulated).n_communities > 1


def agreement_of_halves(
    mixture: MixtureData, n_communities: int, halve: Halving, rng: np.random.Generator
) -> float:
    """Adjusted Rand index of the communities found from either half of everybody's votes."""
    halves = halve(mixture.answers, rng)
    present = np.logical_and(*(np.diff(counts.indptr) > 0 for counts in halves))
    if present.sum() < max(n_communities, 2):
        return 0.0
    labels = []
    for counts in halves:
        part = replace(mixture, answers=replace(mixture.answers, counts=counts))
        found = find_communities(part, n_communities=n_communities, learn_parameters=False)
        labels.append(found.labels[present])
    return adjusted_rand(*labels)


def halve_votes(
    answers: Answers, rng: np.random.Generator, by_choice: bool = False
) -> list[sparse.csr_array]:
    """Every user's votes dealt out at random into two halves; by_choice: those with one winner, as
    of one choice, into the same."""
    at = _votes(answers)
    user, answer, task = answers.user[at], answers.counts.indices[at], np.arange(len(at))
    if by_choice:
        copy = task - np.searchsorted(at, at)
        said = np.column_stack([user, answers.winner[answer], copy])
        task = np.unique(said, axis=0, return_inverse=True)[1].ravel()
    first = np.unique(task, return_index=True)[1]
    who, rank = user[first], np.empty(len(first), dtype=np.intp)
    rank[np.lexsort((rng.random(len(who)), who))] = np.arange(len(who)) - np.searchsorted(who, who)
    entries = np.ones(len(user), np.float32), (user, answer)
    votes = sparse.coo_array(entries, shape=answers.counts.shape)
    return _parts(votes, *(rank[task] % 2 == half for half in (0, 1)))


def halve_items(answers: Answers, rng: np.random.Generator) -> list[sparse.csr_array]:
    """Every user's items dealt out at random to two sides; votes across are in neither half."""
    votes = answers.counts.tocoo()
    side = rng.random((answers.n_users, 1 + max(answers.winner.max(), answers.loser.max()))) < 0.5
    of_winner, of_loser = (side[votes.row, ends[votes.col]] for ends in answers.keys)
    return _parts(votes, of_winner & of_loser, ~(of_winner | of_loser))


def _parts(votes: sparse.coo_array, *parts: BoolArray) -> list[sparse.csr_array]:
    entries = ((votes.data[p], (votes.row[p], votes.col[p])) for p in parts)
    return [sparse.csr_array(each, shape=votes.shape) for each in entries]


def _votes(answers: Answers) -> IntArray:
    """The stored count that every single vote is part of, sorted by user."""
    times = np.rint(answers.counts.data).astype(np.intp)
    return np.repeat(np.arange(len(times)), times)


def draw_answers(mixture: MixtureData, g: FloatArray, rng: np.random.Generator) -> Answers:
    """New answers to everybody's questions, where the differences are g, one a stored count."""
    answers, likelihood = mixture.answers, mixture.hyper.likelihood
    at = _votes(answers)
    user, answer, g = answers.user[at], answers.counts.indices[at], g[at]
    winner, loser = answers.winner[answer], answers.loser[answer]
    if isinstance(likelihood, Gaussian):
        margin = g + np.sqrt(likelihood.noise) * rng.standard_normal(len(g))
        entries = np.ones(len(g), np.float32), (user, np.arange(len(g)))
        single = sparse.csr_array(entries, shape=(answers.n_users, len(g)))
        return Answers(single, winner, loser, Outcomes(margin=margin))
    outcome = likelihood.draw(g, rng)
    lost = outcome < 0
    data = Comparisons.from_pairs(
        np.where(lost, loser, winner),
        np.where(lost, winner, loser),
        user=user,
        tie=outcome == 0 if likelihood.n_answers == 3 else None,
        items=range(len(mixture.items)),
        users=range(answers.n_users),
    )
    return Answers.of(data)
