"""Media files: kept under random names with a fixed type; no path of a client touches the disk."""

import re
from pathlib import Path

from penchant.study.refusals import Refusal
from penchant.study.tokens import new_id

LARGEST_FILE = 20_000_000
LARGEST_TEXT = 20_000

SIGNATURES: dict[str, tuple[str, str, re.Pattern[bytes]]] = {
    ".png": ("image", "image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ".jpg": ("image", "image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ".gif": ("image", "image/gif", re.compile(rb"GIF8[79]a")),
    ".webp": ("image", "image/webp", re.compile(rb"RIFF....WEBP", re.DOTALL)),
    ".mp3": ("audio", "audio/mpeg", re.compile(rb"ID3|\xff[\xe2-\xff]")),
    ".wav": ("audio", "audio/wav", re.compile(rb"RIFF....WAVE", re.DOTALL)),
    ".ogg": ("audio", "audio/ogg", re.compile(rb"OggS")),
    ".m4a": ("audio", "audio/mp4", re.compile(rb"....ftyp(M4A|mp42|isom)", re.DOTALL)),
    ".mp4": ("video", "video/mp4", re.compile(rb"....ftyp", re.DOTALL)),
    ".webm": ("video", "video/webm", re.compile(rb"\x1aE\xdf\xa3")),
}
"""What may be shown: the ending, the medium, the type that it is served as, how a file begins."""

ENDINGS = {"image": ".png", "audio": ".mp3", "video": ".mp4"}
NAME = re.compile(r"[A-Za-z0-9_-]{16}\.[a-z0-9]{3,4}")


def store(folder: Path, content: bytes, ending: str, medium: str, what: str) -> str:
    """Keep a file and return its new name; what: how messages call it."""
    ending = {".jpeg": ".jpg"}.get(ending.lower(), ending.lower())
    known = [e for e, (kind, _, _) in SIGNATURES.items() if kind == medium]
    if ending not in known:
        raise Refusal("bad", f"{what} ends in {ending!r}: as {medium} it must end in {known}")
    if len(content) > LARGEST_FILE:
        raise Refusal(
            "too_large",
            f"{what} has {len(content) / 1e6:.0f} MB: a file may have {LARGEST_FILE / 1e6:.0f}",
        )
    if not SIGNATURES[ending][2].match(content):
        raise Refusal("bad", f"{what} does not begin as a {ending} file does: is it broken?")
    name = new_id() + ending
    scratch = folder / f"{name}.part"
    scratch.write_bytes(content)
    scratch.replace(folder / name)
    return name


def find(folder: Path, name: str) -> tuple[Path, str]:
    """The file of that random name and its type; anything else does not exist."""
    path = folder / name
    if not NAME.fullmatch(name) or path.suffix not in SIGNATURES or not path.is_file():
        raise Refusal("unknown", "there is no such file")
    return path, SIGNATURES[path.suffix][1]
