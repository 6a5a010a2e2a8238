"""Methods by name."""

import pytest

import veridical as vd
from veridical import errors
from veridical.combine import label_free_combiners
from veridical.evaluation.methods import Method, resolve_method, resolve_methods


@pytest.mark.parametrize("name", vd.calibrators())
def test_every_calibrator_is_a_method_on_its_own_combiner(name):
    method = resolve_method(name)
    assert (method.name, method.calibrator) == (name, name)
    calibrator = method.make(0)
    assert isinstance(calibrator, vd.calibrators()[name])
    assert calibrator.combine == method.combiner
    assert method.title == calibrator.title


@pytest.mark.parametrize("name", label_free_combiners())
def test_every_label_free_combiner_is_a_method_without_calibrator(name):
    method = resolve_method(name)
    assert (method.name, method.combiner, method.calibrator) == (name, name, None)
    with pytest.raises(errors.ParameterError, match=f"^{name} has no parameters; leave 'tol' out.$"):
        resolve_method(name, {"tol": 1.0})


def test_method_name_may_have_spaces_and_capitals():
    assert resolve_method("  TS ") == resolve_method("temperature")
    assert resolve_method("Log-Pool+TS") == resolve_method("log-pool+temperature")


def test_method_on_a_combiner_is_made_with_it():
    method = resolve_method("log-pool+vector")
    assert (method.name, method.combiner, method.calibrator) == ("log-pool+vector", "log-pool", "vector")
    assert method.title.endswith(f" + {resolve_method('vector').title}")
    assert method.make(0).combine == "log-pool"


def test_method_parameters_go_before_what_is_shared():
    method = resolve_method("ptde", {"random_state": 5, "n_threads": 1})
    calibrator = method.make(3, n_threads=2, missing="skip")
    assert (calibrator.random_state, calibrator.n_threads, calibrator.missing) == (5, 1, "skip")
    assert resolve_method("ptde").make(3).random_state == 3


def test_method_of_a_calibrator_makes_the_same_one_again():
    calibrator = vd.Temperature(combine="atde")
    method = Method.of(calibrator)
    assert (method.name, method.combiner) == ("temperature", "atde")
    assert method.make(0).get_params() == calibrator.get_params()


def test_unknown_parameter_is_named_with_the_known_ones():
    with pytest.raises(errors.UnknownNameError, match=r"^parameter of temperature 'speed' is unknown; .*combine"):
        resolve_method("temperature", {"speed": 3}).make(0)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (5, "method is 5; give the name of a method, such as 'temperature'."),
        (None, "method is None; give the name of a method, such as 'temperature'."),
        ("members", "'members' stands for every single source; name one method, such as 'ptde'."),
    ],
)
def test_name_that_is_not_one_method_is_rejected(name, sentence):
    with pytest.raises(errors.ParameterError) as caught:
        resolve_method(name)
    assert str(caught.value) == sentence


def test_combiner_cannot_be_calibrated_with_a_combiner():
    with pytest.raises(errors.UnknownNameError, match="method 'mean' is unknown"):
        resolve_method("log-pool+mean")
    with pytest.raises(errors.UnknownNameError, match="combine for temperature '' is unknown"):
        resolve_method("+temperature")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("mean", 'methods is \'mean\'; give a list of names, such as ["mean", "temperature"].'),
        (3, 'methods is 3; give a list of names, such as ["mean", "temperature"].'),
        ([], 'methods is empty; name at least one, such as ["mean"].'),
        (["mean", 7], "method is 7; give the name of a method, such as 'temperature'."),
    ],
)
def test_methods_that_are_not_a_list_of_names_are_rejected(names, sentence):
    with pytest.raises(errors.ParameterError) as caught:
        resolve_methods(names)
    assert str(caught.value) == sentence


def test_methods_keep_their_order_and_each_is_there_once():
    methods = resolve_methods(["spline", "members", "de", "TS", " members ", "temperature", "mean"])
    assert [None if method is None else method.name for method in methods] == ["spline", None, "mean", "temperature"]
