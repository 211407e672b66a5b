"""Pages that live beside `docs/`: copied into the site, links bent to where things then are."""

import re
from os.path import relpath
from pathlib import Path

from _site.papers import by_name

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
FOLDER = "project"
"""Where copies go inside docs/: never edited, never committed."""
PAGES = (
    "BENCHMARKS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "results/*.md",
)
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?\)")
_PICTURE = re.compile(r"(!\[[^\]]*\]\()([^)\s]+\.svg)\)")


def copy_root_files(docs: Path = DOCS) -> list[Path]:
    """Write the root's pages into docs/project; files that would stay the same are not touched."""
    written = []
    for pattern in (*PAGES, "results/*.png"):
        for source in sorted(ROOT.glob(pattern)):
            target = docs / FOLDER / source.relative_to(ROOT)
            written.append(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".md":
                text = links_bent(by_name(source.read_text(encoding="utf-8")), source, target)
                write_if_new(target, text.encode())
            else:
                write_if_new(target, source.read_bytes())
    return written


def write_if_new(path: Path, content: bytes) -> None:
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def links_bent(text: str, source: Path, target: Path) -> str:
    """The page's relative links, as they must read where it is shown.

    source : the file on disk, which its links start from; target : the page in the site.
    """

    def bend(found: re.Match[str]) -> str:
        start, link, anchor = found.group(1), found.group(2), found.group(3) or ""
        if "://" in link or link.startswith("mailto:"):
            return found.group(0)
        place = _in_site((source.parent / link).resolve())
        return f"{start}{relpath(place, target.parent)}{anchor})"

    return _LINK.sub(bend, text)


def in_both_lights(text: str, folder: Path) -> str:
    """Pictures that are there for dark pages, too, are shown in either light."""

    def both(found: re.Match[str]) -> str:
        dark = found.group(2).removesuffix(".svg") + "_dark.svg"
        if not (folder / dark).is_file():
            return found.group(0)
        return f"{found.group(0)}{{.only-light}}\n{found.group(1)}{dark}){{.only-dark}}"

    return _PICTURE.sub(both, text)


def _in_site(path: Path) -> Path:
    """Where a file of the repository is in the site; itself where the site does not show it."""
    inside = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    if inside.as_posix() == "README.md":
        return DOCS / "index.md"
    if inside.parts[0] == "examples" and inside.name.startswith("plot_"):
        return DOCS / "gallery" / f"{inside.stem}.rst"
    if any(inside.match(pattern) for pattern in (*PAGES, "results/*.png")):
        return DOCS / FOLDER / inside
    return path
