"""Models of utilities that change over time.

A contestant takes a task (winner, loser, week, test_winner, test_loser, test_week, n_items) and
returns two functions: one fits, one returns {"log_prob": of the held-out games}, all of one week.
"""

import numpy as np
from scipy.special import log_ndtr


def penchant_model(task, drift):
    import penchant as pc

    model = pc.PreferenceGP(drift=drift)
    pairs = np.column_stack([task["test_winner"], task["test_loser"]])

    def fit():
        data = pc.Comparisons.from_pairs(
            task["winner"],
            task["loser"],
            time=day_of(task["week"]),
            items=range(task["n_items"]),
        )
        model.fit(None, data)

    def predict():
        when = {"at": day_of(task["test_week"])} if drift else {}
        return {"log_prob": np.log(model.predict_proba(pairs, **when))}

    return fit, predict


def day_of(week):
    return np.datetime64("2020-01-06") + 7 * week


def penchant_drift(task):
    return penchant_model(task, "ou")


def penchant_still(task):
    """Without drift: what knowing the time is worth."""
    return penchant_model(task, None)


def kickscore(task):
    """It learns no constants: these are the ones that made the games. Compiling is not timed."""
    import kickscore as ks

    def model_of(n_items):
        model = ks.BinaryModel()
        for item in range(n_items):
            kernel = ks.kernel.Constant(var=1.0) + ks.kernel.Exponential(var=1.0, lscale=20.0)
            model.add_item(str(item), kernel=kernel)
        return model

    def learn(model, played):
        for winner, loser, week in played:
            model.observe([str(winner)], [str(loser)], t=week)
        model.fit()

    tiny = model_of(2)
    learn(tiny, [(0, 1, 0.0), (1, 0, 1.0)])  # compiles
    tiny.probabilities(["0"], ["1"], t=2.0)
    model, week = model_of(task["n_items"]), float(task["test_week"])
    return (
        lambda: learn(model, games(task)),
        lambda: of_pairs(task, lambda a, b: model.probabilities([a], [b], t=week)[0]),
    )


def games(task):
    columns = task["winner"], task["loser"], task["week"].astype(float)
    return zip(*(column.tolist() for column in columns), strict=True)


def of_pairs(task, probability):
    """`probability(a, b)` of a's win, asked once for every distinct pair of the held-out games."""
    pairs = np.column_stack([task["test_winner"], task["test_loser"]])
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    found = np.array([probability(str(a), str(b)) for a, b in distinct])
    return {"log_prob": np.log(found[place.ravel()])}


def through_time(task):
    """TrueSkill Through Time, as its documentation starts: with its own constants."""
    from trueskillthroughtime import History

    composition = [[[str(winner)], [str(loser)]] for winner, loser, _ in games(task)]
    times = task["week"].tolist()
    made = {}

    def fit():
        made["history"] = History(composition, times=times)
        made["history"].convergence(verbose=False)

    def predict():
        curves = made["history"].learning_curves()
        last = [curves[str(item)][-1] for item in range(task["n_items"])]
        gap = [int(task["test_week"]) - week for week, _ in last]
        mean, sd = np.array([[skill.mu, skill.sigma] for _, skill in last]).T
        var = sd**2 + made["history"].gamma ** 2 * np.array(gap)
        w, loser = task["test_winner"], task["test_loser"]
        noise = 2.0 + var[w] + var[loser]  # its beta is 1 on either side
        return {"log_prob": log_ndtr((mean[w] - mean[loser]) / np.sqrt(noise))}

    return fit, predict


def whole_history(task):
    """Whole-History Rating, as its documentation starts; it predicts from the last ratings."""
    from whr import WHR

    model = WHR()

    def fit():
        for winner, loser, week in games(task):
            model.create_game(str(winner), str(loser), "B", week, 0)
        model.auto_iterate()

    return fit, lambda: of_pairs(task, lambda a, b: model.probability_future_match(a, b)[0])


CONTESTANTS = {
    "penchant PreferenceGP, drift": penchant_drift,
    "penchant PreferenceGP": penchant_still,
    "kickscore": kickscore,
    "TrueSkill Through Time": through_time,
    "Whole-History Rating": whole_history,
}
