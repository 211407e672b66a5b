"""Every public name has a page and an example that runs; every option a row."""

import doctest
import inspect

import click
import pytest

api = pytest.importorskip("_site.api")
cli = pytest.importorskip("_site.cli")
NAMES = {
    f"{module}.{name}": thing
    for module, names in api.public_names().items()
    for name, thing in names.items()
}
VALUES = {
    "penchant.__version__",
    "penchant.ask.CRITERIA",
    "penchant.ask.LOSS",
    "penchant.ask.TIE",
    "penchant.ask.WIN",
    "penchant.io.SHAPES",
    "penchant.online.FeatureMap",
    "penchant.online.User",
}
"""Numbers, tables and aliases: they have no docstring."""
NEED_DATA = ("penchant.datasets.load_", "penchant.datasets.data_folder")
"""They need data sets, which are not shipped; tests/datasets runs them where they are."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api")
    return {path.name: path.read_text(encoding="utf-8") for path in api.write_api(folder)}


def test_values_are_known_by_name():
    assert {name for name, thing in NAMES.items() if api.is_data(thing)} == VALUES


@pytest.mark.parametrize("name", sorted(set(NAMES) - VALUES))
def test_every_name_has_an_example_that_runs(name):
    thing = NAMES[name]
    own = list(vars(thing).values()) if inspect.isclass(thing) else []
    functions = [getattr(value, "__func__", value) for value in own]
    functions = [each for each in functions if callable(each) or isinstance(each, property)]
    parsed = [
        doctest.DocTestParser().get_examples(doc)
        for doc in (thing.__doc__, *(getattr(f, "__doc__", None) for f in functions))
        if isinstance(doc, str)
    ]
    runs = [e for part in parsed for e in part if doctest.SKIP not in e.options]
    assert runs or name.startswith(NEED_DATA)


def test_every_name_has_a_page_which_its_module_lists(pages):
    for name, thing in NAMES.items():
        module, _, short = name.rpartition(".")
        page = api.page_name(module, short, thing)
        assert f"{page}.rst" in pages
        assert f"<{page}>" in pages[f"{module}.rst"]
        assert f"   {module}\n" in pages["index.rst"]


def test_pages_differ_also_where_letters_case_does_not_count(pages):
    assert len({name.casefold() for name in pages}) == len(pages)


def test_every_option_of_every_command_is_on_the_page(tmp_path):
    text = cli.write_cli(tmp_path / "cli.md").read_text(encoding="utf-8")
    sections = dict(zip(*[iter(_sections(text))] * 2, strict=True))
    n_options = 0
    for words, command in cli.commands():
        section = sections[" ".join(words)]
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert all(f"`{flag}`" in section for flag in parameter.opts), (words, parameter)
                n_options += 1
    assert n_options > 100


def _sections(text):
    for part in text.split("\n#")[1:]:
        title, _, body = part.partition("\n")
        yield title.lstrip("# ")
        yield body


@pytest.mark.parametrize("name", ["papers", "docstrings"])
def test_the_generators_examples_hold(name):
    module = __import__(f"_site.{name}", fromlist=["_"])
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
