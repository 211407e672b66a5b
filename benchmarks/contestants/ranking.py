"""Rankers of documents within queries.

A contestant takes a task (X, y, qid of the training documents, test_X) and returns two
functions: one fits, one returns {"score": of the test documents}. RLScore's run in an old Python.
"""

import numpy as np

RIDGES = 2.0 ** np.arange(-10, 11)


def penchant_model(task, model):
    return (
        lambda: model.fit(task["X"], task["y"], qid=task["qid"]),
        lambda: {"score": model.predict(task["test_X"])},
    )


def penchant_rank_rls_linear(task):
    import penchant as pc

    return penchant_model(task, pc.RankRLS(kernel="linear"))


def penchant_rank_rls(task):
    import penchant as pc

    return penchant_model(task, pc.RankRLS(random_state=0))


def penchant_kpc_rank(task):
    import penchant as pc

    return penchant_model(task, pc.KPCRank(random_state=0))


def lightgbm_lambdarank(task):
    import lightgbm

    model = lightgbm.LGBMRanker(random_state=0, verbose=-1)
    sizes = np.unique(task["qid"], return_counts=True)[1]
    return (
        lambda: model.fit(task["X"], task["y"], group=sizes),
        lambda: {"score": model.predict(task["test_X"])},
    )


def rlscore_rank_rls(task, **kernel):
    """The ridge by leaving queries out, as penchant chooses it."""
    from rlscore.learner import LeaveQueryOutRankRLS
    from rlscore.measure import cindex

    made = {}

    def fit():
        made["model"] = LeaveQueryOutRankRLS(
            task["X"], task["y"], task["qid"], regparams=RIDGES, measure=cindex, **kernel
        )

    return fit, lambda: {"score": made["model"].predict(task["test_X"])}


def rlscore_linear(task):
    return rlscore_rank_rls(task)


def rlscore_rbf(task):
    """A Gaussian kernel of the median width on 1,000 rows, as penchant's default."""
    from scipy.spatial.distance import pdist

    rows = np.random.RandomState(0).permutation(len(task["X"]))[:1000]
    landmarks = task["X"][rows]
    gamma = 0.5 / np.median(pdist(landmarks)) ** 2
    return rlscore_rank_rls(task, kernel="GaussianKernel", gamma=gamma, basis_vectors=landmarks)


CONTESTANTS = {
    "penchant RankRLS, linear": penchant_rank_rls_linear,
    "penchant RankRLS": penchant_rank_rls,
    "penchant KPCRank": penchant_kpc_rank,
    "lightgbm lambdarank": lightgbm_lambdarank,
    "rlscore RankRLS, linear": rlscore_linear,
    "rlscore RankRLS, RBF": rlscore_rbf,
}
