"""Defaults against simple baselines and every fixed choice of a prior: what do they lose untuned?

The best fixed choice (features alone, links alone, item effects alone, a covariance) differs from
set to set, and is not known before. Baselines are ridge logistic regressions.

One set or a group of sets alone, without fixed choices of a prior:

    python -c "from experiments.defaults import table; table(['twin:', 'cars'], n_rounds=5)"
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from experiments import FloatArray
from experiments.data import (
    choices_like_cars,
    graded_documents,
    linked_papers,
    rankings_like_sushi,
)
from experiments.defaults_tasks import (
    CHOSEN,
    DEFAULTS,
    HEAD,
    JUDGED,
    MOVIELENS_FILMS,
    ContestScores,
    Draw,
    FilmRatings,
    Problem,
    better_first,
    by_chance,
    cora_rounds,
    crowd_rounds,
    ohsumed_rounds,
    people_of_cars,
    people_of_movielens,
    people_of_sushi,
    people_rounds,
    regression_rounds,
    score,
    simulated_people,
    simulated_rounds,
    told_slope,
)
from experiments.defaults_twins import (
    NO_GROUPS,
    PUBLIC,
    TWINS,
    VERDICT_HEAD,
    PublicSet,
    Twin,
    verdicts,
)
from experiments.page import Claim, Need, Page, markdown, spread, standard_error
from penchant.data import Comparisons
from penchant.datasets import (
    MovieLens,
    load_cars,
    load_cora,
    load_movielens,
    load_ohsumed,
    load_regression,
    load_sushi_a,
)
from penchant.errors import DataError
from penchant.metrics import calibration
from penchant.models import MultiUserGP
from penchant.plots import plot_calibration

DATA = (
    *("cars", "choices", "cora", "football", "movielens_100k", "mq2008", "ohsumed", "preflib"),
    *("regression", "sushi"),
)
"""Folders of the public data that a full run needs."""

# Why models of people are underconfident about pairs made of ratings: few steps, and no ties.
#
# A person who rates b below a, in five steps, has hardly room left to rate c below b. Pairs of
# films that are rated differently predict each other better than continuous utilities can, however
# little noise there is. The effect vanishes if ratings are not rounded, or if ties are kept.

RATINGS = "Ratings turned into pairs"
_ABOUT_FILMS = """Films are rated in five steps, and pairs of the same rating are left out of the
set above.
Who has put b below a has then hardly room left to put c below b: such pairs foretell each other
better than continuous utilities can, even without any noise, and a model of these is too timid.
Below are simulated ratings of the same films by the same people, as they are and rounded to as many
of each step, and ties kept, with `likelihood="ties"`. Scores are of pairs of different ratings."""
_HEAD = ("ratings", "ties", "pairs", "error", "log-likelihood", "ECE", "over")
DIRECTIONS = 3
"""Rank of simulated tastes."""


def explain_films(page: Page) -> None:
    """Whether tastes or the steps of a scale make the model underconfident."""
    with page.part(RATINGS):
        page.say(_ABOUT_FILMS.replace("\n", " "))
        films = page.load(load_movielens)
        page.table(_HEAD, [trial.row() for trial in film_trials(films)])


class FilmTrial(NamedTuple):
    """Ratings, what they are called, and whether pairs of the same rating stay as ties."""

    name: str
    rated: FilmRatings
    keeps_ties: bool

    def row(self) -> list[str]:
        """Of a table: how `MultiUserGP()` predicts a third of the pairs of different ratings."""
        train, test = self._split(np.random.default_rng([2, 0]))
        likelihood = "ties" if self.keeps_ties else "probit"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MultiUserGP(likelihood=likelihood, progress=False).fit(None, train)
        asked = ~test.tie
        pairs = np.column_stack([test.winner, test.loser])[asked]
        p = model.predict_proba(pairs, np.asarray(test.user)[asked])
        right = float(np.mean(p > 0.5))
        return [
            self.name,
            "kept" if self.keeps_ties else "left out",
            f"{train.n_comparisons + test.n_comparisons:,}",
            f"{1.0 - right:.3f}",
            f"{np.log(p).mean():.3f}",
            f"{calibration(p).error:.3f} ({by_chance(p):.3f})",
            f"{np.maximum(p, 1.0 - p).mean() - right:+.3f}",
        ]

    def _split(self, rng: np.random.Generator) -> tuple[Comparisons, Comparisons]:
        user, film, rating, _ = self.rated
        best, worst = self.rated.pairs(rng)
        tie = rating[best] == rating[worst]
        if not self.keeps_ties:
            best, worst, tie = best[~tie], worst[~tie], None
        data = Comparisons.from_pairs(
            film[best],
            film[worst],
            user=user[best],
            tie=tie,
            items=range(MOVIELENS_FILMS),
            users=range(int(user.max()) + 1),
        )
        return data.split(1 / 3, random_state=rng)


def film_trials(films: MovieLens) -> Iterator[FilmTrial]:
    """The real ratings and simulated ones of the same films by the same people."""
    rated = FilmRatings.of(films)
    whole = rated._replace(rating=_simulated_ratings(rated, np.random.default_rng(5)))
    shares = np.cumsum(np.unique_counts(rated.rating).counts) / len(rated.rating)
    steps = np.quantile(whole.rating, shares[:-1])
    rounded = rated._replace(rating=np.digitize(whole.rating, steps).astype(np.float64))
    yield FilmTrial("simulated, not rounded", whole, False)
    for name, each in (("simulated, in five steps", rounded), ("MovieLens", rated)):
        yield FilmTrial(name, each, False)
        yield FilmTrial(name, each, True)


def _simulated_ratings(rated: FilmRatings, rng: np.random.Generator) -> FloatArray:
    """A common taste, directions in which people differ, tastes of their own, and strictness."""
    n_users, n = int(rated.user.max()) + 1, MOVIELENS_FILMS
    common = 0.5 * rng.standard_normal(n)
    directions = 0.35 * rng.standard_normal((DIRECTIONS, n))
    tastes = common + rng.standard_normal((n_users, DIRECTIONS)) @ directions
    tastes += 0.8 * rng.standard_normal((n_users, n)) + 0.5 * rng.standard_normal((n_users, 1))
    utilities: FloatArray = tastes[rated.user, rated.film]
    return utilities


WORST_REGRET, WORST_RATIO = 0.01, 1.1
"""What a default may lose in log-likelihood, and its error against the better single source."""
WORST_CALIBRATION, WORST_CONFIDENCE = 0.02, 0.01
"""Of models of many people: the mean distance of frequencies from what was stated, in ten bins, and
confidence less accuracy either way."""
PEOPLE = "each person"
"""In the names of sets in which everybody has a taste of their own."""
_ABOUT = (
    "`PreferenceGP()` and, where answers tell people apart, `MultiUserGP()`, `CommunityGP()` and "
    "what `choose_model` names, as they are, against ridge logistic regressions: on items (*BT*), "
    "on items and user × item (*BT+u*), on features and, where cross-validation says so, items "
    "(*BT+features*). Their ridge is chosen by cross-validation of the known answers. Differences "
    "have paired standard errors over rounds. *Slope*: of a logistic regression of held-out "
    "answers on the model's logits; above 1 is too timid, below too bold, and 20 where none was "
    "predicted wrongly; its error is by leaving out rounds. *Twins* are simulated "
    "in the shape of sets on which a default once lost. "
    "The sets of earlier runs have priors, too, that a person could have fixed beforehand. "
    "*Regret* is the log-likelihood of the best choice less that of the defaults, and for "
    "`choose_model` that of the best model less that of the chosen one; the *ratio* is "
    "the defaults' error over that of the better single source. *Old start*: unit variances, in "
    "which a graph kernel outweighs features 25 times. *ECE*: how far observed frequencies are "
    "from what was stated, and in brackets how far they are expected to be by chance alone, were "
    "every statement right; *over* is confidence less accuracy. Cora: one round a topic, of seven "
    "with its own links and of three with rewired ones. Claims are this project's own aims, not a "
    "paper's."
)
Rounds = Callable[[Page], Iterator[Problem]]
ROUNDS = 5
"""Of sets of people, twins and further public sets."""


def run(quick: bool = False, out: str | PathLike[str] | None = None) -> str:
    """The page of all sets; `quick` takes fewer rounds."""
    page = Page("Defaults where nobody tunes", _ABOUT, quick, out)
    found: dict[str, ContestScores] = {}
    stand_ins = missing_sets() if quick else {}
    for task, rounds in TASKS.items():
        public, comma, rest = task.partition(",")
        name = stand_ins.get(public, public) + comma + rest
        with page.part(name):
            found[name] = score(rounds(page), fixed=task not in (*TWINS, *PUBLIC))
            page.table(HEAD, found[name].rows())
    if not quick:
        explain_films(page)
    _conclude(page, found)
    _judge_groups(page)
    return page.text()


_STAND_INS: dict[str, tuple[Callable[[], object], str]] = {
    "Cora": (load_cora, "simulated papers"),
    "OHSUMED": (load_ohsumed, "simulated documents"),
    "sushi": (load_sushi_a, "simulated rankings"),
    "cars 1": (load_cars, "simulated choices"),
}


def missing_sets() -> dict[str, str]:
    """Public sets that are not there, and what their simulated stand-ins are called."""
    missing = {}
    for public, (load, stand_in) in _STAND_INS.items():
        try:
            load()
        except DataError:
            missing[public] = stand_in
    return missing


def _conclude(page: Page, found: Mapping[str, ContestScores]) -> None:
    """All sets against baselines and fixed choices, the claims, calibration before and after."""
    with page.part("Against simple baselines"):
        page.table(BASELINE_HEAD, [row for name, s in found.items() for row in _judged(name, s)])
    claim_baselines(page, found)
    found = {name: s for name, s in found.items() if s.has_fixed}
    people = {name: s for name, s in found.items() if PEOPLE in name}
    with page.part("Against fixed choices"):
        rows = [
            [
                name,
                f"{s.errors[DEFAULTS].mean():.3f}",
                f"{s.ratio:.2f}",
                f"{s.log_likelihoods[DEFAULTS].mean():.3f}",
                s.best_fixed,
                f"{s.regret:+.3f}",
            ]
            for name, s in found.items()
        ]
        page.table(["set", "error", "ratio", "log-likelihood", "best choice", "regret"], rows)
        pooled = {name: s for name, s in found.items() if name not in people}
        for group, sets in (("everybody", pooled), ("people", people)):
            if sets:
                caption = f"Calibration of what once was the default, and of today's ({group})."
                page.figure(_drawn(sets), f"defaults_calibration_{group}", caption)
    _claim_regret(page, found)
    _claim_calibration(page, people)


# Whether there are groups, of whole choices and of their pairs.

FALSE_ALARMS = 0.05
_ABOUT_GROUPS = (
    "`CommunityGP().verdict_` of best-of-four choices, and of the same choices broken into pairs, "
    "which do not know that they belong together."
)


def _judge_groups(page: Page) -> None:
    with page.part("Groups in choices"):
        page.say(_ABOUT_GROUPS)
        rows = verdicts(1 if page.quick else 20)
        page.table(VERDICT_HEAD, [[*map(str, row[:-1]), f"{row[-1]:.1f}"] for row in rows])
    alarms = {
        f"{tastes}, {answers}": supported / n_draws
        for tastes, answers, n_draws, supported, *_ in rows
        if tastes.startswith(NO_GROUPS)
    }
    page.claim(
        Claim(
            f"groups that are not there are reported in at most {FALSE_ALARMS:.0%} of draws",
            ", ".join(f"{answers} {share:.0%}" for answers, share in alarms.items()),
            tuple(Need(answers, share, "≤", FALSE_ALARMS) for answers, share in alarms.items()),
            f"{rows[0][2]} draws of each",
        )
    )


# Against simple baselines.

WORST_LOSS, SLOPES, WORST_CHOICE = 0.005, (0.9, 1.1), 0.005
"""What a default may lose to a baseline, its recalibration slopes, and what a choice may lose."""
BASELINE_HEAD = (
    *("set", "model", "log-likelihood", "best baseline", "difference", "slope", "seconds"),
    "regret",
)


def table(names: Sequence[str], n_rounds: int = 5, quick: bool = False) -> dict[str, ContestScores]:
    """Print a line for each model on some sets, and return the scores; fixed choices left out.

    names : of sets, or how they begin: "twin:" for all of them. n_rounds : at most so many.
    """
    page = Page("", "", quick, None)
    found = {}
    print(markdown(BASELINE_HEAD, []), flush=True)
    for task in sets_called(names):
        found[task] = score(islice(TASKS[task](page), n_rounds), fixed=False)
        for row in _judged(task, found[task]):
            print(f"| {' | '.join(row)} |", flush=True)
    return found


def problem(name: str, seed: int, quick: bool = False) -> Problem:
    """One round of a set."""
    return next(islice(TASKS[name](Page("", "", quick, None)), seed, None))


def sets_called(names: Sequence[str]) -> list[str]:
    """The sets of these names, or whose names begin so.

    >>> sets_called(["yog", "football"])
    ['yogurt', 'football']
    """
    found = [task for name in names for task in TASKS if task.startswith(name)]
    if not found:
        raise DataError(f"no set begins with any of {', '.join(names)}: see `TASKS`")
    return list(dict.fromkeys(found))


def _judged(name: str, s: ContestScores) -> list[list[str]]:
    """Rows of a table, one a model."""
    rows = []
    for model in JUDGED:
        if model not in s.log_likelihoods:
            continue
        told = [name, s.called(model)]
        if np.isnan(s.log_likelihoods[model]).any():
            rows.append([*told, "not finished", "", "", "", f"{s.seconds[model]:.1f}", ""])
            continue
        baseline = s.best_baseline(model)
        regret = ""
        if model == CHOSEN:
            regret = f"{s.choice_regret:.3f} ({s.learned[model]})"
        elif model == DEFAULTS and s.has_fixed:
            regret = f"{s.regret:.3f} ({s.best_fixed})"
        rows.append(
            [
                *told,
                spread(s.log_likelihoods[model]),
                baseline,
                s.difference(model, baseline),
                told_slope(*s.slope(model)),
                f"{s.seconds[model]:.1f}",
                regret,
            ]
        )
    return rows


def claim_baselines(page: Page, found: Mapping[str, ContestScores]) -> None:
    """The three lines of the goal."""
    judged = [
        (s, model, f"{name}: {s.called(model)}")
        for name, s in found.items()
        for model in JUDGED
        if model in s.log_likelihoods and not np.isnan(s.log_likelihoods[model]).any()
    ]
    gains = {name: s.gains(model, s.best_baseline(model)) for s, model, name in judged}
    losses = {name: -each.mean() for name, each in gains.items()}
    clear = sum(-each.mean() - 2 * standard_error(each) > WORST_LOSS for each in gains.values())
    slopes = {name: s.slope(model) for s, model, name in judged}
    regrets = {name: s.choice_regret for name, s in found.items() if s.choice_regret is not None}
    worst = max(losses, key=lambda name: losses[name])
    beyond = sum(loss > WORST_LOSS for loss in losses.values())
    page.claim(
        Claim(
            f"no default loses more than {WORST_LOSS} nats an answer to a simple baseline",
            f"at most {losses[worst]:.3f} ({worst}); beyond on {beyond} of {len(losses)}, by two "
            f"standard errors on {clear}",
            (Need("worst loss", losses[worst], "≤", WORST_LOSS),),
            "means over rounds, against the baseline that is best afterwards",
        )
    )
    low, high = (pick(slopes, key=lambda name: slopes[name][0]) for pick in (min, max))
    away = {
        name: (max(SLOPES[0] - each, each - SLOPES[1]), e) for name, (each, e) in slopes.items()
    }
    outside = sum(distance > 0.0 for distance, _ in away.values())
    clear = sum(distance > 2 * error for distance, error in away.values())
    page.claim(
        Claim(
            f"recalibration slopes between {SLOPES[0]} and {SLOPES[1]}",
            f"from {slopes[low][0]:.2f} ({low}) to {slopes[high][0]:.2f} ({high}); outside on "
            f"{outside} of {len(slopes)}, by two standard errors on {clear}",
            (
                Need("lowest", slopes[low][0], "≥", SLOPES[0]),
                Need("highest", slopes[high][0], "≤", SLOPES[1]),
            ),
            "all held-out answers of a set taken together",
        )
    )
    if regrets:
        worst = max(regrets, key=lambda name: regrets[name])
        beyond = sum(regret > WORST_CHOICE for regret in regrets.values())
        page.claim(
            Claim(
                f"the choice of a model within {WORST_CHOICE} nats of the best",
                f"at most {regrets[worst]:.3f} ({worst}); beyond on {beyond} of {len(regrets)}",
                (Need("worst regret of the choice", regrets[worst], "≤", WORST_CHOICE),),
                "the best of PreferenceGP, MultiUserGP and CommunityGP is known only afterwards",
            )
        )


def _drawn(sets: Mapping[str, ContestScores]) -> Any:
    """Stated against observed frequencies, before and after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    stated = {
        "before": np.concatenate([s.before for s in sets.values()]),
        "after": np.concatenate([s.all_probs(DEFAULTS) for s in sets.values()]),
    }
    for ax, (when, p) in zip(figure.subplots(1, 2), stated.items(), strict=True):
        found = calibration(p)
        plot_calibration(found, ax).set_title(f"{when}: ECE {found.error:.3f}", fontsize=9)
    return figure


def _claim_regret(page: Page, found: Mapping[str, ContestScores]) -> None:
    ratio = max((s.ratio, name) for name, s in found.items())
    regret = max((s.regret, name) for name, s in found.items())
    beyond = sum(s.regret > WORST_REGRET for s in found.values())
    above = sum(s.ratio > WORST_RATIO for s in found.values())
    page.claim(
        Claim(
            f"error never above {WORST_RATIO} × the better single source",
            f"at most {ratio[0]:.2f} × ({ratio[1]}); above on {above} of {len(found)} sets",
            (Need("worst ratio", ratio[0], "≤", WORST_RATIO),),
            "means over rounds",
        )
    )
    page.claim(
        Claim(
            f"log-likelihood within {WORST_REGRET} of the best choice",
            f"worst {regret[0]:+.3f} ({regret[1]}); beyond on {beyond} of {len(found)} sets",
            (Need("worst regret", regret[0], "≤", WORST_REGRET),),
            "the best choice is known only afterwards",
        )
    )


def _claim_calibration(page: Page, people: Mapping[str, ContestScores]) -> None:
    """Of many people: each set's distance from what was stated, less what chance alone makes."""
    if not people:
        return
    p = {name: s.all_probs(DEFAULTS) for name, s in people.items()}
    errors = {name: (calibration(each).error, by_chance(each)) for name, each in p.items()}
    worst = max(errors, key=lambda name: errors[name][0])
    over = {name: s.overconfidence(DEFAULTS) for name, s in people.items()}
    boldest = max(over, key=lambda name: abs(over[name]))
    page.claim(
        Claim(
            f"many people: ECE at most {WORST_CALIBRATION}",
            f"worst {errors[worst][0]:.3f}, by chance {errors[worst][1]:.3f} ({worst})",
            tuple(
                Need(name.removesuffix(f", {PEOPLE}"), error, "≤", max(WORST_CALIBRATION, chance))
                for name, (error, chance) in errors.items()
            ),
            f"or what chance alone makes of right statements, where that is more; films: {RATINGS}",
        )
    )
    page.claim(
        Claim(
            f"many people: confidence within {WORST_CONFIDENCE} of accuracy",
            f"worst {over[boldest]:+.3f} ({boldest})",
            (Need("worst, either way", abs(over[boldest]), "≤", WORST_CONFIDENCE),),
            f"all rounds of a set taken together; films: {RATINGS}",
        )
    )


def _cora(links: str, n_pairs: int) -> Rounds:
    def rounds(page: Page) -> Iterator[Problem]:
        cora = page.load(load_cora, linked_papers)
        n_topics = 1 if page.quick else 7 if links == "true" else 3
        return cora_rounds(cora, links, n_pairs, 1, n_topics)

    return rounds


def _ohsumed(n_pairs: int) -> Rounds:
    def rounds(page: Page) -> Iterator[Problem]:
        documents = page.load(load_ohsumed, graded_documents).whole()
        n_queries, n_repeats = (2, 1) if page.quick else (10, 1)
        return ohsumed_rounds(documents, n_pairs, n_queries, n_repeats)

    return rounds


def _regression(name: str, n_pairs: int) -> Rounds:
    def rounds(page: Page) -> Iterator[Problem]:
        table = page.load(lambda: load_regression(name))
        return regression_rounds(table, n_pairs, 2 if page.quick else 10)

    return rounds


def _sushi(page: Page) -> Iterator[Problem]:
    sushi = page.load(load_sushi_a, rankings_like_sushi)
    some = sushi.rankings[:500]
    data = Comparisons.from_rankings(some.tolist(), users=range(len(some)))
    order = np.asarray(data.items, dtype=np.intp)
    return crowd_rounds(data, sushi.item_features[order], 100, 2 if page.quick else 10)


def _cars(page: Page) -> Iterator[Problem]:
    cars = page.load(load_cars, choices_like_cars)
    return crowd_rounds(cars.comparisons, cars.item_features, 100, 2 if page.quick else 10)


def _movielens(page: Page) -> Iterator[Problem]:
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
    return lambda page: simulated_rounds(kind, n_pairs, 2 if page.quick else 10)


def _people(draw: Callable[[Page], Draw], n_repeats: int) -> Rounds:
    return lambda page: people_rounds(draw(page), 1 if page.quick else n_repeats)


def _twin(draw: Twin) -> Rounds:
    return lambda page: (draw(seed, page.quick) for seed in range(1 if page.quick else ROUNDS))


def _public(public: PublicSet) -> Rounds:
    def rounds(page: Page) -> Iterator[Problem]:
        data = page.load(public.load)
        return _twin(lambda seed, small: public.draw(data, seed, small))(page)

    return rounds


def _people_simulated(kind: str) -> Callable[[Page], Draw]:
    return lambda page: simulated_people(kind)


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
    f"sushi, {PEOPLE}": _people(
        lambda page: people_of_sushi(page.load(load_sushi_a, rankings_like_sushi)), ROUNDS
    ),
    f"cars 1, {PEOPLE}": _people(
        lambda page: people_of_cars(page.load(load_cars, choices_like_cars)), ROUNDS
    ),
    f"MovieLens, 50 films, {PEOPLE}": _people(
        lambda page: people_of_movielens(page.load(load_movielens)), ROUNDS
    ),
    **{
        f"simulated, tastes {kind}, {PEOPLE}": _people(_people_simulated(kind), ROUNDS)
        for kind in ("apart", "directions", "alike")
    },
    **{name: _twin(draw) for name, draw in TWINS.items()},
    **{name: _public(public) for name, public in PUBLIC.items()},
}
"""Every set by name: what is given the page and yields rounds. Other models join by a line."""
