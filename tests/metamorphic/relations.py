"""What must hold between two fits, or between two answers of one fit, whatever the data are.

A relation takes a case, its world and the model fitted to it, with nothing chosen beyond what the
case says, and raises AssertionError. `RELATIONS` lists them with the cases that they apply to.
`CHANGES` are those that tell the same answers differently: several can be checked by one fit.
"""

import copy
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

import penchant as pc

ROUNDING = 1e-9
"""The same sums in another order."""
CONVERGED = 2e-4
"""Utilities at one fixed point, reached in two ways: sites stop moving at 1e-7, and slow ones are
then still some hundred steps from the end."""
LEARNED = 0.024
"""Log-parameters at one maximum, reached by two climbs: a climb ends when a step gains less than
1e-6 of the value or of the first slope, 1e-4 nats of these problems. Under the prior's curvature,
1/1.7², the maximum is then at most √(2 · 1e-4) · 1.7 away, and utilities differ by no more than
that share of themselves."""
MIXED = 0.06
"""LEARNED with pairs beside rankings or choices: the slope of their joint evidence leaves out how
the sites of one move with those of the other, so that a climb ends a little earlier."""
FREE = 0.15
"""LEARNED with a covariance whose every entry is learned: few answers leave the evidence flat in
many directions, and two climbs end within a tenth of a nat of each other, not at one place."""
DENSITY = 0.4
"""The normal density's highest value: how much a probability changes with a utility, at most."""
DRAWS = 0.05
"""Shares of 4,000 draws: six standard errors of the difference of two."""


@dataclass(frozen=True)
class Relation:
    """check(case, world, model); applies(case). of_data: the model plays no part."""

    check: Callable
    applies: Callable
    of_data: bool = False


RELATIONS = {}


def relation(applies=lambda case: True, of_data=False):
    """Register a relation under its function's name."""

    def register(check):
        RELATIONS[check.__name__] = Relation(check, applies, of_data)
        return check

    return register


def close(one, other, tolerance, what):
    """Numbers, or dictionaries of them, must be the same."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), (what, one.keys() ^ other.keys())
        for name in one:
            close(one[name], other[name], allowed(name, tolerance), f"{what}, {name}")
        return
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    gap = np.abs(one - other) / np.maximum(1.0, np.abs(other))
    assert gap.shape == one.shape == other.shape, (what, one.shape, other.shape)
    assert np.isfinite(gap).all(), (what, one, other)
    assert gap.max(initial=0.0) <= tolerance, f"{what}: they differ by {gap.max():.2g}"


def allowed(name, tolerance):
    """The tolerance of one of the `answers`, where utilities may differ by a tolerance."""
    if name == "prob_best" and tolerance:
        return DRAWS
    return DENSITY * tolerance if name.startswith("odds") else tolerance


def is_personal(model):
    """Whether predictions differ by user."""
    return bool(model.comparisons_.users)


def tolerance(case):
    """The tolerance between two fits of a case."""
    if dict(case.settings).get("optimize", "") is None:
        return CONVERGED
    if case.drawn and case.model != "PreferenceGP" and not case.features:
        return FREE
    mixed = case.drawn and {"rankings", "choices"} & set(case.kinds)
    return MIXED if mixed else LEARNED


def pairs_of(items):
    """Every ordered pair."""
    return [(a, b) for a in items for b in items if a != b]


def answers(model, items, users, at=None):
    """What a model predicts of some items and users, in their order."""
    pairs, found = pairs_of(items), {}
    when = {} if at is None else {"at": at}
    people = (None, *users) if is_personal(model) else (None,)
    for number, user in enumerate(people):
        who = None if user is None else [user]
        found[f"odds {number}"] = model.predict_proba(pairs, who, ties=True, **when)
        ranked = {row.item: row for row in model.rank(user, **when)}
        for name in ("utility", "low", "high"):
            found[f"{name} {number}"] = [getattr(ranked[item], name) for item in items]
    for effect in model.effects_:
        found[f"effect {effect.name}"] = [effect.estimate, effect.low, effect.high]
    found["prob_best"] = [ranked[item].prob_best for item in items] if len(people) == 1 else [0.0]
    return found


@lru_cache(maxsize=2)
def first_answers(model, items, users):
    """The answers of a case's own model, to which several relations compare."""
    return answers(model, items, users)


def same_odds(case, world, model, moved, what, people=None):
    """A fit of another world must give the model's probabilities; people: their numbers, or all."""
    here = first_answers(model, world.items, world.users)
    there = answers(moved.fit(case.estimator()), world.items, world.users)
    names = [name for name in here if name.startswith("odds")]
    for name in names if people is None else [f"odds {number}" for number in people]:
        close(there[name], here[name], allowed(name, tolerance(case)), f"{what}, {name}")


def shuffled(values, seed=1):
    """Positions in another order; never the order itself if there are two or more."""
    order = np.random.default_rng(seed).permutation(len(values))
    return np.roll(order, 1) if (order == np.arange(len(values))).all() else order


def raters(case):
    """Whether the case learns how reliable people are."""
    return dict(case.settings).get("raters")


# Changes: the same answers told differently


@dataclass(frozen=True)
class Moved:
    """A changed world. items, users: its names of the first world's. scale: of "length a"."""

    world: object
    items: tuple
    users: tuple
    scale: float = 1.0
    later: float = 0.0


CHANGES = {}


def change(applies=lambda case: True):
    """Register a change under its function's name, as a relation too."""

    def register(move):
        CHANGES[move.__name__] = move
        RELATIONS[move.__name__] = Relation(
            lambda case, world, model: unchanged(case, world, model, [move.__name__]), applies
        )
        return move

    return register


def unchanged(case, world, model, names):
    """After the named changes, all together, a fit predicts what the model does."""
    moved = Moved(world, world.items, world.users)
    for name in names:
        moved = CHANGES[name](moved)
    other, what = moved.world.fit(case.estimator()), " and ".join(names)

    def check(before, at=None):
        there = answers(other, moved.items, moved.users, at)
        if "lengths" in case.kinds:
            there["effect length a"] = np.multiply(there["effect length a"], moved.scale)
        close(there, before, tolerance(case), what)

    check(first_answers(model, world.items, world.users))
    if moved.later and "drift" in dict(case.settings):
        check(answers(model, world.items, world.users, at=10.0), at=moved.later + 10.0)


@change()
def items_renamed(moved):
    """Names and order of items are arbitrary."""
    world, order = moved.world, shuffled(moved.world.items)
    name = {world.items[k]: f"new {place:02d}" for place, k in enumerate(order)}
    renamed = world.mapped(
        lambda row: {**row, "winner": name[row["winner"]], "loser": name[row["loser"]]},
        lambda one: ([name[item] for item in one[0]], *one[1:]),
    )
    renamed = replace(
        renamed,
        items=tuple(name[world.items[k]] for k in order),
        X=None if world.X is None else world.X[order],
        graph=None if world.graph is None else world.graph[np.ix_(order, order)],
    )
    return replace(moved, world=renamed, items=tuple(name[item] for item in moved.items))


@change(lambda case: case.people)
def users_renamed(moved):
    """Names and order of users are arbitrary."""
    world, order = moved.world, shuffled(moved.world.users)
    name = {world.users[k]: f"x{place:02d}" for place, k in enumerate(order)}
    renamed = world.mapped(
        lambda row: {**row, "user": name[row["user"]]}, lambda one: (one[0], name[one[1]], one[2])
    )
    renamed = replace(renamed, users=tuple(name[world.users[k]] for k in order))
    return replace(moved, world=renamed, users=tuple(name[user] for user in moved.users))


@change(lambda case: case.features or "lengths" in case.kinds)
def columns_shuffled(moved):
    """The order of features and of covariates is arbitrary."""
    X = None if moved.world.X is None else moved.world.X[:, ::-1]
    world = moved.world.mapped(lambda row: dict(reversed(row.items())))
    return replace(moved, world=replace(world, X=X))


@change(lambda case: case.features)
def features_in_other_units(moved):
    """With no kernel chosen, origin and unit of a feature are arbitrary."""
    X = moved.world.X * [1000.0, 0.01] + [-7.0, 300.0]
    return replace(moved, world=replace(moved.world, X=X))


@change(lambda case: "lengths" in case.kinds)
def covariates_in_other_units(moved):
    """The unit of a covariate changes its effect only."""
    world = moved.world.mapped(lambda row: {**row, "length a": 1000.0 * row["length a"]})
    return replace(moved, world=world, scale=1000.0)


@change(lambda case: dict(case.settings).keys() & {"drift", "half_life"})
def times_shifted(moved):
    """The origin of time is arbitrary."""
    world = moved.world.mapped(lambda row: {**row, "time": row["time"] + 20_000.0})
    return replace(moved, world=world, later=20_000.0)


@relation(of_data=True)
def rows_shuffled(case, world, model):
    """The order of answers is arbitrary: the data are equal, and so is a fit of them."""
    rows, orders = shuffled(world.pairs), shuffled(world.orders)
    moved = replace(
        world,
        pairs=tuple(world.pairs[k] for k in rows),
        orders=tuple(world.orders[k] for k in orders),
    )
    assert moved.data() == world.data()


@relation(lambda case: dict(case.settings).get("likelihood") == "gaussian")
def margins_in_other_units(case, world, model):
    """The unit of margins does not change who wins."""
    moved = world.mapped(lambda row: {**row, "margin": 1000.0 * row["margin"]})
    same_odds(case, world, model, moved, "margins in other units")


# No information


@relation(lambda case: not case.features and not case.graph)
def unknown_item(case, world, model):
    """An item that nobody compared changes nothing between the others."""
    moved = replace(world, items=(*world.items[:2], "nobody's", *world.items[2:]))
    same_odds(case, world, model, moved, "an unknown item")


@relation(lambda case: case.people)
def silent_user(case, world, model):
    """A user who answered nothing changes nothing for the others."""
    people = range(1, 1 + len(world.users)) if is_personal(model) else (0,)
    moved = replace(world, users=("silent", *world.users))
    same_odds(case, world, model, moved, "a silent user", people)


@relation(lambda case: case.model == "PreferenceGP" and case.people and not raters(case))
def names_only_widen(case, world, model):
    """Knowing who answered widens intervals of a pooled model, and changes nothing else."""
    moved = world.mapped(
        lambda row: {name: row[name] for name in row if name != "user"},
        lambda one: (one[0], None, one[2]),
    )
    bare = answers(replace(moved, users=()).fit(case.estimator()), world.items, ())
    here = first_answers(model, world.items, world.users)
    close(here["utility 0"], bare["utility 0"], tolerance(case), "utilities with names")
    wide, narrow = (np.subtract(each["high 0"], each["low 0"]) for each in (here, bare))
    assert (wide >= narrow * (1.0 - tolerance(case))).all(), (wide, narrow)


# Counts


def doubled(world):
    """Every answer twice."""
    twice = world.mapped(lambda row: {**row, "count": 2 * row.get("count", 1)})
    return replace(twice, orders=world.orders * 2)


@relation(of_data=True)
def duplicates_are_counts(case, world, model):
    """A row that occurred twice is the row with a count of two, and so are joined data."""
    once = [{**row, "count": 1} for row in world.pairs for _ in range(row.get("count", 1))]
    data = world.data()
    assert replace(world, pairs=tuple(once)).data() == data
    assert data + data == doubled(world).data()


@relation(lambda case: not {"sides", "lengths", "times", "margins", "ties"} & set(case.kinds), True)
def choices_of_two_are_pairs(case, world, model):
    """A ranking of two, a choice of two and the worst of two are the pair."""
    rows = [row for row in world.pairs for _ in range(row.get("count", 1))]
    pairs = [[row["winner"], row["loser"]] for row in rows]
    who = [row["user"] for row in rows] if world.users else None
    best, worst = ([pair[place] for pair in pairs] for place in (0, 1))
    ranked = pc.Comparisons.from_rankings(pairs, users=who, items=world.items)
    how = {"user": who, "items": world.items}
    assert ranked == pc.Comparisons.from_choices(best, pairs, **how)
    assert ranked == pc.Comparisons.from_choices(None, pairs, worst=worst, **how)
    assert rows_of(ranked) == rows_of(replace(world, orders=()).data())


# Mirror


@relation(lambda case: not {"rankings", "choices"} & set(case.kinds))
def answers_mirrored(case, world, model):
    """If losers win instead, utilities change their sign; order and covariates keep their effect.

    Not of rankings: the best of three is not the worst of three under Plackett and Luce.
    """
    moved = world.mapped(lambda row: {**row, "winner": row["loser"], "loser": row["winner"]})
    there = answers(moved.fit(case.estimator()), world.items, world.users)
    here = first_answers(model, world.items, world.users)
    mirrored = {}
    for name, values in here.items():
        kind, _, number = name.partition(" ")
        if kind == "odds":
            mirrored[name] = values[:, ::-1]
        elif kind in ("utility", "low", "high"):
            other = {"low": "high", "high": "low"}.get(kind, kind)
            mirrored[name] = np.negative(here[f"{other} {number}"])
    close({name: there[name] for name in mirrored}, mirrored, tolerance(case), "mirrored")


@relation()
def pairs_turned(case, world, model):
    """P(a, b) and P(b, a) sum to one if everything else is turned round, too."""
    pairs = pairs_of(world.items)
    turned = [pair[::-1] for pair in pairs]
    shown, back = {}, {}
    if "sides" in case.kinds:
        shown["first"], back["first"] = 1, -1
    if "lengths" in case.kinds:
        shown["covariates"], back["covariates"] = {"length a": 0.7}, {"length a": -0.7}
    for user in (None, *world.users) if is_personal(model) else (None,):
        one = model.predict_proba(pairs, user, ties=True, **shown)
        other = model.predict_proba(turned, user, ties=True, **back)
        close(one, other[:, ::-1], ROUNDING, "turned")
        close(one.sum(axis=1), 1.0 + 0.0 * one[:, 0], ROUNDING, "probabilities sum to one")
        decided = model.predict_proba(pairs, user, **shown)
        close(decided, one[:, 0] / (one[:, 0] + one[:, 2]), ROUNDING, "given a decision")
        if shown:
            plain = model.predict_proba(pairs, user)
            assert np.abs(decided - plain).max() > 1e-4, "order and covariates have no effect"


# More and fewer answers


def keeps_parameters(case):
    """Whether optimize=None gives half of the answers the parameters of all.

    Not if they follow from the data: the prior of a covariate's effect from its spread, the
    noise of margins from theirs, the first timescale of drift from the time that is spanned,
    reliabilities from everything.
    """
    settings = dict(case.settings)
    from_data = raters(case) or "drift" in settings or settings.get("likelihood") == "gaussian"
    return not from_data and "lengths" not in case.kinds


def halves(world):
    """Two worlds with half of the answers each, and all items and users."""
    half, some = len(world.pairs) // 2, len(world.orders) // 2
    first = replace(world, pairs=world.pairs[:half], orders=world.orders[:some])
    return first, replace(world, pairs=world.pairs[half:], orders=world.orders[some:])


@lru_cache(maxsize=2)
def fixed_fits(case):
    """Fits of all answers and of the first half, at the first parameters. Copy before a change."""
    world = case.world()
    return [each.fit(case.estimator(optimize=None)) for each in (world, halves(world)[0])]


def refitted(case, world, one, other, what):
    """One model after `tell` or `withdraw` predicts what the other predicts after its fit."""
    converged = case.model == "CommunityGP" or (one.report_.converged and other.report_.converged)
    if converged:
        there = answers(one, world.items, world.users)
        close(there, answers(other, world.items, world.users), CONVERGED, what)


@relation(lambda case: case.model != "CommunityGP" and keeps_parameters(case))
def counts_are_told_again(case, world, model):
    """Telling all answers once more is a fit with twice the counts, at the same parameters."""
    told = copy.deepcopy(fixed_fits(case)[0]).tell(world.data(), reconverge=True)
    refitted(case, world, told, doubled(world).fit(case.estimator(optimize=None)), "told again")


@relation()
def withdrawn_and_told(case, world, model):
    """Withdrawing answers and telling them again leaves the model as it was."""
    data = halves(world)[1].data()
    other, before = copy.deepcopy(model), first_answers(model, world.items, world.users)
    other.withdraw(data)
    assert other.comparisons_.n_comparisons < model.comparisons_.n_comparisons
    if case.model == "CommunityGP":  # withdraw searches again: other communities may be found
        close(answers(other.undo(), world.items, world.users), before, 0.0, "undo is exact")
        return
    other.tell(data, reconverge=True)
    assert other.comparisons_ == model.comparisons_
    close(answers(other, world.items, world.users), before, CONVERGED, "withdrawn and told again")


@relation(lambda case: case.model != "CommunityGP" and keeps_parameters(case))
def split_and_told(case, world, model):
    """Fitting half and telling half is fitting the whole, at the same parameters."""
    whole, half = fixed_fits(case)
    for reconverge in (True, None):  # None: so few answers reconverge by default
        told = copy.deepcopy(half).tell(halves(world)[1].data(), reconverge=reconverge)
        assert told.comparisons_ == whole.comparisons_
        refitted(case, world, told, whole, "split and told")


@relation(keeps_parameters)
def withdrawn_is_refitted(case, world, model):
    """Withdrawing half is a fit of the other half, at the same parameters."""
    whole, half = fixed_fits(case)
    less = copy.deepcopy(whole).withdraw(halves(world)[1].data())
    refitted(case, world, less, half, "withdrawn")


# Files


@relation()
def saved_and_loaded(case, world, model):
    """A file keeps the model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        again = pc.load(path)
    before = first_answers(model, world.items, world.users)
    close(answers(again, world.items, world.users), before, ROUNDING, "loaded")
    close(again.score(world.data()), model.score(world.data()), ROUNDING, "score, loaded")
    assert again.ask(3) == model.ask(3)
    assert again.comparisons_ == model.comparisons_
    # margins are no right or wrong answers to judge people by
    if case.people and case.model != "CommunityGP" and "margins" not in case.kinds:
        tables = [{row.user: row.reliability for row in each.raters_} for each in (model, again)]
        close(tables[0], tables[1], ROUNDING, "raters_, loaded")


def rows_of(data, columns=None):
    """The rows of a frame in a canonical order, by name; ballots as a whole."""
    frame = data.to_frame().astype(str)
    frame = frame if columns is None else frame[list(columns)]
    ballots = frame.pop("ballot") if "ballot" in frame else frame.index
    frame = frame[sorted(frame)]
    return sorted(sorted(rows.to_numpy().tolist()) for _, rows in frame.groupby(list(ballots)))


@relation(of_data=True)
def frame_and_file(case, world, model):
    """A frame and a file of the same rows are the same answers, in the order of their names."""
    data = world.data()
    frame = data.to_frame()
    columns = {name: name for name in ("margin", "first", "time") if name in frame}
    columns |= {"covariates": list(data.covariate_names)} if data.covariate_names else {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.csv"
        frame.to_csv(path, index=False)
        read = pc.read_comparisons(path, **columns)
    assert read == pc.Comparisons.from_frame(frame, **columns)
    assert set(read.items) == {world.items[k] for k in (*data.winner, *data.loser)}
    # a ballot without a user is read as that of a person of its own, who has the ballot's number
    assert rows_of(read, frame.columns) == rows_of(data)


# Scores


@relation(lambda case: not {"rankings", "choices"} & set(case.kinds))
def score_is_log_probability(case, world, model):
    """The score is the mean log-probability of the answers, each as it was given."""
    data, logs, counts = world.data(), [], []
    for row in range(len(data)):
        pair = [(data.items[data.winner[row]], data.items[data.loser[row]])]
        how = {}
        if "sides" in case.kinds:
            how["first"] = int(data.first[row])
        if "lengths" in case.kinds:
            values = data.covariates[row]
            how["covariates"] = dict(zip(data.covariate_names, values, strict=True))
        if "drift" in dict(case.settings):
            how["at"] = float(data.time[row])
        user = data.users[data.user[row]] if is_personal(model) else None
        win, tie, _ = model.predict_proba(pair, user, ties=True, **how)[0]
        if not data.tie[row] or tie > 0.0:
            logs.append(np.log(tie if data.tie[row] else win))
            counts.append(data.count[row])
    close(model.score(data), np.average(logs, weights=counts), ROUNDING, "score")


@relation()
def score_is_a_mean(case, world, model):
    """Everything twice scores as everything once; two halves score around their whole."""
    data = world.data()
    whole = model.score(data)
    close(model.score(data + data), whole, ROUNDING, "score of everything twice")
    low, high = sorted(model.score(half.data()) for half in halves(world))
    assert low - ROUNDING <= whole <= high + ROUNDING, (low, whole, high)


# One model, several views


@relation()
def views_agree(case, world, model):
    """predict, rank and belief agree on utilities; users and items by name or by number."""
    for user in (None, *world.users) if is_personal(model) else (None,):
        mean = model.predict(users=None if user is None else [user]).ravel()
        ranked = {row.item: row.utility for row in model.rank(user)}
        centred = mean - mean.mean()
        close([ranked[item] for item in world.items], centred, ROUNDING, "rank and predict")
        belief = model.belief(user).mean
        close(belief - belief.mean(), centred, ROUNDING, "belief and predict")
    if is_personal(model):
        by_name = model.predict(users=list(world.users))
        close(by_name, model.predict(users=range(len(world.users))), 0.0, "names and numbers")
    if "drift" in dict(case.settings):
        means, _ = model.paths([10.0, 30.0])
        for at, then in zip((10.0, 30.0), means, strict=True):
            ranked = {row.item: row.utility for row in model.rank(at=at)}
            close([ranked[item] for item in world.items], then, ROUNDING, "rank(at) and paths")
    pairs = pairs_of(world.items)
    numbers = [(world.items.index(a), world.items.index(b)) for a, b in pairs]
    one, other = model.predict_proba(pairs), model.predict_proba(numbers)
    close(one, other, 0.0, "names and numbers of items")
