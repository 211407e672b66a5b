"""Models of many users.

A contestant takes a task (user, winner, loser, test_user, test_winner, test_loser, n_users,
n_items and maybe X) and returns two functions: one fits, one returns some of {"prob": of the
held-out answers, "margin": how far the winner's score is ahead, "labels": (U,) community}.
"""

import numpy as np
from scipy import sparse


def penchant_model(task, model, with_labels=False):
    import penchant as pc

    pairs = np.column_stack([task["test_winner"], task["test_loser"]])

    def fit():
        data = pc.Comparisons.from_pairs(
            task["winner"],
            task["loser"],
            user=task["user"],
            items=range(task["n_items"]),
            users=range(task["n_users"]),
        )
        model.fit(task.get("X"), data)

    def predict():
        predicted = {"prob": model.predict_proba(pairs, task["test_user"])}
        if with_labels:
            predicted["labels"] = model.membership_.argmax(axis=1)
        return predicted

    return fit, predict


def penchant_communities(task, **options):
    import penchant as pc

    model = pc.CommunityGP(random_state=0, progress=False, **options)
    return penchant_model(task, model, with_labels=True)


def penchant_blocked(task):
    return penchant_communities(task, inference="mcmc", sampler="blocked")


def penchant_chains(task):
    return penchant_communities(task, inference="mcmc")


def penchant_from_scratch(task, sampler="collapsed", n_sweeps=100, n_chains=2):
    """Chains as they were before there was a search: everybody in one community at first."""
    from unittest.mock import patch

    from penchant.communities import MixtureFitter, find_communities

    def together(fitter):
        return find_communities(fitter.mixture, n_communities=1, learn_parameters=False)

    fit, predict = penchant_communities(
        task,
        inference="mcmc",
        personal=False,
        sampler=sampler,
        n_sweeps=n_sweeps,
        n_chains=n_chains,
    )

    def fit_from_scratch():
        with patch.object(MixtureFitter, "search", together):
            fit()

    return fit_from_scratch, predict


def penchant_many_users(task):
    import penchant as pc

    return penchant_model(task, pc.MultiUserGP(progress=False, random_state=0))


def penchant_pooled(task):
    """Everybody as one: what knowing the users is worth."""
    import penchant as pc

    model = pc.PreferenceGP()
    pairs = np.column_stack([task["test_winner"], task["test_loser"]])

    def fit():
        items = range(task["n_items"])
        data = pc.Comparisons.from_pairs(task["winner"], task["loser"], items=items)
        model.fit(task.get("X"), data)

    return fit, lambda: {"prob": model.predict_proba(pairs)}


def wins_and_losses(task):
    """Two (U, n) arrays: how often each user preferred each item, and the reverse."""
    shape = int(task["n_users"]), int(task["n_items"])
    wins, losses = np.zeros(shape), np.zeros(shape)
    np.add.at(wins, (task["user"], task["winner"]), 1.0)
    np.add.at(losses, (task["user"], task["loser"]), 1.0)
    return wins, losses


def red_dwarf(task):
    """Polis: an item is a statement; who preferred it more often than not agrees with it."""
    from reddwarf.implementations.polis import run_pipeline

    wins, losses = wins_and_losses(task)
    users, items = np.nonzero(wins + losses)
    opinion = np.sign(wins - losses)[users, items].astype(int)
    votes = [
        {"participant_id": u, "statement_id": i, "vote": v, "modified": 0}
        for u, i, v in zip(users.tolist(), items.tolist(), opinion.tolist(), strict=True)
    ]
    made = {}

    def fit():
        made["result"] = run_pipeline(votes=votes, min_user_vote_threshold=1, random_state=0)

    def predict():
        groups = made["result"].participants_df["cluster_id"]
        return {"labels": groups.reindex(range(len(wins))).fillna(-1).to_numpy(dtype=int)}

    return fit, predict


def polis(task):
    """What Polis does: two principal components, a hundred small clusters, two to five groups.

    Statements that somebody did not see are imputed by their mean, people with few votes are
    moved outwards by √(statements / votes), the number of groups is chosen by silhouette.
    """
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.metrics import silhouette_score

    wins, losses = wins_and_losses(task)
    made = {}

    def fit():
        seen = wins + losses > 0
        opinion = np.sign(wins - losses)
        mean = opinion.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        points = PCA(2, random_state=0).fit_transform(np.where(seen, opinion, mean))
        points *= np.sqrt(seen.shape[1] / np.maximum(seen.sum(axis=1), 1))[:, None]
        small = KMeans(min(100, len(points)), n_init=1, random_state=0).fit(points)
        size = np.bincount(small.labels_)
        tries = []
        for k in range(2, 6):
            groups = KMeans(k, n_init=1, random_state=0).fit(
                small.cluster_centers_, sample_weight=size
            )
            score = silhouette_score(small.cluster_centers_, groups.labels_)
            tries.append((score, groups.labels_))
        made["labels"] = max(tries, key=lambda tried: tried[0])[1][small.labels_]

    return fit, lambda: {"labels": made["labels"]}


def sklearn_gaussians(task):
    """Gaussian mixtures of 1 to 10 on the principal components of wins − losses, by BIC."""
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    wins, losses = wins_and_losses(task)
    made = {}

    def fit():
        points = PCA(10, random_state=0).fit_transform(wins - losses)
        tries = [GaussianMixture(k, random_state=0).fit(points) for k in range(1, 11)]
        made["labels"] = min(tries, key=lambda tried: tried.bic(points)).predict(points)

    return fit, lambda: {"labels": made["labels"]}


def sklearn_mixture(task):
    """A Dirichlet-process mixture of Gaussians on the principal components of wins − losses."""
    from sklearn.decomposition import PCA
    from sklearn.mixture import BayesianGaussianMixture

    wins, losses = wins_and_losses(task)
    made = {}

    def fit():
        points = PCA(10, random_state=0).fit_transform(wins - losses)
        made["mixture"] = BayesianGaussianMixture(
            n_components=10,
            weight_concentration_prior_type="dirichlet_process",
            max_iter=500,
            random_state=0,
        ).fit(points)
        made["points"] = points

    return fit, lambda: {"labels": made["mixture"].predict(made["points"])}


def implicit_model(task, model):
    """Learns who preferred what; what it was preferred to cannot be told."""
    wins, _ = wins_and_losses(task)
    liked = sparse.csr_matrix(wins.astype(np.float32))

    def predict():
        user = task["test_user"]
        lead = model.item_factors[task["test_winner"]] - model.item_factors[task["test_loser"]]
        return {"margin": np.sum(model.user_factors[user] * lead, axis=1)}

    return lambda: model.fit(liked, show_progress=False), predict


def implicit_bpr(task):
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    return implicit_model(task, BayesianPersonalizedRanking(random_state=0))


def implicit_als(task):
    from implicit.cpu.als import AlternatingLeastSquares

    return implicit_model(task, AlternatingLeastSquares(random_state=0))


def sklearn_logistic(task):
    """Logistic regression on a column an item and a column a user and item, ridge as it comes."""
    from sklearn.linear_model import LogisticRegression

    n_users, n_items = int(task["n_users"]), int(task["n_items"])
    model = LogisticRegression(fit_intercept=False)

    def columns(user, first, second):
        row, one = np.arange(len(user)), np.ones(len(user))
        own = n_items * (1 + user)
        places = np.concatenate([first, own + first, second, own + second])
        values = np.concatenate([one, one, -one, -one])
        shape = len(user), n_items * (1 + n_users)
        return sparse.csr_array((values, (np.tile(row, 4), places)), shape=shape)

    def fit():
        won = np.random.default_rng(0).random(len(task["user"])) < 0.5  # both classes are needed
        first = np.where(won, task["winner"], task["loser"])
        second = np.where(won, task["loser"], task["winner"])
        model.fit(columns(task["user"], first, second), won)

    def predict():
        test = columns(task["test_user"], task["test_winner"], task["test_loser"])
        return {"prob": model.predict_proba(test)[:, 1]}

    return fit, predict


CONTESTANTS = {
    "penchant CommunityGP": penchant_communities,
    "penchant CommunityGP, blocked": penchant_blocked,
    "penchant CommunityGP, chains": penchant_chains,
    "penchant CommunityGP, chains from scratch": penchant_from_scratch,
    "penchant MultiUserGP": penchant_many_users,
    "penchant PreferenceGP, pooled": penchant_pooled,
    "Polis' steps": polis,
    "red-dwarf (Polis)": red_dwarf,
    "scikit-learn mixture by BIC": sklearn_gaussians,
    "scikit-learn DP mixture": sklearn_mixture,
    "scikit-learn logistic, user × item": sklearn_logistic,
    "implicit BPR": implicit_bpr,
    "implicit ALS": implicit_als,
}
