"""Models of one utility per item.

A contestant takes a task (X, winner, loser, test_winner, test_loser) and returns two functions:
one fits, one returns {"log_prob": of the held-out answers}. Imports are not timed, nor is turning
arrays into the lists or frames that a peer takes.
"""

import numpy as np
from scipy.special import log_expit, log_ndtr


def penchant_model(task, model, with_features=True):
    import penchant as pc

    items = range(len(task["X"]))
    pairs = np.column_stack([task["test_winner"], task["test_loser"]])
    X = task["X"] if with_features else None

    def fit():
        model.fit(X, pc.Comparisons.from_pairs(task["winner"], task["loser"], items=items))

    return fit, lambda: {"log_prob": np.log(model.predict_proba(pairs))}


def penchant_posterior(task, inference="ep"):
    import penchant as pc

    # noise of variance one on the difference: half the variance that goes with √2
    kernel = pc.kernels.RBF((0.5,) * task["X"].shape[1], 2.0)
    return penchant_model(task, pc.PreferenceGP(kernel, optimize=None, inference=inference))


def penchant_laplace(task):
    return penchant_posterior(task, inference="laplace")


def penchant_evidence(task):
    import penchant as pc

    return penchant_model(task, pc.PreferenceGP(pc.kernels.RBF((1.0,) * task["X"].shape[1])))


def penchant_default(task):
    """What a user gets who chooses nothing."""
    import penchant as pc

    return penchant_model(task, pc.PreferenceGP())


def penchant_no_kernel(task):
    import penchant as pc

    model = pc.PreferenceGP(pc.kernels.Independent(2.0), optimize=None)
    return penchant_model(task, model, with_features=False)


def penchant_probit(task):
    import penchant as pc

    return penchant_model(task, pc.PreferenceGP(), with_features=False)


def penchant_logit(task):
    import penchant as pc

    return penchant_model(task, pc.PreferenceGP(likelihood="logit"), with_features=False)


def botorch_model(task, prepare):
    """`prepare(X, comparisons)` makes the model; its time is the fit's."""
    import torch

    X = torch.tensor(task["X"], dtype=torch.double)
    comparisons = torch.tensor(np.column_stack([task["winner"], task["loser"]]))
    made = {}

    def fit():
        made["model"] = prepare(X, comparisons)

    def predict():
        with torch.no_grad():
            posterior = made["model"].eval().posterior(X)
            mean = posterior.mean.numpy().ravel()
            cov = posterior.covariance_matrix.numpy()
        return {"log_prob": probit_log_prob(mean, cov, 2.0, task)}

    return fit, predict


def probit_log_prob(mean, cov, noise, task):
    w, loser = task["test_winner"], task["test_loser"]
    var = cov[w, w] + cov[loser, loser] - 2 * cov[w, loser]
    return log_ndtr((mean[w] - mean[loser]) / np.sqrt(noise + var))


def botorch_posterior(task):
    import torch
    from botorch.models.pairwise_gp import PairwiseGP
    from gpytorch.kernels import RBFKernel, ScaleKernel

    def prepare(X, comparisons):
        kernel = ScaleKernel(RBFKernel(ard_num_dims=X.shape[1]))
        kernel.base_kernel.lengthscale = torch.full((1, X.shape[1]), 0.5, dtype=torch.double)
        kernel.outputscale = torch.tensor(4.0, dtype=torch.double)
        return PairwiseGP(X, comparisons, covar_module=kernel)

    return botorch_model(task, prepare)


def botorch_evidence(task):
    """With its own kernel and priors, on features that are scaled as it asks for."""
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
    from botorch.models.transforms.input import Normalize

    def prepare(X, comparisons):
        model = PairwiseGP(X, comparisons, input_transform=Normalize(X.shape[1]))
        fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
        return model

    return botorch_model(task, prepare)


def choix_ep(task):
    import choix

    pairs = list(zip(task["winner"].tolist(), task["loser"].tolist(), strict=True))
    made = {}

    def fit():
        # the same prior variance, without a kernel: choix knows no features
        made["posterior"] = choix.ep_pairwise(
            len(task["X"]), pairs, 0.5, model="probit", max_iter=100
        )

    return fit, lambda: {"log_prob": probit_log_prob(*made["posterior"], 1.0, task)}


def choix_ilsr(task):
    import choix

    pairs = np.column_stack([task["winner"], task["loser"]]).tolist()
    made = {}

    def fit():
        made["utility"] = choix.ilsr_pairwise(len(task["X"]), pairs, alpha=1e-3)

    return fit, lambda: bradley_terry_log_prob(made["utility"], task)


def choix_ilsr_dense(task):
    """The same from a matrix of counts, which is made within the time."""
    import choix

    n = len(task["X"])
    made = {}

    def fit():
        wins = np.bincount(task["winner"] * n + task["loser"], minlength=n * n)
        wins = wins.reshape(n, n).astype(float)
        made["utility"] = choix.ilsr_pairwise_dense(wins, alpha=1e-3)

    return fit, lambda: bradley_terry_log_prob(made["utility"], task)


def bradley_terry_log_prob(utility, task):
    return {"log_prob": log_expit(utility[task["test_winner"]] - utility[task["test_loser"]])}


def evalica_scores(task, score):
    """`score(evalica, first, second, winners)` gives log strengths by item name."""
    import evalica

    winners = [evalica.Winner.X] * len(task["winner"])
    made = {}

    def fit():
        by_item = score(evalica, task["winner"].tolist(), task["loser"].tolist(), winners)
        made["utility"] = by_item.reindex(range(len(task["X"]))).to_numpy()

    return fit, lambda: bradley_terry_log_prob(made["utility"], task)


def evalica_bradley_terry(task):
    return evalica_scores(
        task, lambda evalica, *given: np.log(evalica.bradley_terry(*given).scores)
    )


def evalica_elo(task):
    return evalica_scores(
        task, lambda evalica, *given: np.log(10.0) / 400.0 * evalica.elo(*given).scores
    )


def crowd_kit(task):
    """Bradley–Terry by an MM algorithm, with the number of iterations of its documentation."""
    import pandas as pd
    from crowdkit.aggregation import BradleyTerry

    won = pd.DataFrame({"left": task["winner"], "right": task["loser"], "label": task["winner"]})
    model = BradleyTerry(n_iter=100)

    def predict():
        strength = model.scores_.reindex(range(len(task["X"]))).to_numpy()
        return bradley_terry_log_prob(np.log(strength), task)

    return lambda: model.fit(won), predict


def arena_rank(task):
    """The leaderboard of LMArena: Bradley–Terry with intervals by a sandwich estimator."""
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    n = len(task["X"])
    first_won = np.random.default_rng(0).random(len(task["winner"])) < 0.5
    battles = pd.DataFrame(
        {
            "model_a": np.where(first_won, task["winner"], task["loser"]),
            "model_b": np.where(first_won, task["loser"], task["winner"]),
            "winner": np.where(first_won, "model_a", "model_b"),
        }
    )
    made = {}

    def fit():
        data = PairDataset.from_pandas(battles)
        model = BradleyTerry(n_competitors=len(data.competitors))
        made["found"] = model.compute_ratings_and_cis(data)

    def predict():
        utility = np.zeros(n)
        ratings = np.asarray(made["found"]["ratings"])
        utility[made["found"]["competitors"]] = ratings * np.log(10.0) / 400.0
        return bradley_terry_log_prob(utility, task)

    return fit, predict


def one_by_one(task, new_rating, rate):
    """Ratings that every comparison changes: `rate(winner, loser)` returns the two new ones.

    The prediction is the model's own formula, from `mu`, `sigma` and the noise `beta` of each side.
    """
    ratings = [new_rating() for _ in task["X"]]

    def fit():
        for w, loser in zip(task["winner"].tolist(), task["loser"].tolist(), strict=True):
            ratings[w], ratings[loser] = rate(ratings[w], ratings[loser])

    def predict(beta):
        mean = np.array([rating.mu for rating in ratings])
        var = np.diag([rating.sigma**2 for rating in ratings])
        return {"log_prob": probit_log_prob(mean, var, 2.0 * beta**2, task)}

    return fit, predict


def openskill_plackett_luce(task):
    from openskill.models import PlackettLuce

    model = PlackettLuce()

    def rate(winner, loser):
        (winner,), (loser,) = model.rate([[winner], [loser]])
        return winner, loser

    fit, predict = one_by_one(task, model.rating, rate)
    return fit, lambda: predict(model.beta)


def trueskill(task):
    from trueskill import TrueSkill, rate_1vs1

    model = TrueSkill(draw_probability=0.0)  # the comparisons have no ties
    fit, predict = one_by_one(
        task, model.create_rating, lambda winner, loser: rate_1vs1(winner, loser, env=model)
    )
    return fit, lambda: predict(model.beta)


def sklearn_items(task):
    """Logistic regression on a column an item: 1 for who was shown first, −1 for the other."""
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    n = len(task["X"])
    items = sparse.eye_array(n, format="csr")
    model = LogisticRegression(fit_intercept=False)
    return sklearn_classifier(task | {"X": np.arange(n)}, model, lambda a, b: items[a] - items[b])


def sklearn_classifier(task, model, rows_of):
    """A classifier of "the first one won"; `rows_of(x, y)` turns features of pairs into rows."""
    X = task["X"]
    won = np.random.default_rng(0).random(len(task["winner"])) < 0.5  # both classes are needed
    first = np.where(won, task["winner"], task["loser"])
    second = np.where(won, task["loser"], task["winner"])
    test = rows_of(X[task["test_winner"]], X[task["test_loser"]])
    return (
        lambda: model.fit(rows_of(X[first], X[second]), won),
        lambda: {"log_prob": np.log(model.predict_proba(test)[:, 1])},
    )


def sklearn_logistic(task):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(fit_intercept=False)
    return sklearn_classifier(task, model, np.subtract)


def sklearn_gp_differences(task):
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    model = GaussianProcessClassifier(1.0 * RBF(np.ones(task["X"].shape[1])))
    return sklearn_classifier(task, model, np.subtract)


def sklearn_gp_both(task):
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    model = GaussianProcessClassifier(1.0 * RBF(np.ones(2 * task["X"].shape[1])))
    return sklearn_classifier(task, model, lambda x, y: np.hstack([x, y]))


CONTESTANTS = {
    "penchant ep": penchant_posterior,
    "penchant laplace": penchant_laplace,
    "penchant evidence": penchant_evidence,
    "penchant default": penchant_default,
    "penchant ep, no kernel": penchant_no_kernel,
    "penchant probit": penchant_probit,
    "penchant logit": penchant_logit,
    "botorch laplace": botorch_posterior,
    "botorch evidence": botorch_evidence,
    "choix ep, no kernel": choix_ep,
    "choix ilsr": choix_ilsr,
    "choix ilsr, dense": choix_ilsr_dense,
    "evalica Bradley–Terry": evalica_bradley_terry,
    "evalica Elo": evalica_elo,
    "crowd-kit Bradley–Terry": crowd_kit,
    "arena-rank": arena_rank,
    "openskill PlackettLuce": openskill_plackett_luce,
    "trueskill": trueskill,
    "scikit-learn logistic, items": sklearn_items,
    "scikit-learn logistic, x − y": sklearn_logistic,
    "scikit-learn GP classifier, x − y": sklearn_gp_differences,
    "scikit-learn GP classifier, (x, y)": sklearn_gp_both,
}
