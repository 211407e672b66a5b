"""Defaults against every fixed choice of a prior: how much is lost where nobody tunes?

Features alone, links alone, both as they once began, item effects alone; the best of them differs
from set to set, and is not known before.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import NamedTuple

import numpy as np

from penchant.data import Comparisons
from penchant.datasets.folder import data_at
from penchant.datasets.items import load_cora, load_ohsumed, load_regression
from penchant.datasets.people import load_cars, load_movielens, load_sushi_a
from penchant.metrics import calibration
from penchant.numerics.types import FloatArray
from penchant.plots.calibration import plot_calibration
from penchant.reproduce.default_tasks import (
    BOTH,
    DEFAULTS,
    OLD_FEATURES,
    SINGLE,
    Contest,
    better_first,
    cora_rounds,
    crowd_rounds,
    ohsumed_rounds,
    regression_rounds,
    simulated_rounds,
)
from penchant.reproduce.page import Claim, Page, spread
from penchant.reproduce.stand_ins import (
    choices_like_cars,
    graded_documents,
    linked_papers,
    rankings_like_sushi,
)

WORST_REGRET, WORST_RATIO = 0.01, 1.1
"""What a default may lose in log-likelihood, and its error against the better single source."""
_ABOUT = (
    "`PreferenceGP()` as it is, against priors that a person could have fixed beforehand. *Regret* "
    "is the log-likelihood of the best choice less that of the defaults; the *ratio* is the "
    "defaults' error over that of the better single source. *Old start*: unit variances, in which "
    "a graph kernel outweighs features 25 times."
)
Rounds = Callable[[Page], Iterator[Contest]]


def run(
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> str:
    """The page of all sets; `quick` takes fewer rounds."""
    page = Page("Defaults where nobody tunes", _ABOUT, quick, out)
    found: dict[str, ContestScores] = {}
    with data_at(data):
        for name, rounds in TASKS.items():
            with page.part(name):
                found[name] = score(rounds(page))
                page.table(["choice", "error", "log-likelihood", "shares"], found[name].rows())
    _conclude(page, found)
    return page.text()


class ContestScores(NamedTuple):
    """By choice, (rounds,) errors and log-likelihoods, all probabilities, and mean shares."""

    errors: Mapping[str, FloatArray]
    log_likelihoods: Mapping[str, FloatArray]
    probs: Mapping[str, FloatArray]
    shares: Mapping[str, Mapping[str, float]]

    def rows(self) -> list[list[str]]:
        """Of a table, one line a choice."""
        told = {
            name: ", ".join(f"{source} {share:.2f}" for source, share in mean.items())
            for name, mean in self.shares.items()
        }
        return [
            [name, spread(self.errors[name]), spread(self.log_likelihoods[name]), told[name]]
            for name in self.errors
        ]

    @property
    def regret(self) -> float:
        """In log-likelihood, against the best choice at its old start, or of one source alone."""
        means = {name: values.mean() for name, values in self.log_likelihoods.items()}
        return float(max(means.values()) - means[DEFAULTS])

    @property
    def ratio(self) -> float:
        """Of errors, defaults to the better single source."""
        single = min(self.errors[name].mean() for name in SINGLE if name in self.errors)
        return float(self.errors[DEFAULTS].mean() / max(single, 1e-9))


def score(rounds: Iterable[Contest]) -> ContestScores:
    """Fit every choice in every round, and see what it foresees."""
    probs: dict[str, list[FloatArray]] = {}
    shares: dict[str, list[dict[str, float]]] = {}
    for each in rounds:
        for name, fit in each.fits.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fit()
            probs.setdefault(name, []).append(model.predict_proba(each.asked, each.users))
            told = getattr(model, "shares_", {})
            shares.setdefault(name, []).append({s: share.posterior for s, share in told.items()})
    return ContestScores(
        {name: np.array([_error(p) for p in each]) for name, each in probs.items()},
        {name: np.array([np.log(p).mean() for p in each]) for name, each in probs.items()},
        {name: np.concatenate(each) for name, each in probs.items()},
        {name: _mean_shares(each) for name, each in shares.items()},
    )


def _error(prob: FloatArray) -> float:
    return float(np.mean((prob < 0.5) + 0.5 * (prob == 0.5)))


def _mean_shares(told: list[dict[str, float]]) -> dict[str, float]:
    sources = dict.fromkeys(source for each in told for source in each)
    return {source: sum(each.get(source, 0.0) for each in told) / len(told) for source in sources}


def _conclude(page: Page, found: Mapping[str, ContestScores]) -> None:
    """All sets in one table, the claims, and calibration before and after."""
    with page.part("All sets"):
        rows = [
            [
                name,
                f"{s.errors[DEFAULTS].mean():.3f}",
                f"{s.ratio:.2f}",
                f"{s.log_likelihoods[DEFAULTS].mean():.3f}",
                max(s.log_likelihoods, key=lambda choice: s.log_likelihoods[choice].mean()),
                f"{s.regret:+.3f}",
            ]
            for name, s in found.items()
        ]
        page.table(
            ["set", "error", "ratio", "log-likelihood", "best choice", "regret"],
            rows,
        )
        for choice, file in ((BOTH, "before"), (DEFAULTS, "after")):
            parts = [s.probs.get(choice, s.probs.get(OLD_FEATURES)) for s in found.values()]
            stated = np.concatenate([part for part in parts if part is not None])
            ax = plot_calibration(calibration(stated))
            ax.set_title(f"{file}, all sets", fontsize=9)
            page.figure(ax.figure, f"defaults_{file}", f"Calibration {file} ({choice}).")
    ratio = max((s.ratio, name) for name, s in found.items())
    regret = max((s.regret, name) for name, s in found.items())
    page.claim(
        Claim(
            f"error never above {WORST_RATIO} × the better single source",
            f"at most {ratio[0]:.2f} × ({ratio[1]})",
            ratio[0] <= WORST_RATIO,
            "means over rounds",
        )
    )
    page.claim(
        Claim(
            f"log-likelihood within {WORST_REGRET} of the best choice",
            f"worst {regret[0]:+.3f} ({regret[1]})",
            regret[0] <= WORST_REGRET,
            "the best choice is known only afterwards",
        )
    )


def _cora(links: str, n_pairs: int) -> Rounds:
    def rounds(page: Page) -> Iterator[Contest]:
        cora = page.load(load_cora, linked_papers)
        n_repeats, n_topics = (1, 2) if page.quick else (5, None)
        return cora_rounds(cora, links, n_pairs, n_repeats, n_topics)

    return rounds


def _ohsumed(n_pairs: int) -> Rounds:
    def rounds(page: Page) -> Iterator[Contest]:
        documents = page.load(load_ohsumed, graded_documents).whole()
        n_queries, n_repeats = (2, 1) if page.quick else (10, 3)
        return ohsumed_rounds(documents, n_pairs, n_queries, n_repeats)

    return rounds


def _regression(name: str, n_pairs: int) -> Rounds:
    def rounds(page: Page) -> Iterator[Contest]:
        table = page.load(lambda: load_regression(name))
        return regression_rounds(table, n_pairs, 2 if page.quick else 10)

    return rounds


def _sushi(page: Page) -> Iterator[Contest]:
    sushi = page.load(load_sushi_a, rankings_like_sushi)
    some = sushi.rankings[:500]
    data = Comparisons.from_rankings(some.tolist(), users=range(len(some)))
    order = np.asarray(data.items, dtype=np.intp)
    return crowd_rounds(data, sushi.item_features[order], 100, 2 if page.quick else 10)


def _cars(page: Page) -> Iterator[Contest]:
    cars = page.load(load_cars, choices_like_cars)
    return crowd_rounds(cars.comparisons, cars.item_features, 100, 2 if page.quick else 10)


def _movielens(page: Page) -> Iterator[Contest]:
    """Two films that a person rated differently; everybody taken together."""
    films = page.load(load_movielens)
    rng = np.random.default_rng(0)
    pairs = [
        films.item[rows][better_first(films.rating[rows], 20, rng)]
        for rows in (np.flatnonzero(films.user == user) for user in range(300))
        if np.ptp(films.rating[rows]) > 0
    ]
    data = Comparisons.from_pairs(*np.concatenate(pairs).T, items=range(len(films.titles)))
    return crowd_rounds(data, films.genres, 1_000, 1 if page.quick else 3)


def _simulated(kind: str, n_pairs: int) -> Rounds:
    return lambda page: simulated_rounds(kind, n_pairs, 2 if page.quick else 20)


TASKS: dict[str, Rounds] = {
    **{
        f"Cora, {links} links, {n} pairs": _cora(links, n)
        for links in ("true", "other topics", "random")
        for n in (10, 50)
    },
    "OHSUMED, nearest neighbours, 30 pairs": _ohsumed(30),
    "OHSUMED, nearest neighbours, 100 pairs": _ohsumed(100),
    **{
        f"{name}, {n} pairs": _regression(name, n)
        for name in ("pyrim", "triazines", "machine.cpu", "housing")
        for n in (30, 300)
    },
    "sushi, everybody, 100 pairs": _sushi,
    "cars 1, everybody, 100 pairs": _cars,
    "MovieLens, everybody, 1,000 pairs": _movielens,
    **{
        f"simulated, {kind}, {n} pairs": _simulated(kind, n)
        for kind in ("both tell", "links mislead", "only links tell")
        for n in (20, 200)
    },
}
"""Every set by name: what is given the page and yields rounds. Other models join by a line."""
