"""Docstrings are written for `help()`: what reStructuredText reads otherwise is put right here."""

import re

_PARAMETER = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)$")
_LEARNED = re.compile(r"(?<=[^`\w.])([A-Za-z]\w*)_(?![\w`])")
_STAR = re.compile(r"(?<=[/\w])\*(?=[.\w])|(?<=/)\*")
_BARS = re.compile(r"(?<!`)\|(\S[^|`]*)\|(?!`)")


def as_rst(lines: list[str]) -> list[str]:
    """The lines, with parameters as a list, and names such as `coef_` no links.

    >>> as_rst(["Learn.", "", "more : answers, or", "    pairs.", "user : who; coef_"])
    ['Learn.', '', '- **more** : answers, or', '  pairs.', '- **user** : who; coef\\\\_']
    """
    if any(line and set(line) == {"-"} for line in lines):  # sections, which numpydoc reads
        return [_plain(line) for line in _headed(lines)]
    shown: list[str] = []
    inside = False
    for line in lines:
        found = _PARAMETER.match(line)
        if found:
            if not inside and shown and shown[-1]:
                shown.append("")
            shown.append(f"- **{found[1].replace('*', chr(92) + '*')}** : {_plain(found[2])}")
        elif inside and line.strip():
            shown.append(f"  {_plain(line.strip())}")
        else:
            shown.append(line if line.startswith(">>>") else _plain(line))
        inside = bool(line.strip()) and (inside or bool(found))
    return shown


def _headed(lines: list[str]) -> list[str]:
    """Examples that follow the parameters without a heading get one."""
    first = next((k for k, line in enumerate(lines) if line.startswith(">>>")), len(lines))
    before = [line for line in lines[:first] if line.strip()]
    if first == len(lines) or "Examples" in before:
        return lines
    return [*lines[:first], "Examples", "--------", *lines[first:]]


def _plain(line: str) -> str:
    if line.lstrip().startswith((">>>", "...")):
        return line
    line = _STAR.sub(r"\\*", line) if "`" not in line else line
    return _BARS.sub(r"\|\1\|", _LEARNED.sub(r"\1\\_", line))
