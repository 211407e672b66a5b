"""Paper 003: EP, Sparse-EP and Laplace for many users, on sushi; and the cars of paper 004.

The paper fixes its hyperparameters and leaves learning them to the future; here they are learned.
Its figure is drawn with both. Time is that of inference alone, hyperparameters given.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from experiments import FloatArray, IntArray
from experiments.data import (
    Columns,
    Score,
    item_features,
    rankings_like_sushi,
    score_rows,
    split_rankings,
    user_features,
)
from experiments.page import Claim, Page, spread
from penchant.data import Comparisons
from penchant.datasets import Cars, Sushi, load_cars, load_sushi_a, load_sushi_b
from penchant.kernels import RBF, Independent
from penchant.metrics import calibration, pair_error
from penchant.models import MultiUserGP, PreferenceGP
from penchant.plots import plot_calibration
from penchant.plots.style import COLOURS, tidy

# MultiUserGP on sushi and cars, hyperparameters learned: beyond the figure of paper 003.

MEASURES = ("accuracy", "log-likelihood", "calibration error")
Scores = dict[Any, list[Score]]


def sushi_table(rankings: IntArray, n_seeds: int, n_users: int) -> Scores:
    """Scores by pairs a user and model; the population's ranking beside ours."""
    scores: Scores = {}
    for k in (5, 10, 27):
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            train, test = split_rankings(rng.choice(rankings, n_users, False), k, rng)
            data = train.comparisons(10, n_users)
            everybody = PreferenceGP().fit(None, data).predict_proba(test.pairs)
            users = MultiUserGP().fit(None, data).predict_proba(test.pairs, test.user)
            scores.setdefault((k, "population"), []).append(Score.of(everybody))
            scores.setdefault((k, "MultiUserGP"), []).append(Score.of(users))
    return scores


def cars_table(cars: Cars, n_seeds: int) -> Scores:
    """Cars, experiment 1, 60/40: a free item covariance, and a kernel on the attributes."""
    scores: Scores = {"free covariance": [], "attributes": []}
    for seed in range(n_seeds):
        train, test = cars.comparisons.split(0.4, random_state=seed)
        pairs = np.array(test.items)[np.column_stack([test.winner, test.loser])]
        users = np.array(test.users)[test.user]
        for name, X in (("free covariance", None), ("attributes", cars.item_features)):
            model = MultiUserGP().fit(X, train)
            scores[name].append(Score.of(model.predict_proba(pairs, users)))
    return scores


def cold_table(sushi: Sushi, n_seeds: int, n_users: int) -> Scores:
    """A fifth of the users held out entirely; ten pairs of each of the others are known."""
    features = user_features(sushi)
    scores: Scores = {}
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        new, old = np.split(rng.choice(len(features), n_users, False), [n_users // 5])
        train, _ = split_rankings(sushi.rankings[old], 10, rng)
        _, test = split_rankings(sushi.rankings[new], 0, rng)
        data = train.comparisons(10, len(old))
        everybody = PreferenceGP().fit(None, data).predict_proba(test.pairs)
        scores.setdefault("population ranking", []).append(Score.of(everybody))
        for name, known, asked in (
            ("MultiUserGP without features", None, np.empty((len(new), 0))),
            ("MultiUserGP with features", features[old], features[new]),
        ):
            model = MultiUserGP().fit(None, data, user_features=known)
            p = model.predict_proba(test.pairs, test.user, user_features=asked)
            scores.setdefault(name, []).append(Score.of(p))
    return scores


def set_b_table(sushi: Sushi, n_users: int) -> Scores:
    """100 kinds of sushi, of which each user ranks ten; 27 of the 45 pairs are known."""
    train, test = split_rankings(sushi.rankings[:n_users], 27, np.random.default_rng(0))
    data = train.comparisons(len(sushi.item_names), n_users)
    scores: Scores = {}
    for name, X in (("free covariance", None), ("features", item_features(sushi))):
        p = MultiUserGP().fit(X, data).predict_proba(test.pairs, test.user)
        scores[name] = [Score.of(p)]
    return scores


def scaling_rows(rankings: IntArray, sizes: Sequence[int]) -> list[list[str]]:
    """Users, comparisons, sweeps and seconds of EP at hyperparameters learned on the fewest."""
    rows, given = [], None
    for n_users in sizes:
        train, _ = split_rankings(rankings[:n_users], 27, np.random.default_rng(0))
        data = train.comparisons(10, n_users)
        given = given or repeat(MultiUserGP().fit(None, data))
        seconds = []
        for _ in range(3):
            start = process_time()
            model = MultiUserGP(**given).fit(None, data)
            seconds.append(process_time() - start)
        sweeps = str(model.report_.n_sweeps)
        rows.append([f"{n_users:,}", f"{len(data):,}", sweeps, f"{min(seconds):.2f}"])
    return rows


def repeat(model: MultiUserGP) -> dict[str, Any]:
    """Constructor arguments that repeat inference at what the model learned."""
    return {
        "kernel": model.kernel_,
        "user_kernel": model.user_kernel_,
        "sharing": model.sharing_,
        "optimize": None,
    }


KEPT = (4, 8)
"""Users and items that the paper's Sparse-EP keeps."""
METHODS = ("EP", "Sparse-EP", "Laplace")
TIMED = 60
"""Users from which on times are compared: below, a call costs more than its work."""
_NAMES = {True: "learned", False: "of the paper"}
_ABOUT = (
    "Abbasnejad, Bonilla and Sanner, *Sparse Gaussian Processes for Learning Preferences*. Data: "
    "sushi, as in the paper. Hyperparameters are learned by evidence, and, where said so, those of "
    "the paper, which learns none."
)


class Point(NamedTuple):
    """One method at one number of users."""

    accuracy: float
    inference_seconds: float
    prediction_seconds: float


Curves = Mapping[str, list[Point]]


def figure_points(sushi: Sushi, sizes: Sequence[int], learned: bool) -> Curves:
    """Figure 1 of the paper: 80 % of each user's pairs for inference, the rest for testing."""
    items, people = (
        StandardScaler().fit_transform(X) for X in (item_features(sushi), user_features(sushi))
    )
    points: dict[str, list[Point]] = {method: [] for method in METHODS}
    for n_users in sizes:
        rng = np.random.default_rng(n_users)
        chosen = rng.choice(len(people), n_users, False)
        train, test = split_rankings(sushi.rankings[chosen], 36, rng)
        data = train.comparisons(10, n_users)
        # the paper's squared exponential on features and one-hot id, lengthscales 10 and 1
        given: dict[str, Any] = {
            "kernel": RBF(10.0) + Independent(0.01),
            "user_kernel": RBF(1.0),
            "sharing": float(np.exp(-1.0)),
            "optimize": None,
        }
        known: dict[str, Any] = {"X": items, "user_features": people[chosen]}
        if learned:
            given, known = repeat(MultiUserGP().fit(None, data)), {"X": None}
        for method in METHODS:
            model = MultiUserGP(
                **given,
                inference="laplace" if method == "Laplace" else "ep",
                sparse=KEPT if method == "Sparse-EP" else None,
            )
            points[method].append(_point(model, data, known, test))
    return points


def _point(model: MultiUserGP, data: Comparisons, known: Mapping[str, Any], test: Columns) -> Point:
    start = process_time()
    model.fit(data=data, **known)
    fitted = process_time()
    p: FloatArray = model.predict_proba(test.pairs, test.user)
    return Point(1.0 - pair_error(p), fitted - start, process_time() - fitted)


def draw(sushi: Sushi, sizes: Sequence[int], curves: Mapping[bool, Curves]) -> Any:
    """The paper's figure, and the reliability of our probabilities."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 5.5), layout="constrained")
    panels = figure.subplots(2, 2)
    labels = ("accuracy", "inference, seconds", "prediction, seconds")
    for column, (ax, label) in enumerate(zip(panels.ravel()[:3], labels, strict=True)):
        for learned, points in curves.items():
            for colour, (method, line) in zip(COLOURS, points.items(), strict=False):
                ax.plot(
                    sizes,
                    [point[column] for point in line],
                    "o-" if learned else "o--",
                    color=colour,
                    markersize=3,
                    label=f"{method}, hyperparameters {_NAMES[learned]}",
                )
        ax.set(xlabel="users", ylabel=label, xscale="log", yscale="log" if column else "linear")
        tidy(ax)
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        fontsize=7,
        frameon=False,
        handlelength=4.0,  # else dashes do not show
    )
    rankings = sushi.rankings[:1000]
    train, test = split_rankings(rankings, 27, np.random.default_rng(0))
    model = MultiUserGP().fit(None, train.comparisons(10, len(rankings)))
    plot_calibration(calibration(model.predict_proba(test.pairs, test.user)), panels[1, 1])
    return figure


def claims(sizes: Sequence[int], curves: Mapping[bool, Curves]) -> list[Claim]:
    """What the paper says of its figure."""
    return [*_accuracy_claims(sizes, curves), *_time_claims(sizes, curves)]


def _accuracy_claims(sizes: Sequence[int], curves: Mapping[bool, Curves]) -> list[Claim]:
    def lead(first: str, second: str) -> FloatArray:
        return np.array(
            [
                one.accuracy - other.accuracy
                for points in curves.values()
                for one, other in zip(points[first], points[second], strict=True)
            ]
        )

    ends = "; ".join(
        f"hyperparameters {_NAMES[learned]}: "
        + ", ".join(f"{method} {points[method][-1].accuracy:.3f}" for method in METHODS)
        for learned, points in curves.items()
    )
    over_ep, over_laplace = lead("Sparse-EP", "EP"), lead("EP", "Laplace")
    return [
        Claim(
            "Sparse-EP (4 users, 8 items) predicts best, ahead of EP",
            f"accuracy at {sizes[-1]:,} users, {ends}",
            bool(np.all(over_ep > 0)),
            "Sparse-EP forgets the comparisons of all users but four, and with them what the "
            "others said of themselves; the paper's curves are near 62 %",
        ),
        Claim(
            "EP predicts better than Laplace",
            f"accuracy higher at {np.sum(over_laplace > 0)} of {over_laplace.size} points, on "
            f"average by {spread(over_laplace, 4)}",
            bool(np.all(over_laplace > 0)),
            "required: at every number of users; one split a point",
        ),
    ]


def _time_claims(sizes: Sequence[int], curves: Mapping[bool, Curves]) -> list[Claim]:
    timed = [i for i, size in enumerate(sizes) if size >= TIMED]

    def ratio(method: str, column: str) -> FloatArray:
        own, full = (
            np.array(
                [[getattr(points[name][i], column) for i in timed] for points in curves.values()]
            )
            for name in (method, "EP")
        )
        return np.asarray(own / full)

    inference = ratio("Laplace", "inference_seconds")
    prediction = ratio("Sparse-EP", "prediction_seconds")
    return [
        Claim(
            "Laplace is the fastest to approximate the posterior",
            f"{inference.min():.2f} to {inference.max():.2f} × the time of EP from {TIMED} users "
            "on",
            bool(np.all(inference < 1.0)),
            "our EP updates all comparisons at once, as Laplace does; the paper's visits them one "
            "by one",
        ),
        Claim(
            "Sparse-EP is the fastest to predict",
            f"{prediction.min():.2f} to {prediction.max():.2f} × the time of EP from {TIMED} users "
            "on",
            bool(np.all(prediction < 1.0)),
            "it predicts from four users and eight items",
        ),
    ]


def _figure(page: Page) -> None:
    sizes = (10, 60, 100) if page.quick else (10, 30, 60, 120, 210, 500, 1000, 2000)
    with page.part("Figure 1: sushi A, 36 of 45 pairs a user to learn from, seed = users"):
        sushi = page.load(load_sushi_a, rankings_like_sushi)
        curves = {learned: figure_points(sushi, sizes, learned) for learned in (True, False)}
        for label, column, form in (
            ("accuracy", "accuracy", ".3f"),
            ("inference, seconds", "inference_seconds", ".3f"),
            ("prediction, seconds", "prediction_seconds", ".4f"),
        ):
            rows = [
                [
                    f"{method}, hyperparameters {_NAMES[learned]}",
                    *(format(getattr(point, column), form) for point in line),
                ]
                for learned, points in curves.items()
                for method, line in points.items()
            ]
            page.table([f"{label}, with users", *map(str, sizes)], rows)
        page.figure(draw(sushi, sizes, curves), "sparse_ep", "Figure 1, and reliability.")
        for claim in claims(sizes, curves):
            page.claim(claim)


def _further(page: Page) -> None:
    """What the paper left to the future: learned models at larger sizes."""
    n_seeds, n_users, cold, all_users = (1, 100, 150, 150) if page.quick else (3, 1000, 2500, 5000)
    seeds = f"seeds 0 to {n_seeds - 1}"
    with page.part(f"Sushi A: {n_users} users, k pairs a user to learn from, {seeds}"):
        sushi = page.load(load_sushi_a, rankings_like_sushi)
        scores = sushi_table(sushi.rankings, n_seeds, n_users)
        page.table(["k", "model", *MEASURES], score_rows(scores))
    with page.part(f"New users: a fifth of {cold} held out, features only, {seeds}"):
        page.table(["model", *MEASURES], score_rows(cold_table(sushi, n_seeds, cold)))
    with page.part("Time of EP at given hyperparameters, 27 pairs a user"):
        rows = scaling_rows(sushi.rankings, (75, 150) if page.quick else (1250, 2500, 5000))
        page.table(["users", "comparisons", "sweeps", "seconds"], rows)
    with page.part(f"Sushi B: 100 items, {all_users} users, 27 pairs a user"):
        many = page.load(load_sushi_b)
        page.table(["items by", *MEASURES], score_rows(set_b_table(many, all_users)))
    n_seeds = 2 if page.quick else 10
    with page.part(f"Cars of paper 004, 60/40, seeds 0 to {n_seeds - 1} (that paper: 0.64)"):
        cars = page.load(load_cars)
        page.table(["items by", *MEASURES], score_rows(cars_table(cars, n_seeds)))


def run(quick: bool = False, out: str | PathLike[str] | None = None) -> str:
    """The page of the paper's figure and what follows; `quick` takes one seed and fewer users."""
    page = Page("Many users, EP and Sparse-EP (paper 003)", _ABOUT, quick, out)
    _figure(page)
    _further(page)
    return page.text()
