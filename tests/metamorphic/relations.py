"""What must hold between two fits, or between two answers of one fit, whatever the data are.

A relation takes a case, its world and the model fitted to it, with nothing chosen beyond what the
case says, and raises AssertionError. `RELATIONS` lists them with the cases that they apply to.
"""

import copy
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import penchant as pc

ROUNDING = 1e-9
"""The same sums in another order."""
SETTLED = 2e-4
"""Of utilities, by two ways to one fixed point: sites stop moving at 1e-7, and where they move
slowly that is still some hundred steps from the end."""
LEARNED = 0.024
"""Of log-parameters, by two climbs to one maximum: a climb ends where a step gains less than 1e-6
of the value or of the first slope, 1e-4 nats of these problems; under the prior's curvature,
1/1.7², the top is then at most √(2 · 1e-4) · 1.7 away. A utility follows by no more than that share
of itself."""
MIXED = 0.06
"""The same where pairs stand beside rankings or choices: the slope of their common evidence leaves
out how the sites of one move with those of the other, so that a climb ends a little earlier."""
FREE = 0.15
"""Both where every entry of a covariance may be learned: along many of its directions the evidence
of few answers is flat, and two climbs end within a tenth of a nat, not at one place."""
DENSITY = 0.4
"""The normal density's highest value: by how much a probability follows a utility, at most."""
DRAWS = 0.05
"""Shares of 4,000 draws: six standard errors of the difference of two."""


@dataclass(frozen=True)
class Relation:
    """check(case, world, model); applies(case)."""

    check: Callable
    applies: Callable


RELATIONS = {}


def relation(applies=lambda case: True):
    """Register a relation under its function's name."""

    def register(check):
        RELATIONS[check.__name__] = Relation(check, applies)
        return check

    return register


def close(one, other, tolerance, what):
    """Numbers, or dictionaries of them, that must be the same."""
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
    """Of one of the `answers`, where utilities may differ by a tolerance."""
    if name == "prob_best" and tolerance:
        return DRAWS
    return DENSITY * tolerance if name.startswith("odds") else tolerance


def tells_users_apart(model):
    """Whether predictions differ by user."""
    return bool(model.comparisons_.users)


def tolerance(case):
    """Of two fits of a case: exact where nothing is learned."""
    if dict(case.settings).get("optimize", "") is None:
        return SETTLED
    if case.drawn and case.model != "PreferenceGP" and not case.features:
        return FREE
    mixed = case.drawn and {"rankings", "choices"} & set(case.kinds)
    return MIXED if mixed else LEARNED


def pairs_of(items):
    """Every ordered pair."""
    return [(a, b) for a in items for b in items if a != b]


def answers(model, items, users, at=None):
    """What a model says of some items and users, in their order."""
    pairs, said = pairs_of(items), {}
    when = {} if at is None else {"at": at}
    people = (None, *users) if tells_users_apart(model) else (None,)
    for number, user in enumerate(people):
        who = None if user is None else [user]
        odds = model.predict_proba(pairs, who, ties=True, **when)
        ranked = {row.item: row for row in model.rank(user, **when)}
        said[f"odds {number}"] = odds
        for name in ("utility", "low", "high"):
            said[f"{name} {number}"] = [getattr(ranked[item], name) for item in items]
    effects = model.effects_
    for effect in effects:
        said[f"effect {effect.name}"] = [effect.estimate, effect.low, effect.high]
    said["prob_best"] = [ranked[item].prob_best for item in items] if len(people) == 1 else [0.0]
    return said


def shuffled(values, seed=1):
    """Positions in another order; never the order itself where there are two or more."""
    order = np.random.default_rng(seed).permutation(len(values))
    return np.roll(order, 1) if (order == np.arange(len(values))).all() else order


def raters(case):
    """Whether the case tells reliable people from others."""
    return dict(case.settings).get("raters")


# Names and order


@relation()
def items_renamed(case, world, model):
    """Names and order of items say nothing."""
    order = shuffled(world.items)
    name = {item: f"new {place:02d}" for place, item in enumerate(world.items[k] for k in order)}
    moved = world.mapped(
        lambda row: {**row, "winner": name[row["winner"]], "loser": name[row["loser"]]},
        lambda one: ([name[item] for item in one[0]], *one[1:]),
    )
    moved = replace(
        moved,
        items=tuple(name[world.items[k]] for k in order),
        X=None if world.X is None else world.X[order],
        graph=None if world.graph is None else world.graph[np.ix_(order, order)],
    )
    other = moved.fit(case.estimator())
    there = answers(other, [name[item] for item in world.items], world.users)
    close(there, answers(model, world.items, world.users), tolerance(case), "items renamed")


@relation(lambda case: case.people)
def users_renamed(case, world, model):
    """Names and order of users say nothing."""
    order = shuffled(world.users)
    name = {user: f"x{place:02d}" for place, user in enumerate(world.users[k] for k in order)}
    moved = world.mapped(
        lambda row: {**row, "user": name[row["user"]]},
        lambda one: (one[0], name[one[1]], one[2]),
    )
    other = replace(moved, users=tuple(name[world.users[k]] for k in order)).fit(case.estimator())
    there = answers(other, world.items, [name[user] for user in world.users])
    close(there, answers(model, world.items, world.users), tolerance(case), "users renamed")


@relation()
def rows_shuffled(case, world, model):
    """The order of answers says nothing: the data are the same, and so is a fit of them."""
    rows, orders = shuffled(world.pairs), shuffled(world.orders)
    moved = replace(
        world,
        pairs=tuple(world.pairs[k] for k in rows),
        orders=tuple(world.orders[k] for k in orders),
    )
    assert moved.data() == world.data()


@relation(lambda case: case.features or "lengths" in case.kinds)
def columns_shuffled(case, world, model):
    """The order of features and of covariates says nothing."""
    moved = world.mapped(lambda row: dict(reversed(row.items())))
    moved = replace(moved, X=None if world.X is None else world.X[:, ::-1])
    there = answers(moved.fit(case.estimator()), world.items, world.users)
    close(there, answers(model, world.items, world.users), tolerance(case), "columns shuffled")


# Units


@relation(lambda case: case.features)
def features_in_other_units(case, world, model):
    """With no kernel chosen, origin and unit of a feature say nothing."""
    moved = replace(world, X=world.X * [1000.0, 0.01] + [-7.0, 300.0])
    there = answers(moved.fit(case.estimator()), world.items, world.users)
    close(there, answers(model, world.items, world.users), tolerance(case), "features scaled")


@relation(lambda case: "lengths" in case.kinds)
def covariates_in_other_units(case, world, model):
    """The unit of a covariate says nothing of items."""
    moved = world.mapped(lambda row: {**row, "length a": 1000.0 * row["length a"]})
    there = answers(moved.fit(case.estimator()), world.items, world.users)
    there["effect length a"] = [1000.0 * number for number in there["effect length a"]]
    close(there, answers(model, world.items, world.users), tolerance(case), "covariate scaled")


@relation(lambda case: dict(case.settings).get("likelihood") == "gaussian")
def margins_in_other_units(case, world, model):
    """The unit of margins says nothing of who wins."""
    moved = world.mapped(lambda row: {**row, "margin": 1000.0 * row["margin"]})
    there = answers(moved.fit(case.estimator()), world.items, world.users)
    here = answers(model, world.items, world.users)
    odds = [name for name in here if name.startswith("odds")]
    for name in odds:
        close(there[name], here[name], allowed(name, tolerance(case)), f"margins, {name}")


@relation(lambda case: dict(case.settings).keys() & {"drift", "half_life"})
def times_shifted(case, world, model):
    """When the calendar begins says nothing."""
    moved = world.mapped(lambda row: {**row, "time": row["time"] + 20_000.0})
    other = moved.fit(case.estimator())
    close(
        answers(other, world.items, world.users),
        answers(model, world.items, world.users),
        tolerance(case),
        "times shifted",
    )
    if "drift" in dict(case.settings):
        then = answers(other, world.items, world.users, at=20_010.0)
        close(then, answers(model, world.items, world.users, 10.0), tolerance(case), "and earlier")


# Information that is not there


@relation(lambda case: not case.features and not case.graph)
def unknown_item(case, world, model):
    """An item that nobody compared changes nothing between the others."""
    moved = replace(world, items=(*world.items[:2], "nobody's", *world.items[2:]))
    other = moved.fit(case.estimator())
    there, here = (answers(each, world.items, world.users) for each in (other, model))
    for name in here:
        if name.startswith("odds"):
            limit = allowed(name, tolerance(case))
            close(there[name], here[name], limit, f"an unknown item, {name}")


@relation(lambda case: case.people)
def silent_user(case, world, model):
    """Somebody who answered nothing changes nothing for the others."""
    moved = replace(world, users=("silent", *world.users))
    other = moved.fit(case.estimator())
    there, here = (answers(each, world.items, world.users) for each in (other, model))
    people = range(1, 1 + len(world.users)) if tells_users_apart(model) else (0,)
    for number in people:
        name = f"odds {number}"
        close(there[name], here[name], allowed(name, tolerance(case)), f"a silent user, {name}")


@relation(lambda case: case.model == "PreferenceGP" and case.people and not raters(case))
def names_only_widen(case, world, model):
    """Who answered widens intervals of a pooled model, and changes nothing else."""
    moved = world.mapped(
        lambda row: {name: row[name] for name in row if name != "user"},
        lambda one: (one[0], None, one[2]),
    )
    bare = answers(replace(moved, users=()).fit(case.estimator()), world.items, ())
    here = answers(model, world.items, ())
    close(here["utility 0"], bare["utility 0"], tolerance(case), "utilities with names")
    wide, narrow = (np.subtract(each["high 0"], each["low 0"]) for each in (here, bare))
    assert (wide >= narrow * (1.0 - tolerance(case))).all(), (wide, narrow)


# Counts


@relation()
def duplicates_are_counts(case, world, model):
    """A row that occurred twice is the row with a count of two, and so are joined data."""
    once = [{**row, "count": 1} for row in world.pairs for _ in range(row.get("count", 1))]
    single = replace(world, pairs=tuple(once))
    assert single.data() == world.data()
    twice = world.mapped(lambda row: {**row, "count": 2 * row.get("count", 1)})
    twice = replace(twice, orders=world.orders * 2)
    data = world.data()
    assert data + data == twice.data()


@relation(lambda case: case.model != "CommunityGP" and keeps_parameters(case))
def counts_are_told_again(case, world, model):
    """Telling all answers once more is a fit with twice the counts, at the same parameters."""
    twice = replace(
        world.mapped(lambda row: {**row, "count": 2 * row.get("count", 1)}),
        orders=world.orders * 2,
    )
    fixed = case.estimator(optimize=None)
    told = world.fit(fixed).tell(world.data(), reconverge=True)
    other = twice.fit(case.estimator(optimize=None))
    if told.report_.converged and other.report_.converged:
        close(
            answers(told, world.items, world.users),
            answers(other, world.items, world.users),
            SETTLED,
            "told twice and counted twice",
        )


@relation(lambda case: not {"sides", "lengths", "times", "margins", "ties"} & set(case.kinds))
def choices_of_two_are_pairs(case, world, model):
    """A ranking of two, a choice of two and the worst of two are the pair."""
    data = replace(world, orders=()).data()
    rows = [row for row in world.pairs for _ in range(row.get("count", 1))]
    pairs = [[row["winner"], row["loser"]] for row in rows]
    who = [row["user"] for row in rows] if world.users else None
    ranked = pc.Comparisons.from_rankings(pairs, users=who, items=world.items)
    chosen = pc.Comparisons.from_choices(
        [pair[0] for pair in pairs], pairs, user=who, items=world.items
    )
    worst = pc.Comparisons.from_choices(
        None, pairs, worst=[pair[1] for pair in pairs], user=who, items=world.items
    )
    assert ranked == chosen == worst
    assert ranked.n_comparisons == data.n_comparisons
    columns = ["user", "winner", "loser"][0 if world.users else 1 :]
    by_name = [each.to_frame().set_index(columns)["count"].sort_index() for each in (ranked, data)]
    assert by_name[0].equals(by_name[1])


# Mirror


@relation(lambda case: not {"rankings", "choices"} & set(case.kinds))
def answers_mirrored(case, world, model):
    """Who wins where they lost has the opposite utility; how pairs were shown keeps its effect.

    Not of rankings: the best of three is not the worst of three under Plackett and Luce.
    """
    moved = world.mapped(lambda row: {**row, "winner": row["loser"], "loser": row["winner"]})
    there = answers(moved.fit(case.estimator()), world.items, world.users)
    here = answers(model, world.items, world.users)
    for name in [name for name in here if name.startswith("odds")]:
        limit = allowed(name, tolerance(case))
        close(there[name], here[name][:, ::-1], limit, f"mirrored, {name}")
        number = name.removeprefix("odds ")
        for one, other in (("utility", "utility"), ("low", "high"), ("high", "low")):
            close(
                there[f"{one} {number}"],
                np.negative(here[f"{other} {number}"]),
                tolerance(case),
                f"mirrored, {one} {number}",
            )


@relation()
def pairs_turned(case, world, model):
    """P(a, b) and P(b, a) sum to one where everything else is turned round, too."""
    pairs = pairs_of(world.items)
    turned = [pair[::-1] for pair in pairs]
    shown, back = {}, {}
    if "sides" in case.kinds:
        shown["first"], back["first"] = 1, -1
    if "lengths" in case.kinds:
        shown["covariates"], back["covariates"] = {"length a": 0.7}, {"length a": -0.7}
    for user in (None, *world.users) if tells_users_apart(model) else (None,):
        one = model.predict_proba(pairs, user, ties=True, **shown)
        other = model.predict_proba(turned, user, ties=True, **back)
        close(one, other[:, ::-1], ROUNDING, "turned")
        close(one.sum(axis=1), 1.0 + 0.0 * one[:, 0], ROUNDING, "probabilities sum to one")
        decided = model.predict_proba(pairs, user, **shown)
        close(decided, one[:, 0] / (one[:, 0] + one[:, 2]), ROUNDING, "given a decision")
        if shown:
            plain = model.predict_proba(pairs, user)
            assert np.abs(decided - plain).max() > 1e-4, "how pairs are shown does nothing"


# More and fewer answers


def keeps_parameters(case):
    """Whether optimize=None gives half of the answers the parameters of all.

    Not where they follow from the data: the prior of a covariate's effect from its spread, the
    noise of margins from theirs, the first timescale of drift from the time that is spanned,
    reliabilities from everything.
    """
    settings = dict(case.settings)
    from_data = raters(case) or "drift" in settings or settings.get("likelihood") == "gaussian"
    return not from_data and "lengths" not in case.kinds


def parted(world):
    """(first, second): answers that are told later; both have the whole universe."""
    half = len(world.pairs) // 2
    rows, orders = world.pairs, world.orders
    some = len(orders) // 2
    first = replace(world, pairs=rows[:half], orders=orders[:some])
    return first, replace(world, pairs=rows[half:], orders=orders[some:])


@relation(lambda case: True)
def taken_back_and_told(case, world, model):
    """What is withdrawn and told again leaves the model where it was."""
    _, later = parted(world)
    other = copy.deepcopy(model)
    before = answers(other, world.items, world.users)
    data = later.data()
    other.withdraw(data)
    assert other.comparisons_.n_comparisons < model.comparisons_.n_comparisons
    if case.model == "CommunityGP":  # withdraw searches again: other communities may be found
        close(answers(other.undo(), world.items, world.users), before, 0.0, "undo is exact")
        return
    other.tell(data, reconverge=True)
    assert other.comparisons_ == model.comparisons_
    close(answers(other, world.items, world.users), before, SETTLED, "withdrawn and told again")


@relation(lambda case: case.model != "CommunityGP" and keeps_parameters(case))
def split_and_told(case, world, model):
    """Half fitted and half told is the whole fitted, at the same parameters."""
    first, later = parted(world)
    half = first.fit(case.estimator(optimize=None))
    whole = world.fit(case.estimator(optimize=None))
    for reconverge in (True, None):  # so few answers are settled by default
        told = copy.deepcopy(half).tell(later.data(), reconverge=reconverge)
        assert told.comparisons_ == whole.comparisons_
        if told.report_.converged and whole.report_.converged:
            there = answers(told, world.items, world.users)
            close(there, answers(whole, world.items, world.users), SETTLED, "split and told")


@relation(lambda case: keeps_parameters(case))
def withdrawn_is_refitted(case, world, model):
    """Withdrawing half is a fit of the other half, at the same parameters."""
    first, later = parted(world)
    less = world.fit(case.estimator(optimize=None)).withdraw(later.data())
    refit = first.fit(case.estimator(optimize=None))
    converged = case.model == "CommunityGP" or (less.report_.converged and refit.report_.converged)
    if converged:
        there = answers(less, world.items, world.users)
        close(there, answers(refit, world.items, world.users), SETTLED, "withdrawn")


# Files


@relation()
def saved_and_loaded(case, world, model):
    """A file keeps the model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        again = pc.load(path)
    before = answers(model, world.items, world.users)
    close(answers(again, world.items, world.users), before, ROUNDING, "loaded")
    close(again.score(world.data()), model.score(world.data()), ROUNDING, "score, loaded")
    assert again.ask(3) == model.ask(3)
    assert again.comparisons_ == model.comparisons_
    # margins are no right or wrong answers to judge people by
    if case.people and case.model != "CommunityGP" and "margins" not in case.kinds:
        tables = [{row.user: row.reliability for row in each.raters_} for each in (model, again)]
        close(tables[0], tables[1], ROUNDING, "raters_, loaded")


@relation()
def frame_and_file(case, world, model):
    """A frame and a file of the same rows are the same answers."""
    data = world.data()
    frame = data.to_frame()
    columns = {name: name for name in ("margin", "first", "time") if name in frame}
    columns |= {"covariates": list(data.covariate_names)} if data.covariate_names else {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.csv"
        frame.to_csv(path, index=False)
        read = pc.read_comparisons(path, **columns)
    framed = pc.Comparisons.from_frame(frame, **columns)
    assert read == framed
    compared = {world.items[k] for k in (*data.winner, *data.loser)}
    assert set(read.items) == compared
    assert read.n_comparisons == data.n_comparisons
    if compared != set(world.items) or case.features or case.graph:
        return
    if {framed.users.index(name) for name in framed.users} and set(framed.users) != set(data.users):
        return
    there = answers(case.estimator().fit(None, read), world.items, world.users)
    close(there, answers(model, world.items, world.users), tolerance(case), "read from a file")


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
        user = data.users[data.user[row]] if tells_users_apart(model) else None
        win, tie, _ = model.predict_proba(pair, user, ties=True, **how)[0]
        if not data.tie[row] or tie > 0.0:
            logs.append(np.log(tie if data.tie[row] else win))
            counts.append(data.count[row])
    close(model.score(data), np.average(logs, weights=counts), ROUNDING, "score")


@relation()
def score_is_a_mean(case, world, model):
    """Everything twice scores as everything once; two parts score around their whole."""
    data, parts = world.data(), [part.data() for part in parted(world)]
    whole = model.score(data)
    close(model.score(data + data), whole, ROUNDING, "score of everything twice")
    low, high = sorted(model.score(part) for part in parts)
    assert low - ROUNDING <= whole <= high + ROUNDING, (low, whole, high)


# One model, several views


@relation()
def views_agree(case, world, model):
    """predict, rank and belief tell of the same utilities; users by name or by number."""
    for user in (None, *world.users) if tells_users_apart(model) else (None,):
        mean = model.predict(users=None if user is None else [user]).ravel()
        ranked = {row.item: row.utility for row in model.rank(user)}
        centred = mean - mean.mean()
        close([ranked[item] for item in world.items], centred, ROUNDING, "rank and predict")
        belief = model.belief(user).mean
        close(belief - belief.mean(), centred, ROUNDING, "belief and predict")
    if tells_users_apart(model):
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


def failures(case, names=None):
    """{relation: what is wrong} of one case; empty where all hold."""
    world, wrong = case.world(), {}
    model = world.fit(case.estimator())
    for name, each in RELATIONS.items():
        if (names is None or name in names) and each.applies(case):
            try:
                each.check(case, world, model)
            except AssertionError as error:
                wrong[name] = str(error)
    return wrong
