"""What pictures say beside their pixels is removed: camera, place, names, previews, comments.

Walks over the parts that a file consists of and keeps those that show the picture. Pixels are not
touched. A file that cannot be walked is refused: what it hides cannot be known. Of EXIF only the
orientation stays, where it is not upright, since browsers turn pictures by it.
"""

import re
import struct
import zlib
from collections.abc import Callable

UPRIGHT = 1
ORIENTATION = 0x0112


def without_metadata(content: bytes, ending: str) -> bytes:
    """The picture without metadata; other files as they are. ValueError: it is broken.

    >>> without_metadata(b"GIF89a" + bytes(7) + b"!\\xfe\\x03Ann\\x00;", ".gif")
    b'GIF89a\\x00\\x00\\x00\\x00\\x00\\x00\\x00;'
    """
    walk = WALKS.get(ending)
    try:
        return content if walk is None else walk(content)
    except (struct.error, IndexError) as error:
        raise ValueError("it ends too early") from error


def orientation_of(exif: bytes) -> int:
    """The orientation in EXIF data, 1 to 8; upright if there is none that can be read."""
    exif = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None:
        return UPRIGHT
    try:
        (start,) = struct.unpack_from(f"{order}I", exif, 4)
        (n,) = struct.unpack_from(f"{order}H", exif, start)
        for at in range(start + 2, start + 2 + 12 * n, 12):
            tag, kind, count, value = struct.unpack_from(f"{order}HHIH", exif, at)
            if (tag, kind, count) == (ORIENTATION, 3, 1) and 1 <= value <= 8:
                return int(value)
    except struct.error:
        pass
    return UPRIGHT


def _exif(orientation: int) -> bytes:
    """EXIF data of nothing but an orientation."""
    return b"MM\0*\0\0\0\x08\0\1" + struct.pack(">HHIHHI", ORIENTATION, 3, 1, orientation, 0, 0)


NEXT_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
"""What ends the coded part of a JPEG: no stuffed byte, no restart."""


def _jpeg(content: bytes) -> bytes:
    kept, at = [content[:2]], 2
    while at < len(content):
        if content[at] != 0xFF:
            raise ValueError("a segment does not begin where one should")
        code = content[at + 1]
        if code == 0xFF:  # a fill byte
            at += 1
            continue
        if code == 0xD9:
            return b"".join([*kept, b"\xff\xd9"])  # what follows is not the picture
        (size,) = struct.unpack_from(">H", content, at + 2)
        end = at + 2 + size
        if size < 2 or end > len(content):
            raise ValueError("a segment is cut off")
        kept.append(_segment(code, content[at + 4 : end]))
        if code == 0xDA:  # the coded part follows
            found = NEXT_MARKER.search(content, end)
            at = end
            end = found.start() if found else len(content)
            kept.append(content[at:end])
        at = end
    return b"".join(kept)  # without an end, as cameras write when they are switched off


def _segment(code: int, body: bytes) -> bytes:
    """A segment as it is kept; empty where it says nothing about pixels."""
    if code == 0xE0 and body[:5] == b"JFIF\0":
        body = body[:12] + b"\0\0"  # without a preview
    elif code == 0xE1 and body[:6] == b"Exif\0\0" and orientation_of(body) != UPRIGHT:
        body = b"Exif\0\0" + _exif(orientation_of(body))
    elif code == 0xFE or (0xE0 <= code <= 0xEF and not _is_colour(code, body)):
        return b""
    return bytes((0xFF, code)) + struct.pack(">H", len(body) + 2) + body


def _is_colour(code: int, body: bytes) -> bool:
    """Whether a segment tells how colours are meant: an ICC profile, or Adobe's transform."""
    return (code, body[:12]) == (0xE2, b"ICC_PROFILE\0") or (code, body[:5]) == (0xEE, b"Adobe")


SHOWN_PNG = {
    *(b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"cICP"),
    *(b"sBIT", b"bKGD", b"pHYs", b"mDCV", b"cLLI", b"acTL", b"fcTL", b"fdAT"),
}


def _png(content: bytes) -> bytes:
    kept, at = [content[:8]], 8
    while at < len(content):
        (size,) = struct.unpack_from(">I", content, at)
        kind, end = content[at + 4 : at + 8], at + 12 + size
        if end > len(content):
            raise ValueError("a chunk is cut off")
        if kind in SHOWN_PNG:
            kept.append(content[at:end])
        elif kind == b"eXIf" and (turned := orientation_of(content[at + 8 : end - 4])) != UPRIGHT:
            body = kind + _exif(turned)
            kept.append(
                struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
            )
        elif not kind.isalpha() or kind[:1].isupper():
            raise ValueError("it holds a chunk that no reader knows")
        if kind == b"IEND":
            return b"".join(kept)
        at = end
    raise ValueError("it has no end")


SHOWN_WEBP = {b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"}
EXIF_FLAG, XMP_FLAG = 0x08, 0x04


def _webp(content: bytes) -> bytes:
    (size,) = struct.unpack_from("<I", content, 4)
    if size + 8 > len(content):
        raise ValueError("it is cut off")
    chunks, turned, at = [], UPRIGHT, 12
    while at + 8 <= size + 8:
        kind, (length,) = content[at : at + 4], struct.unpack_from("<I", content, at + 4)
        body = content[at + 8 : at + 8 + length]
        if len(body) < length:
            raise ValueError("a chunk is cut off")
        if kind == b"EXIF":
            turned = orientation_of(body)
        elif kind in SHOWN_WEBP:
            chunks.append((kind, body))
        at += 8 + length + length % 2
    if turned != UPRIGHT:
        chunks.append((b"EXIF", _exif(turned)))
    written = b"".join(_webp_chunk(kind, body, turned != UPRIGHT) for kind, body in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(written)) + b"WEBP" + written


def _webp_chunk(kind: bytes, body: bytes, has_exif: bool) -> bytes:
    if kind == b"VP8X":
        flags = body[0] & ~(EXIF_FLAG | XMP_FLAG) | EXIF_FLAG * has_exif
        body = bytes((flags,)) + body[1:]
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


LOOPS = (b"NETSCAPE2.0", b"ANIMEXTS1.0")


def _gif(content: bytes) -> bytes:
    at = 13 + _table(content[10])
    kept = [content[:at]]
    while at < len(content):
        if content[at] == 0x3B:
            break
        if content[at] == 0x21:
            label, start = content[at + 1], at + 2
            is_kept = label == 0xF9 or (label == 0xFF and content[start + 1 : start + 12] in LOOPS)
        elif content[at] == 0x2C:
            is_kept, start = True, at + 11 + _table(content[at + 9])
        else:
            raise ValueError("a block does not begin where one should")
        end = start
        while content[end]:
            end += 1 + content[end]
        if is_kept:
            kept.append(content[at : end + 1])
        at = end + 1
    return b"".join([*kept, b";"])


def _table(flags: int) -> int:
    """Bytes of the colours that follow."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


WALKS: dict[str, Callable[[bytes], bytes]] = {
    ".jpg": _jpeg,
    ".png": _png,
    ".webp": _webp,
    ".gif": _gif,
}
