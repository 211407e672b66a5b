"""The papers by name: code and tables cite them by a number, readers get authors."""

import re

NAMES = {
    "000": "Kersting & Xu",
    "001": "KPCRank",
    "002": "Shivaswamy & Joachims",
    "003": "Abbasnejad, Bonilla & Sanner",
    "004": "Abbasnejad, Sanner, Bonilla & Poupart",
}
_NUMBER = re.compile(r"\b(?:of )?papers? (00[0-4])\b|(?<![,.\d])\b(00[0-4]) (?=Eqs?\.|§|section)")


def by_name(text: str) -> str:
    """The text with papers' numbers replaced by their authors.

    >>> by_name("close pairs (paper 000, section 5); see 004 Eq. 17")
    'close pairs (Kersting & Xu, section 5); see Abbasnejad, Sanner, Bonilla & Poupart Eq. 17'
    """
    return _NUMBER.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    number = found.group(1) or found.group(2)
    of = "of " if found.group(0).startswith("of ") else ""
    return of + NAMES[number] + (" " if found.group(2) else "")
