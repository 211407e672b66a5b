"""The API reference: a page a public name, walked from `penchant.__all__`."""

import inspect
from pathlib import Path
from typing import Any

import penchant
from _site.root_files import DOCS, write_if_new

FOLDER = DOCS / "api"


def public_names() -> dict[str, dict[str, Any]]:
    """Module → its public names and what they are; what is at the top is not listed twice."""
    top = {name: getattr(penchant, name) for name in penchant.__all__}
    modules = {name: thing for name, thing in top.items() if inspect.ismodule(thing)}
    found = {"penchant": {name: top[name] for name in top if name not in modules}}
    at_top = {id(thing) for thing in found["penchant"].values()}
    for module in modules.values():
        names = {name: getattr(module, name) for name in module.__all__}
        found[module.__name__] = {n: thing for n, thing in names.items() if id(thing) not in at_top}
    return {module: names for module, names in found.items() if names}


def is_data(thing: Any) -> bool:
    """Whether it is a value or an alias, which has neither a docstring nor a call."""
    return not (inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing))


def page_name(module: str, name: str, thing: Any) -> str:
    """The page's file name, apart from others also where letters' case does not count."""
    return f"{module}.{name}" + (".class" if inspect.isclass(thing) else "")


def write_api(folder: Path = FOLDER) -> list[Path]:
    """Write a page a name, one a module, and the list of modules; returns them."""
    found = public_names()
    pages = {
        f"{page_name(module, name, thing)}.rst": _page(module, name, thing)
        for module, names in found.items()
        for name, thing in names.items()
    }
    pages |= {f"{module}.rst": _module_page(module, names) for module, names in found.items()}
    pages["index.rst"] = _index(list(found))
    for old in folder.glob("*.rst"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        write_if_new(folder / name, text.encode())
    return [folder / name for name in pages]


def _page(module: str, name: str, thing: Any) -> str:
    title = f"{module}.{name}"
    lines = [title, "=" * len(title), "", f".. currentmodule:: {module}", ""]
    if inspect.isclass(thing):
        lines += [f".. autoclass:: {name}", "   :members:"]
        ours = [base for base in thing.__mro__[1:] if base.__module__.startswith("penchant")]
        others = {base.__name__ for base in thing.__mro__[1:]} - {base.__name__ for base in ours}
        if ours:
            lines.append(f"   :inherited-members: {', '.join(sorted(others))}")
    elif is_data(thing):
        lines += [f".. autodata:: {name}", "   :no-value:" if len(repr(thing)) > 60 else ""]
    else:
        lines.append(f".. autofunction:: {name}")
    return "\n".join([*lines, ""])


def _module_page(module: str, names: dict[str, Any]) -> str:
    doc = inspect.getdoc(__import__(module, fromlist=["_"])) or ""
    lines = [module, "=" * len(module), "", doc, "", ".. list-table::", "   :widths: 35 65", ""]
    for name, thing in names.items():
        link = f":doc:`{name} <{page_name(module, name, thing)}>`"
        lines += [f"   * - {link}", f"     - {_first_line(thing)}"]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    lines += [f"   {name} <{page_name(module, name, thing)}>" for name, thing in names.items()]
    return "\n".join([*lines, ""])


def _first_line(thing: Any) -> str:
    if is_data(thing):
        return "a value" if isinstance(thing, str | int | dict) else "a type for annotations"
    paragraph = (inspect.getdoc(thing) or "").split("\n\n")[0]
    return " ".join(paragraph.split())


def _index(modules: list[str]) -> str:
    title = "API reference"
    lines = [title, "=" * len(title), ""]
    lines += ["Every public name, with an example that the tests run. ``penchant`` is what most"]
    lines += ["people need; the modules hold the parts.", "", ".. toctree::", "   :maxdepth: 1", ""]
    return "\n".join([*lines, *[f"   {module}" for module in modules], ""])
