"""Sets for `defaults` beside those of the papers: simulated twins of hard cases, and public sets.

A twin has the shape of a public set on which a default once lost to a simple baseline. Each takes
the number of a draw and whether to be small, for quick runs.
"""

import csv
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from experiments import FloatArray, IntArray
from experiments.defaults_tasks import (
    ASKED,
    Problem,
    answered,
    better_first,
    people_of_cars,
    people_of_sushi,
    rewired,
    split_people,
    two_parts,
)
from experiments.xpgp import draw_pairs
from penchant.data import Comparisons
from penchant.datasets import (
    Cars,
    Cora,
    League,
    Sushi,
    data_folder,
    load_cars,
    load_cora,
    load_football,
    load_mq2008,
    load_preflib,
    load_sushi_b,
)
from penchant.errors import DataError
from penchant.io import GradedDocuments
from penchant.models import CommunityGP

Twin = Callable[[int, bool], Problem]
"""A number of a draw, and whether to be small → a problem."""

# Simulated twins.


def opinions(seed: int, small: bool) -> Problem:
    """Statements that people agree or disagree with, or pass: pairs of different answers.

    They are nearly free of noise: who agrees with a and not with b never says the opposite.
    """
    rng = np.random.default_rng([30, seed])
    n_users, n = (12, 40) if small else (200, 80)
    liked = rng.standard_normal(n) + 0.7 * rng.standard_normal((n_users, n))
    liked += 0.7 * rng.standard_normal((n_users, 2)) @ rng.standard_normal((2, n))
    answer = np.digitize(liked, [-0.7, 0.7]).astype(float)
    pairs = []
    for own in answer:
        seen = rng.choice(n, 30, replace=False)
        pairs.append(seen[better_first(own[seen], 45, rng)])
    user = np.repeat(np.arange(n_users), [len(each) for each in pairs])
    winner, loser = np.concatenate(pairs).T
    return split_people(None, user, winner, loser, rng)


def few_answers(kind: str, n_answers: int) -> Twin:
    """150 items with 8 features and answers without noise; a utility that is "linear", or falls
    with the distance from an ideal point ("nonlinear")."""

    def draw(seed: int, small: bool) -> Problem:
        rng = np.random.default_rng([31, seed])
        n = 50 if small else 150
        X, weights = rng.standard_normal((n, 8)), rng.standard_normal(8)
        utility = X @ weights if kind == "linear" else -((X - 1.5 * weights) ** 2).sum(axis=1)
        return Problem(*two_parts(better_first(utility, n_answers + ASKED, rng), n_answers, n), X)

    return draw


def reduced_words(n_pairs: int) -> Twin:
    """Papers whose words were reduced to 20 directions, and links that say more than these."""

    def draw(seed: int, small: bool) -> Problem:
        rng = np.random.default_rng([32, seed])
        n = 100 if small else 400
        topic = rng.integers(5, size=n)
        likely = 0.02 + 0.04 * (rng.random((5, 400)) < 0.3)
        words = (rng.random((n, 400)) < likely[topic]).astype(float)
        chance = np.where(topic[:, None] == topic, 10.0, 0.7) / n
        links = np.triu(rng.random((n, n)) < chance, 1).astype(float)
        X = TruncatedSVD(20, random_state=0).fit_transform(words)
        known, asked = (draw_pairs(topic == 0, size, rng) for size in (n_pairs, ASKED))
        return Problem(known, asked, X, relations={"links": links + links.T})

    return draw


def long_tailed_covariates(seed: int, small: bool) -> Problem:
    """Items that differ in a long-tailed number too, such as a length; 3 % answer at random."""
    rng = np.random.default_rng([33, seed])
    n, n_known = (15, 150) if small else (40, 1_000)
    first, second = _two_different(n, n_known + ASKED, rng)
    utility, length = rng.standard_normal(n), rng.standard_t(1.5, len(first))
    won = utility[first] - utility[second] + length + rng.logistic(size=len(first)) > 0
    won = np.where(rng.random(len(won)) < 0.03, rng.random(len(won)) < 0.5, won)
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    longer = np.where(won, length, -length)
    known, asked = (
        Comparisons.from_pairs(
            winner[rows], loser[rows], covariates={"length": longer[rows]}, items=range(n)
        )
        for rows in (slice(None, n_known), slice(n_known, None))
    )
    return Problem(known, asked)


def choices(whole: bool) -> Twin:
    """The best of four by people with tastes of their own and no groups; as they are, or broken
    into pairs. The same choices are held out of both."""

    def draw(seed: int, small: bool) -> Problem:
        rng = np.random.default_rng([34, seed])
        n_users, n_tasks, n = (30, 8, 12) if small else (150, 15, 24)
        X, tastes = rng.standard_normal((n, 5)), rng.standard_normal((n_users, 5))
        utility = (0.5 * rng.standard_normal(5) + 0.5 * tastes) @ X.T
        return _held_out_choices(X, *_best_of_four(utility, n_tasks, rng), whole, rng)

    return draw


def _best_of_four(
    utility: FloatArray, n_tasks: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Everybody's choices out of random sets: by whom, what, and out of which."""
    n_users, n = utility.shape
    user = np.repeat(np.arange(n_users), n_tasks)
    sets = rng.permuted(np.tile(np.arange(n), (len(user), 1)), axis=1)[:, :4]
    heard = utility[user[:, None], sets] + rng.gumbel(size=sets.shape)
    return user, sets[np.arange(len(sets)), heard.argmax(axis=1)], sets


VERDICT_HEAD = ("tastes", "answers", "draws", "supported", "personal", "too few", "communities")
NO_GROUPS = "no groups"
"""How tastes begin in which communities are a false alarm."""


class Crowd(NamedTuple):
    """People who choose. deviation: of their utilities; groups: 0 for everybody on their own."""

    n_users: int
    n_tasks: int
    n_items: int
    deviation: float
    groups: int = 0

    def choices(self, seed: int) -> Comparisons:
        """The best of four, many times by everybody."""
        rng = np.random.default_rng([41, seed])
        own = rng.standard_normal((self.groups or self.n_users, self.n_items))
        tastes = self.deviation * own[np.arange(self.n_users) % len(own)]
        utility = 0.5 * rng.standard_normal(self.n_items) + tastes
        user, chosen, sets = _best_of_four(utility, self.n_tasks, rng)
        return Comparisons.from_choices(
            chosen.tolist(), sets.tolist(), user=user.tolist(), items=range(self.n_items)
        )


CROWDS = {
    f"{NO_GROUPS}, four brands": Crowd(100, 24, 4, 3.0),
    f"{NO_GROUPS}, twelve items": Crowd(120, 12, 12, 2.0),
    "three groups, twelve items": Crowd(120, 12, 12, 2.0, groups=3),
}


def verdicts(n_draws: int) -> list[list[Any]]:
    """What `CommunityGP()` says of groups, of whole choices and of the same choices as pairs: rows
    of `VERDICT_HEAD`."""
    rows: list[list[Any]] = []
    for tastes, crowd in CROWDS.items():
        found: dict[str, list[tuple[str, int]]] = {"whole choices": [], "as pairs": []}
        for data in map(crowd.choices, range(n_draws)):
            for answers, each in zip(found, (data, data.as_pairs()), strict=True):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = CommunityGP(progress=False, random_state=0).fit(None, each)
                    found[answers].append((model.verdict_, model.support_.n_communities))
        for answers, said in found.items():
            counts = [
                sum(verdict == each for verdict, _ in said)
                for each in ("supported", "personal", "too few")
            ]
            mean = float(np.mean([number for _, number in said]))
            rows.append([tastes, answers, n_draws, *counts, mean])
    return rows


def _held_out_choices(
    X: Any, user: IntArray, chosen: IntArray, sets: IntArray, whole: bool, rng: np.random.Generator
) -> Problem:
    """A third of the choices held out."""
    data = Comparisons.from_choices(
        chosen.tolist(), sets.tolist(), user=user.tolist(), items=range(len(X))
    )
    train, test = data.split(1 / 3, random_state=rng)
    return Problem(train if whole else train.as_pairs(), test.as_pairs(), X)


def players(seed: int, small: bool) -> Problem:
    """700 players over four seasons, six in ten of them in each; the last matches are predicted."""
    rng = np.random.default_rng([35, seed])
    n, n_matches = (40, 100) if small else (700, 2_350)
    constant, path = np.sqrt(0.5) * rng.standard_normal((2, n))
    day, pairs = [], []
    for season in range(4):
        there = rng.permutation(n)[: int(0.6 * n)]
        for fortnight in range(20):
            skill = 1.5 * (constant + path)[there]
            pairs.append(there[answered(skill, n_matches // 20, rng)])
            day.append(np.full(n_matches // 20, 365.0 * season + 14.0 * fortnight))
            path = 0.97 * path + np.sqrt(0.5 * (1 - 0.97**2)) * rng.standard_normal(n)
    (winner, loser), time = np.concatenate(pairs).T, np.concatenate(day)
    is_last = time >= 365.0 * 3 + 14.0 * 16
    known, asked = (
        Comparisons.from_pairs(winner[rows], loser[rows], time=time[rows], items=range(n))
        for rows in (~is_last, is_last)
    )
    return Problem(known, asked)


def _two_different(n: int, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    first = rng.integers(n, size=size)
    return first, (first + 1 + rng.integers(n - 1, size=size)) % n


TWINS: dict[str, Twin] = {
    "twin: opinions": opinions,
    **{
        f"twin: {kind} utility, {n} exact answers": few_answers(kind, n)
        for kind in ("linear", "nonlinear")
        for n in (50, 200)
    },
    **{f"twin: reduced words and links, {n} pairs": reduced_words(n) for n in (20, 50)},
    "twin: long-tailed covariates": long_tailed_covariates,
    "twin: choices, whole": choices(True),
    "twin: choices, as pairs": choices(False),
    "twin: 700 players, 4 seasons": players,
}


# Public sets.


class PublicSet(NamedTuple):
    """How to read a public set, and how to draw a problem from it; small: for quick runs."""

    load: Callable[[], Any]
    draw: Callable[[Any, int, bool], Problem]


def sushi_people(sushi: Sushi, seed: int, small: bool) -> Problem:
    """15 of the pairs of each of 500 rankings."""
    some = replace(sushi, rankings=sushi.rankings[:15]) if small else sushi
    return people_of_sushi(some)(np.random.default_rng([2, seed]))


def described_car_buyers(cars: Cars, seed: int, small: bool) -> Problem:
    """Everybody's choices between cars, with features of the people."""
    drawn = people_of_cars(cars)(np.random.default_rng([2, seed]))
    return drawn._replace(user_features=cars.user_features)


def reduced_cora(cora: Cora, seed: int, small: bool) -> Problem:
    """50 pairs of a topic's papers and others; words reduced to 50 directions, and citations."""
    relevant = cora.labels == np.unique(cora.labels)[seed]
    rng = np.random.default_rng([seed, 0])
    X = TruncatedSVD(50, random_state=0).fit_transform(sparse.csr_array(cora.features, dtype=float))
    known, asked = (draw_pairs(relevant, size, rng) for size in (50, ASKED))
    return Problem(known, asked, X, relations={"cites": rewired(cora, "true")})


def graded_queries(documents: GradedDocuments, seed: int, small: bool) -> Problem:
    """Documents of 20 queries; 300 pairs of different grades, always of one query, are known."""
    rng = np.random.default_rng([36, seed])
    found: list[IntArray] = []
    kept: list[IntArray] = []
    for query in rng.permutation(np.unique(documents.qid)):
        rows = np.flatnonzero(documents.qid == query)
        better = np.argwhere(documents.y[rows][:, None] > documents.y[rows])
        if len(better) >= 20:
            n_before = sum(map(len, kept))
            found.append(n_before + rng.permutation(better)[:100])
            kept.append(rows)
        if len(kept) == (5 if small else 20):
            break
    pairs, rows = rng.permutation(np.concatenate(found)), np.concatenate(kept)
    X = np.asarray(documents.X[rows])
    n_known = min(300, len(pairs) // 2)
    return Problem(*two_parts(pairs, n_known, len(rows)), X[:, np.ptp(X, axis=0) > 0])


def league(games: League, seed: int, small: bool) -> Problem:
    """Four seasons of games that somebody won, a third of them held out; home is a covariate."""
    rows = np.flatnonzero((games.season >= (20 if small else 17)) & (games.goals != 0))
    data = games.take(rows).comparisons()
    return Problem(*data.split(1 / 3, random_state=np.random.default_rng([37, seed])))


def _read_columns(name: str) -> list[dict[str, str]]:
    path = data_folder() / "choices" / name
    if not path.is_file():
        raise DataError(f"there is no {path}: see docs/reproductions.md for where to get it")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def purchases(rows: list[dict[str, str]], seed: int, small: bool) -> Problem:
    """Of four brands of yogurt, the bought one against each other: price and advertisement are
    covariates. A third of the purchases held out."""
    brands = [name.removeprefix("price.") for name in rows[0] if name.startswith("price.")]
    some = rows[:300] if small else rows
    price, advert = (
        np.array([[float(row[f"{what}.{brand}"]) for brand in brands] for row in some])
        for what in ("price", "feat")
    )
    bought = np.array([brands.index(row["choice"]) for row in some])
    _, user = np.unique([int(row["id"]) for row in some], return_inverse=True)
    task, other = np.nonzero(np.arange(len(brands)) != bought[:, None])
    at = (task, bought[task])
    shown = {"price": (price[at] - price[task, other]), "advert": advert[at] - advert[task, other]}
    out = np.random.default_rng([38, seed]).random(len(some)) < 1 / 3
    known, asked = (
        Comparisons.from_pairs(
            bought[task[part]],
            other[part],
            user=user[task[part]],
            covariates={name: values[part] for name, values in shown.items()},
            items=range(len(brands)),
            users=range(int(user.max()) + 1),
        )
        for part in (~out[task], out[task])
    )
    return Problem(known, asked)


def contracts(whole: bool) -> Callable[[list[dict[str, str]], int, bool], Problem]:
    """Of four contracts for electricity, described by six attributes, the chosen one: of the first
    150 customers."""

    def draw(rows: list[dict[str, str]], seed: int, small: bool) -> Problem:
        some = [row for row in rows if int(row["id"]) <= (8 if small else 150)]
        names = ("pf", "cl", "loc", "wk", "tod", "seas")
        table = np.array([[float(row[name]) for name in names] for row in some])
        X, item = np.unique(table, axis=0, return_inverse=True)
        sets, user = item.reshape(-1, 4), np.array([int(row["id"]) for row in some[::4]]) - 1
        taken = np.array([row["choice"] == "TRUE" for row in some]).reshape(-1, 4).argmax(axis=1)
        chosen = sets[np.arange(len(sets)), taken]
        rng = np.random.default_rng([39, seed])
        different = np.array([len(set(each)) == 4 for each in sets.tolist()])
        sets, user, chosen = sets[different], user[different], chosen[different]
        return _held_out_choices(X, user, chosen, sets, whole, rng)

    return draw


def ballots(files: str, n_pairs: int) -> PublicSet:
    """Pairs out of everybody's ranking, a third of them held out; another file in each draw."""

    def load() -> list[Comparisons]:
        return [load_preflib(files.format(number)) for number in range(2, 7)]

    def draw(votes: list[Comparisons], seed: int, small: bool) -> Problem:
        rng = np.random.default_rng([40, seed])
        data = votes[seed % len(votes)]
        orders = [
            [data.item_index(place) for place in places]
            for places, _, count in data.named_rankings(tied=True) + data.named_rankings(tied=False)
            for _ in range(count)
        ]
        pairs: list[tuple[int, int, int]] = []
        for user, places in enumerate(orders[:30] if small else orders):
            own = [
                (user, int(a), int(b))
                for i, better in enumerate(places)
                for worse in places[i + 1 :]
                for a in better
                for b in worse
            ]
            pairs += [own[k] for k in rng.permutation(len(own))[:n_pairs]]
        user_of, winner, loser = np.array(pairs).T
        data_of = Comparisons.from_pairs(
            winner, loser, user=user_of, items=range(data.n_items), users=range(len(orders))
        )
        return Problem(*data_of.split(1 / 3, random_state=rng))

    return PublicSet(load, draw)


PUBLIC: Mapping[str, PublicSet] = {
    "sushi B": PublicSet(load_sushi_b, sushi_people),
    "cars 1, described people": PublicSet(load_cars, described_car_buyers),
    "breakfast": ballots("breakfast/00035-0000000{}.soc", 30),
    "Debian": ballots("debian/00002-0000000{}.toc", 15),
    "yogurt": PublicSet(lambda: _read_columns("yogurt.csv"), purchases),
    "electricity, whole": PublicSet(lambda: _read_columns("electricity.csv"), contracts(True)),
    "electricity, as pairs": PublicSet(lambda: _read_columns("electricity.csv"), contracts(False)),
    "football": PublicSet(load_football, league),
    "Cora, reduced words, 50 pairs": PublicSet(load_cora, reduced_cora),
    "MQ2008": PublicSet(lambda: load_mq2008().whole(), graded_queries),
}
