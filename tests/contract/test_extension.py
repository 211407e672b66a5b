"""A new likelihood, kernel, rule, criterion or estimator is one new file: toys of each are put
through everything, in a process of their own so that no other test meets them."""

import os
import subprocess
import sys
from pathlib import Path

import penchant as pc

TOYS = Path(__file__).parent / "toys"
TRIAL = """
import sys, warnings
sys.path.insert(0, {toys!r})
warnings.simplefilter("ignore")
import numpy as np
import penchant as pc
from criterion import gap
from estimator import WinShare
from kernel import SameSign
from likelihood import Cautious
from penchant.kernels import Independent
import rule

rng = np.random.default_rng(0)
a = rng.integers(6, size=150)
b = (a + 1 + rng.integers(5, size=150)) % 6
X = rng.standard_normal((6, 2))
first = X[a, 0] + 0.5 * rng.standard_normal(150) > X[b, 0]
data = pc.Comparisons.from_pairs(
    np.where(first, a, b), np.where(first, b, a), user=rng.integers(5, size=150),
    items=range(6), users=range(5))

quick = dict(progress=False, random_state=0)
kernel = SameSign() + Independent(0.1)
models = [
    pc.PreferenceGP(kernel, likelihood="cautious"),
    pc.PreferenceGP(kernel, inference="timid"),
    pc.MultiUserGP(kernel, likelihood=Cautious(), progress=False),
    pc.MultiUserGP(kernel, inference="timid", progress=False),
    pc.CommunityGP(kernel=kernel, likelihood=Cautious(), **quick),
    WinShare(),
]
for model in models:
    model.fit(X, data)
    assert np.isfinite(model.predict(users=range(5))).all()
    assert len(model.rank()) == 6
    assert -1 < model.score(data) < 0
    (pair,) = model.ask(1, "gap")
    belief = model.belief()
    assert set(pair) == {{int(belief.mean.argmax()), int(belief.mean.argmin())}}
    before = model.predict()
    model.tell([pair], **({{}} if type(model) is WinShare else {{"user": 0}})).undo()
    assert (model.predict() == before).all()
    model.withdraw(data._with_count((np.arange(len(data)) < 3) * 1))
    if type(model) is not WinShare:
        model.save("toy.penchant")
        assert (pc.load("toy.penchant").predict() == model.predict()).all()
theta = pc.PreferenceGP(kernel, inference="timid").fit(X, data).kernel_.theta
assert not np.allclose(theta, kernel.theta)  # a new rule learns, too
g = np.array([-40.0, 0.0, 2.0])
exact = np.exp(Cautious().log_prob(g).value)
assert np.allclose(Cautious().prob(g, np.zeros(3)), exact)
assert set(Cautious().draw(g, rng).tolist()) <= {{1, -1}}
print("all toys served")
"""


def test_one_new_file_is_enough(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TRIAL.format(toys=str(TOYS))],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(pc.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "all toys served", done.stderr[-3000:]
