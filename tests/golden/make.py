"""Write model.penchant, a model file of the current format, and what the model says.

Run it from the root of the repository after `VERSION` of `penchant.models.store` was raised:

    PYTHONPATH=src python tests/golden/make.py
"""

import json
from pathlib import Path

import numpy as np

import penchant as pc
from penchant.models.store import VERSION

HERE = Path(__file__).parent


def fitted() -> pc.MultiUserGP:
    """Users with features, items with features and a relation, ties, an effect of the order."""
    rng = np.random.default_rng(3)
    n, n_users, m = 6, 9, 120
    X, Z = rng.random((n, 2)), rng.random((n_users, 2))
    first, second = rng.integers(n, size=(2, m))
    first, second = first[first != second], second[first != second]
    user = rng.integers(n_users, size=len(first))
    better = X[first, 0] - X[second, 0] + 0.4 * rng.standard_normal(len(first)) > 0
    data = pc.Comparisons.from_pairs(
        np.where(better, first, second),
        np.where(better, second, first),
        user=user,
        tie=rng.random(len(first)) < 0.1,
        first=np.where(better, 1, -1),
        items=range(n),
        users=range(n_users),
    )
    ring = np.roll(np.eye(n), 1, axis=1)
    model = pc.MultiUserGP(likelihood="ties", random_state=1)
    return model.fit(X, data, {"ring": ring + ring.T}, user_features=Z)


if __name__ == "__main__":
    model = fitted()
    model.save(HERE / "model.penchant")
    users = list(model.comparisons_.users)
    said = {
        "version": VERSION,
        "utilities": model.predict(users=users).tolist(),
        "population": model.predict().tolist(),
        "effects": [row.estimate for row in model.effects_],
        "log_evidence": model.log_evidence_,
    }
    (HERE / "model.json").write_text(json.dumps(said, indent=1) + "\n")
