"""What every estimator in the registry keeps to, so that a new one is not forgotten."""

import inspect

import pytest
from sklearn.base import clone

import penchant as pc
from penchant.errors import DataError
from penchant.models.store import ESTIMATORS, estimator_classes

NAMES = sorted(ESTIMATORS)


@pytest.mark.parametrize("name", NAMES)
def test_is_public_and_documented_with_an_example(name):
    cls = estimator_classes()[name]
    assert getattr(pc, name) is cls
    assert ">>>" in inspect.getdoc(cls)
    for method in ("fit", "save"):
        assert inspect.getdoc(getattr(cls, method)), f"{name}.{method} has no docstring"


@pytest.mark.parametrize("name", NAMES)
def test_constructor_only_stores(name):
    """Every parameter comes back as the very object that went in."""
    cls = estimator_classes()[name]
    parameters = list(inspect.signature(cls.__init__).parameters)[1:]
    tokens = {parameter: object() for parameter in parameters}
    model = cls(**tokens)
    stored = model.get_params(deep=False)
    assert set(stored) == set(parameters)
    assert all(stored[parameter] is tokens[parameter] for parameter in parameters)


@pytest.mark.parametrize("name", NAMES)
def test_clone_and_repr(name):
    cls = estimator_classes()[name]
    model = cls()
    assert clone(model).get_params() == model.get_params()
    assert repr(model).startswith(name)


@pytest.mark.parametrize("name", NAMES)
def test_an_unfitted_model_is_saved_and_loaded(name, tmp_path):
    model = estimator_classes()[name]()
    model.save(tmp_path / "model")
    again = pc.load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()


def test_a_registered_name_is_needed_to_save(tmp_path):
    from sklearn.linear_model import LinearRegression

    from penchant.models import save

    with pytest.raises(DataError, match="cannot be saved"):
        save(LinearRegression(), tmp_path / "m")
