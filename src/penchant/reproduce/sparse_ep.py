"""Paper 003: EP, Sparse-EP and Laplace for many users, on sushi; and the cars of paper 004.

The paper fixes its hyperparameters and leaves learning them to the future; here they are learned.
Its figure is drawn with both. Time is that of inference alone, hyperparameters given.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from penchant.data import load_cars, load_sushi_a, load_sushi_b
from penchant.data.folder import data_at
from penchant.kernels import RBF, Independent
from penchant.metrics import calibration, pair_error
from penchant.models.multi_user_gp import MultiUserGP
from penchant.models.preference_gp import PreferenceGP
from penchant.numerics.types import FloatArray
from penchant.plots.calibration import plot_calibration
from penchant.plots.style import COLOURS, tidy
from penchant.reproduce.sushi_splits import (
    Columns,
    Score,
    item_features,
    markdown,
    score_rows,
    split_rankings,
    user_features,
)

KEPT = (4, 8)
"""Users and items that the paper's Sparse-EP keeps."""
METHODS = ("EP", "Sparse-EP", "Laplace")
Scores = dict[Any, list[Score]]


def sushi_table(n_seeds: int, n_users: int) -> Scores:
    """Scores by pairs a user and model; the population's ranking beside ours."""
    rankings = load_sushi_a().rankings
    scores: Scores = {}
    for k in (5, 10, 27):
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            train, test = split_rankings(rankings[rng.choice(5000, n_users, False)], k, rng)
            data = train.comparisons(10, n_users)
            everybody = PreferenceGP().fit(None, data).predict_proba(test.pairs)
            users = MultiUserGP().fit(None, data).predict_proba(test.pairs, test.user)
            scores.setdefault((k, "population"), []).append(Score.of(everybody))
            scores.setdefault((k, "MultiUserGP"), []).append(Score.of(users))
    return scores


def cars_table(n_seeds: int) -> Scores:
    """Cars, experiment 1, 60/40: a free item covariance, and a kernel on the attributes."""
    cars = load_cars()
    scores: Scores = {"free covariance": [], "attributes": []}
    for seed in range(n_seeds):
        train, test = cars.comparisons.split(0.4, random_state=seed)
        pairs = np.array(test.items)[np.column_stack([test.winner, test.loser])]
        users = np.array(test.users)[test.user]
        for name, X in (("free covariance", None), ("attributes", cars.item_features)):
            model = MultiUserGP().fit(X, train)
            scores[name].append(Score.of(model.predict_proba(pairs, users)))
    return scores


def cold_table(n_seeds: int, n_users: int) -> Scores:
    """A fifth of the users held out entirely; ten pairs of each of the others are known."""
    sushi = load_sushi_a()
    features = user_features(sushi)
    scores: Scores = {}
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        new, old = np.split(rng.choice(5000, n_users, False), [n_users // 5])
        train, _ = split_rankings(sushi.rankings[old], 10, rng)
        _, test = split_rankings(sushi.rankings[new], 0, rng)
        data = train.comparisons(10, len(old))
        everybody = PreferenceGP().fit(None, data).predict_proba(test.pairs)
        scores.setdefault("population ranking", []).append(Score.of(everybody))
        for name, known, asked in (
            ("MultiUserGP without features", None, np.empty((len(new), 0))),
            ("MultiUserGP with features", features[old], features[new]),
        ):
            model = MultiUserGP().fit(None, data, known)
            p = model.predict_proba(test.pairs, test.user, user_features=asked)
            scores.setdefault(name, []).append(Score.of(p))
    return scores


def set_b_table(n_users: int) -> Scores:
    """100 kinds of sushi, of which each user ranks ten; 27 of the 45 pairs are known."""
    sushi = load_sushi_b()
    train, test = split_rankings(sushi.rankings[:n_users], 27, np.random.default_rng(0))
    data = train.comparisons(100, n_users)
    scores: Scores = {}
    for name, X in (("free covariance", None), ("features", item_features(sushi))):
        p = MultiUserGP().fit(X, data).predict_proba(test.pairs, test.user)
        scores[name] = [Score.of(p)]
    return scores


def scaling_rows(sizes: Sequence[int]) -> list[list[str]]:
    """Users, comparisons, sweeps and seconds of EP at hyperparameters learned on the fewest."""
    rankings = load_sushi_a().rankings
    rows, given = [], None
    for n_users in sizes:
        train, _ = split_rankings(rankings[:n_users], 27, np.random.default_rng(0))
        data = train.comparisons(10, n_users)
        given = given or _repeat(MultiUserGP().fit(None, data))
        seconds = []
        for _ in range(3):
            start = process_time()
            model = MultiUserGP(**given).fit(None, data)
            seconds.append(process_time() - start)
        sweeps = str(model.report_.n_sweeps)
        rows.append([f"{n_users:,}", f"{len(data):,}", sweeps, f"{min(seconds):.2f}"])
    return rows


def _repeat(model: MultiUserGP) -> dict[str, Any]:
    """Constructor arguments that repeat inference at what the model learned."""
    return {
        "item_kernel": model.item_kernel_,
        "user_kernel": model.user_kernel_,
        "sharing": model.sharing_,
        "optimize": None,
    }


class Point(NamedTuple):
    """One method at one number of users."""

    accuracy: float
    inference_seconds: float
    prediction_seconds: float


Curves = Mapping[str, list[Point]]


def figure_points(sizes: Sequence[int], learned: bool) -> Curves:
    """Figure 1 of the paper: 80 % of each user's pairs for inference, the rest for testing."""
    sushi = load_sushi_a()
    items, people = (
        StandardScaler().fit_transform(X) for X in (item_features(sushi), user_features(sushi))
    )
    points: dict[str, list[Point]] = {method: [] for method in METHODS}
    for n_users in sizes:
        rng = np.random.default_rng(n_users)
        chosen = rng.choice(5000, n_users, False)
        train, test = split_rankings(sushi.rankings[chosen], 36, rng)
        data = train.comparisons(10, n_users)
        # the paper's squared exponential on features and one-hot id, lengthscales 10 and 1
        given: dict[str, Any] = {
            "item_kernel": RBF(10.0) + Independent(0.01),
            "user_kernel": RBF(1.0),
            "sharing": float(np.exp(-1.0)),
            "optimize": None,
        }
        inputs: tuple[Any, ...] = (items, data, people[chosen])
        if learned:
            given, inputs = _repeat(MultiUserGP().fit(None, data)), (None, data)
        for method in METHODS:
            model = MultiUserGP(
                **given,
                inference="laplace" if method == "Laplace" else "ep",
                sparse=KEPT if method == "Sparse-EP" else None,
            )
            points[method].append(_point(model, inputs, test))
    return points


def _point(model: MultiUserGP, inputs: tuple[Any, ...], test: Columns) -> Point:
    start = process_time()
    model.fit(*inputs)
    fitted = process_time()
    p: FloatArray = model.predict_proba(test.pairs, test.user)
    return Point(1.0 - pair_error(p), fitted - start, process_time() - fitted)


def draw(sizes: Sequence[int], curves: Mapping[bool, Curves], path: Path) -> None:
    """The paper's figure, and the reliability of our probabilities."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 5.5), layout="constrained", dpi=200)
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
    )
    train, test = split_rankings(load_sushi_a().rankings[:1000], 27, np.random.default_rng(0))
    model = MultiUserGP().fit(None, train.comparisons(10, 1000))
    plot_calibration(calibration(model.predict_proba(test.pairs, test.user)), panels[1, 1])
    figure.savefig(path)


_NAMES = {True: "learned", False: "of the paper"}


def verdict(sizes: Sequence[int], curves: Mapping[bool, Curves]) -> str:
    """Where our figure and the paper's differ, in this run's numbers."""
    last = {method: line[-1] for method, line in curves[True].items()}
    ep, sparse, laplace = (last[method] for method in METHODS)
    per_user = [
        1e3 * line.inference_seconds / size
        for line, size in zip(curves[True]["EP"], sizes, strict=True)
    ]
    return (
        "The paper finds Sparse-EP ahead of EP and EP ahead of Laplace, at about 62 %. At "
        f"{sizes[-1]:,} users with learned hyperparameters we find EP {ep.accuracy:.3f}, Laplace "
        f"{laplace.accuracy:.3f} and Sparse-EP {sparse.accuracy:.3f}. Sparse-EP forgets the "
        "comparisons of all users but four, and with them what these users said of themselves. "
        f"Prediction takes {ep.prediction_seconds:.3f} s from everything and "
        f"{sparse.prediction_seconds:.3f} s from what Sparse-EP keeps. EP's inference costs "
        f"{per_user[0]:.2f} ms a user at {sizes[0]} users and {per_user[-1]:.2f} ms at "
        f"{sizes[-1]:,}; the paper's times rise suddenly beyond 200.\n"
    )


def tables(quick: bool) -> list[str]:
    """Everything but the figure, as Markdown."""
    n_seeds, n_users = (1, 300) if quick else (3, 1000)
    measures = ["accuracy", "log-likelihood", "calibration error"]
    return [
        f"### Sushi A, {n_users} users, k pairs a user for training, {n_seeds} seeds\n",
        markdown(["k", "model", *measures], score_rows(sushi_table(n_seeds, n_users))),
        "### Cars, experiment 1, 60/40 (the paper: 64 %)\n",
        markdown(["items by", *measures], score_rows(cars_table(2 if quick else 10))),
        "### Cold users: a fifth of the users held out, features only\n",
        markdown(["model", *measures], score_rows(cold_table(n_seeds, 500 if quick else 2500))),
        "### Sushi B, 100 items, 27 pairs a user\n",
        markdown(["items by", *measures], score_rows(set_b_table(500 if quick else 5000))),
        "### Time of EP at given hyperparameters, 27 pairs a user\n",
        markdown(
            ["users", "comparisons", "sweeps", "seconds"],
            scaling_rows((300, 600) if quick else (1250, 2500, 5000)),
        ),
    ]


def run(
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> str:
    """Return the tables as Markdown; with a folder `out`, draw the figure there.

    `quick` takes one seed, fewer users and fewer points. `data` is the folder of data sets.
    """
    sizes = (10, 60, 210) if quick else (10, 30, 60, 120, 210, 500, 1000, 2000)
    with data_at(data):
        curves = {learned: figure_points(sizes, learned) for learned in (True, False)}
        rest = tables(quick)
        if out is not None:
            folder = Path(out)
            folder.mkdir(parents=True, exist_ok=True)
            draw(sizes, curves, folder / "sparse_ep.png")
    rows = [
        [f"{method}, hyperparameters {_NAMES[learned]}", *(f"{p.accuracy:.3f}" for p in line)]
        for learned, points in curves.items()
        for method, line in points.items()
    ]
    title = "## Many users, EP and Sparse-EP (paper 003)\n"
    accuracy = markdown(["accuracy with users", *map(str, sizes)], rows)
    return "\n".join([title, accuracy, verdict(sizes, curves), *rest])
