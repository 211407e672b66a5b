"""One contestant on one task, in a process of its own: `python contestants.py NAME TASK.npz`.

Prints JSON: seconds to fit, seconds to predict the held-out pairs, peak memory, and the mean
held-out log-likelihood. Runs in whichever environment holds the contestant.
"""

import json
import resource
import sys
import time

import numpy as np


def penchant_posterior(task, optimize=None, inference="ep"):
    import penchant as pc

    data = pc.Comparisons.from_pairs(task["winner"], task["loser"], items=range(len(task["X"])))
    start = (0.5,) * task["X"].shape[1] if optimize is None else (1.0,) * task["X"].shape[1]
    # noise of variance one on the difference: half the variance that goes with √2
    kernel = pc.kernels.RBF(start, 2.0 if optimize is None else 1.0)
    model = pc.PreferenceGP(kernel, optimize=optimize, inference=inference)
    pairs = np.column_stack([task["test_winner"], task["test_loser"]])
    yield lambda: model.fit(task["X"], data)
    yield lambda: np.log(model.predict_proba(pairs))


def penchant_fit(task):
    return penchant_posterior(task, optimize="evidence")


def penchant_default(task):
    """What a user gets who chooses nothing."""
    import penchant as pc

    data = pc.Comparisons.from_pairs(task["winner"], task["loser"], items=range(len(task["X"])))
    model = pc.PreferenceGP()
    pairs = np.column_stack([task["test_winner"], task["test_loser"]])
    yield lambda: model.fit(task["X"], data)
    yield lambda: np.log(model.predict_proba(pairs))


def penchant_laplace(task):
    return penchant_posterior(task, inference="laplace")


def botorch_model(task):
    import torch
    from botorch.models.pairwise_gp import PairwiseGP
    from gpytorch.kernels import RBFKernel, ScaleKernel

    X = torch.tensor(task["X"], dtype=torch.double)
    comparisons = torch.tensor(np.column_stack([task["winner"], task["loser"]]))
    kernel = ScaleKernel(RBFKernel(ard_num_dims=X.shape[1]))
    return X, comparisons, kernel, PairwiseGP


def botorch_log_lik(model, X, task):
    import torch
    from scipy.special import log_ndtr

    with torch.no_grad():
        posterior = model.eval().posterior(X)
        mean = posterior.mean.numpy().ravel()
        cov = posterior.covariance_matrix.numpy()
    w, loser = task["test_winner"], task["test_loser"]
    var = cov[w, w] + cov[loser, loser] - 2 * cov[w, loser]
    return log_ndtr((mean[w] - mean[loser]) / np.sqrt(2.0 + var))


def botorch_posterior(task):
    import torch

    X, comparisons, kernel, PairwiseGP = botorch_model(task)
    kernel.base_kernel.lengthscale = torch.full((1, X.shape[1]), 0.5, dtype=torch.double)
    kernel.outputscale = torch.tensor(4.0, dtype=torch.double)
    made = {}

    def fit():
        made["model"] = PairwiseGP(X, comparisons, covar_module=kernel)

    yield fit
    yield lambda: botorch_log_lik(made["model"], X, task)


def botorch_fit(task):
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.pairwise_gp import PairwiseLaplaceMarginalLogLikelihood

    X, comparisons, kernel, PairwiseGP = botorch_model(task)
    made = {}

    def fit():
        model = PairwiseGP(X, comparisons, covar_module=kernel)
        fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
        made["model"] = model

    yield fit
    yield lambda: botorch_log_lik(made["model"], X, task)


def choix_ep(task):
    import choix
    from scipy.special import log_ndtr

    pairs = list(zip(task["winner"].tolist(), task["loser"].tolist(), strict=True))
    made = {}

    def fit():
        # the same prior variance, without a kernel: choix knows no features
        made["mean"], made["cov"] = choix.ep_pairwise(
            len(task["X"]), pairs, 0.5, model="probit", max_iter=100
        )

    def predict():
        mean, cov = made["mean"], made["cov"]
        w, loser = task["test_winner"], task["test_loser"]
        var = cov[w, w] + cov[loser, loser] - 2 * cov[w, loser]
        return log_ndtr((mean[w] - mean[loser]) / np.sqrt(1.0 + var))

    yield fit
    yield predict


def penchant_independent(task):
    import penchant as pc

    data = pc.Comparisons.from_pairs(task["winner"], task["loser"], items=range(len(task["X"])))
    model = pc.PreferenceGP(pc.kernels.Independent(2.0), optimize=None)
    pairs = np.column_stack([task["test_winner"], task["test_loser"]])
    yield lambda: model.fit(None, data)
    yield lambda: np.log(model.predict_proba(pairs))


CONTESTANTS = {
    "penchant ep": penchant_posterior,
    "penchant laplace": penchant_laplace,
    "penchant evidence": penchant_fit,
    "penchant default": penchant_default,
    "penchant ep, no kernel": penchant_independent,
    "botorch laplace": botorch_posterior,
    "botorch evidence": botorch_fit,
    "choix ep, no kernel": choix_ep,
}


def main():
    name, path = sys.argv[1:3]
    with np.load(path) as archive:
        task = dict(archive)
    fit, predict = CONTESTANTS[name](task)
    seconds, values = [], None
    for work in (fit, predict):
        start = time.perf_counter()
        values = work()
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump(
        {
            "fit": seconds[0],
            "predict": seconds[1],
            "peak_mb": peak,
            "log_lik": float(np.mean(values)),
            "error": float(np.mean(values < np.log(0.5)) + 0.5 * np.mean(values == np.log(0.5))),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
