"""Small problems as plain rows, so that a relation can change them without the package's help."""

from dataclasses import dataclass, field, replace

import numpy as np

import penchant as pc

KINDS = ("ties", "counts", "sides", "lengths", "times", "margins", "rankings", "choices")
"""What answers may tell besides who won."""
ALONE = {"sides", "lengths", "times", "margins"}
"""What rankings and choices cannot tell."""


@dataclass(frozen=True)
class Case:
    """Which model meets which answers. settings: what is chosen, as little as possible.

    kinds: of KINDS. people: how many answer, 0 where nobody is named. drawn: by the soak, so that
    it may be as odd as can be.
    """

    model: str = "PreferenceGP"
    kinds: tuple[str, ...] = ()
    people: int = 0
    features: bool = False
    graph: bool = False
    settings: tuple[tuple[str, object], ...] = ()
    seed: int = 0
    drawn: bool = False

    def estimator(self, **more):
        """The model, unfitted."""
        how = {"random_state": 0, **dict(self.settings), **more}
        if self.model != "PreferenceGP":
            how["progress"] = False
        return getattr(pc, self.model)(**how)

    def world(self):
        """The problem that the seed draws."""
        return draw(self, np.random.default_rng(self.seed))

    def __str__(self):
        parts = [self.model, *self.kinds, f"{self.people} people" if self.people else ""]
        parts += ["X"] * self.features + ["graph"] * self.graph
        parts += [f"{name}={value}" for name, value in self.settings]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class World:
    """Items, people and answers by name.

    pairs: a dictionary a row: winner, loser and what else is told. orders: (places, user, chosen);
    chosen: whether it is a choice of the first place out of all. X: a row an item. graph: links.
    """

    items: tuple
    users: tuple
    pairs: tuple
    orders: tuple = ()
    X: np.ndarray | None = None
    graph: np.ndarray | None = None
    columns: tuple = field(default=())

    def data(self):
        """As the package takes them."""
        parts = []
        if self.pairs:
            rows = {name: [row[name] for row in self.pairs] for name in self.pairs[0]}
            lengths = [name for name in rows if name.startswith("length")]
            covariates = {name: rows.pop(name) for name in lengths} or None
            users = self.users if "user" in rows else None
            columns = {**rows, "covariates": covariates}
            parts.append(pc.Comparisons.from_pairs(**columns, items=self.items, users=users))
        for chosen in (False, True):
            orders = [order for order in self.orders if order[2] == chosen]
            if not orders:
                continue
            who = [user for _, user, _ in orders] if self.users else None
            places = [list(order) for order, _, _ in orders]
            if chosen:
                best = [order[0] for order in places]
                how = {"user": who, "items": self.items}
                parts.append(pc.Comparisons.from_choices(best, places, **how))
            else:
                how = {"users": who, "items": self.items}
                parts.append(pc.Comparisons.from_rankings(places, **how))
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + part
        return whole

    def fit(self, estimator):
        """The estimator, fitted to this problem."""
        relations = None if self.graph is None else {"near": self.graph}
        return estimator.fit(self.X, self.data(), relations=relations)

    def mapped(self, pair, order=lambda order: order):
        """The same with every row changed."""
        pairs = tuple(pair(row) for row in self.pairs)
        return replace(self, pairs=pairs, orders=tuple(order(one) for one in self.orders))

    def numbers(self, name):
        """(m,) one column of the pairs."""
        return np.array([row[name] for row in self.pairs], dtype=float)


def draw(case, rng):
    """Answers of people whose tastes are half their own, by a probit of differences."""
    n, m = int(rng.integers(4, 8)), int(rng.integers(30, 60))
    items = tuple(f"item {k}" for k in range(n))
    users = tuple(f"user {k}" for k in range(case.people))
    X = rng.standard_normal((n, 2)) if case.features else None
    graph = None
    if case.graph:
        upper = np.triu(rng.random((n, n)) < 0.5, 1) | np.eye(n, k=1, dtype=bool)
        graph = (upper | upper.T).astype(float)
    taste = rng.standard_normal(n) if X is None else X @ [1.0, 0.5] + 0.4 * rng.standard_normal(n)
    each = taste + 0.7 * rng.standard_normal((max(case.people, 1), n))
    pairs = []
    for _ in range(m):
        who = int(rng.integers(len(each)))
        a, b = rng.choice(n, 2, replace=False)
        first, length = int(rng.choice([-1, 1])), rng.standard_normal()
        gap = each[who, a] - each[who, b] + rng.standard_normal()
        gap += 0.4 * first * ("sides" in case.kinds) + 0.5 * length * ("lengths" in case.kinds)
        if gap < 0.0:
            a, b, first, length = b, a, -first, -length
        row = {"winner": items[a], "loser": items[b]}
        tie = "ties" in case.kinds and abs(gap) < 0.5
        row |= {"user": users[who]} if case.people else {}
        row |= {"tie": tie} if "ties" in case.kinds else {}
        row |= {"count": int(rng.integers(1, 4))} if "counts" in case.kinds else {}
        row |= {"first": first} if "sides" in case.kinds else {}
        row |= {"length a": length, "length b": length**3} if "lengths" in case.kinds else {}
        row |= {"time": float(rng.integers(60))} if "times" in case.kinds else {}
        row |= {"margin": 0.0 if tie else abs(gap)} if "margins" in case.kinds else {}
        pairs.append(row)
    orders = []
    for kind in {"rankings", "choices"} & set(case.kinds):
        for _ in range(8):
            who = int(rng.integers(len(each)))
            some = rng.choice(n, int(rng.integers(3, n + 1)), replace=False)
            noisy = each[who, some] + rng.gumbel(size=len(some)) / 1.702
            places = [items[k] for k in some[np.argsort(-noisy)]]
            orders.append((places, users[who] if case.people else None, kind == "choices"))
    pairs = pairs[: m // 3] if orders else pairs
    return World(items, users, tuple(pairs), tuple(orders), X, graph)


EVERY_SETTING = {
    "PreferenceGP": (
        {},
        {"likelihood": "logit"},
        {"clustered": False},
        {"raters": "lapse"},
        {"raters": "noise"},
        {"drift": "ou"},
        {"half_life": 30.0},
        {"inference": "laplace"},
        {"inference": "variational"},
        {"optimize": "em"},
    ),
    "MultiUserGP": (
        {},
        {"likelihood": "logit"},
        {"raters": "lapse"},
        {"raters": "noise"},
        {"inference": "laplace"},
        {"kernel": "free"},
    ),
    "CommunityGP": (
        {},
        {"likelihood": "logit"},
        {"personal": True},
        {"personal": False},
        {"n_communities": 2},
    ),
}


def random_case(rng):
    """Any model with any setting and any answers that go together."""
    model = str(rng.choice(list(EVERY_SETTING)))
    settings = EVERY_SETTING[model][int(rng.integers(len(EVERY_SETTING[model])))]
    kinds = set(rng.choice(KINDS, size=int(rng.integers(4)), replace=False).tolist())
    kinds |= {"times"} if settings.keys() & {"drift", "half_life"} else set()
    if kinds & {"rankings", "choices"}:
        kinds -= ALONE if not settings.keys() & {"drift", "half_life"} else {"rankings", "choices"}
    if "raters" in settings:
        kinds -= {"rankings", "choices"}
    if "margins" in kinds and not settings:
        settings = {"likelihood": "gaussian"}
        kinds -= {"ties", "rankings", "choices"}
    elif "likelihood" in settings or "inference" in settings:
        kinds -= {"ties"}
    elif "ties" in kinds:
        settings = {**settings, "likelihood": "ties"}
    # a few people who agree cannot be divided, which is refused
    people = int(rng.integers(8 if "n_communities" in settings else 3, 12))
    if model == "PreferenceGP" and "raters" not in settings and rng.random() < 0.5:
        people = 0
    return Case(
        model,
        tuple(kind for kind in KINDS if kind in kinds),
        people,
        bool(rng.random() < 0.5),
        bool(rng.random() < 0.3),
        tuple(settings.items()),
        int(rng.integers(2**31)),
        drawn=True,
    )
