import numpy as np
import pytest

import penchant as pc
from penchant.workflow import segments


@pytest.fixture(scope="module")
def parts():
    truth = np.array([0.0, 0.5, 1.0, 1.5])
    return {
        name: pc.datasets.simulate_pairs(utility, 400, random_state=seed)
        for seed, (name, utility) in enumerate({"up": truth, "down": -truth, "same": truth}.items())
    }


@pytest.fixture(scope="module")
def found(parts):
    return segments(parts, model=pc.PreferenceGP(random_state=0))


def test_each_part_is_a_fit_at_the_shared_hyperparameters(parts, found):
    kernel = found.everybody.kernel_
    for name, part in parts.items():
        alone = pc.PreferenceGP(kernel, optimize=None).fit(None, part)
        np.testing.assert_allclose(found.models[name].predict(), alone.predict(), atol=1e-5)
    assert found.everybody.comparisons_.n_comparisons == 1200


def test_differences_and_their_intervals(found):
    rows = found.difference("up", "down")
    assert [row.item for row in rows] == [3, 2, 1, 0]
    assert rows[0].low > 1.0
    assert rows[-1].prob_more < 0.01
    assert all(row.low < 0.0 < row.high for row in found.difference("up", "same", level=0.999))
    back = {row.item: row for row in found.difference("down", "up")}
    for row in rows:
        assert back[row.item].difference == pytest.approx(-row.difference)
        assert back[row.item].low == pytest.approx(-row.high)


def test_differences_cover(parts):
    """Two halves of one truth: nominal 90 % intervals hold zero in about nine of ten items."""
    inside = []
    for seed in range(8):
        data = pc.datasets.simulate_pairs(np.linspace(0, 2, 8), 300, random_state=seed)
        one, two = data.split(0.5, random_state=seed)
        both = segments({"one": one, "two": two}, model=pc.PreferenceGP(random_state=0))
        inside += [row.low < 0 < row.high for row in both.difference("one", "two", level=0.9)]
    sigma = np.sqrt(0.9 * 0.1 / len(inside))
    assert abs(np.mean(inside) - 0.9) < 4 * sigma


def test_people_too(parts):
    who = {"user": ["ann", "bob"] * 4}
    users, items = ["ann", "bob"], ["tea", "milk"]
    day = pc.Comparisons.from_pairs(["tea"] * 8, ["milk"] * 8, items=items, users=users, **who)
    night = pc.Comparisons.from_pairs(["milk"] * 8, ["tea"] * 8, items=items, users=users, **who)
    both = segments({"day": day, "night": night}, model=pc.MultiUserGP(optimize=None))
    assert both.rank("day")[0].item == "tea"
    assert both.difference("day", "night")[0].low > 0.0


def test_what_is_no_pair_of_segments(parts, found):
    with pytest.raises(pc.DataError, match="there must be two"):
        segments({"up": parts["up"]})
    other = pc.Comparisons.from_pairs(["a"], ["b"])
    with pytest.raises(pc.DataError, match="different items"):
        segments({"up": parts["up"], "other": other})
    with pytest.raises(pc.DataError, match="no segment 'left'"):
        found.rank("left")
    with pytest.raises(pc.DataError, match="without intervals"):
        segments(parts, model=pc.RankRLS())
