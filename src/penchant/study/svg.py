"""SVG files as images: checked before they are stored, so that nothing in them can run or load.

A browser runs no script of a picture in `<img>`, and the policy with which media are served
forbids scripts when somebody opens the file itself. The check is a third wall, and the only one
that tells the owner.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from penchant.study.refusals import Refusal

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
XML = "http://www.w3.org/XML/1998/namespace"
ELEMENTS = {
    *("a", "animate", "animateMotion", "animateTransform", "circle", "clipPath", "defs", "desc"),
    *("ellipse", "feBlend", "feColorMatrix", "feComponentTransfer", "feComposite"),
    *("feConvolveMatrix", "feDiffuseLighting", "feDisplacementMap", "feDistantLight"),
    *("feDropShadow", "feFlood", "feFuncA", "feFuncB", "feFuncG", "feFuncR", "feGaussianBlur"),
    *("feImage", "feMerge", "feMergeNode", "feMorphology", "feOffset", "fePointLight"),
    *("feSpecularLighting", "feSpotLight", "feTile", "feTurbulence", "filter", "g", "image"),
    *("line", "linearGradient", "marker", "mask", "mpath", "path", "pattern"),
    *("polygon", "polyline", "radialGradient", "rect", "set", "stop", "style", "svg", "switch"),
    *("symbol", "text", "textPath", "title", "tspan", "use", "view"),
}
"""Elements of SVG that may stay: neither `script` nor `foreignObject`, which holds HTML."""
PICTURE = re.compile(r"\s*data:image/(png|jpeg|gif|webp);", re.I)
INSIDE = r"#|data:(image/(png|jpeg|gif|webp)|font/|application/(x-)?font)"
LOADS = re.compile(rf"@import|\\|(image-set|src)\(|url\(\s*(?!\s*['\"]?\s*({INSIDE}))", re.I)
"""Styles that load from elsewhere. A backslash may spell any of it."""
LENGTH = re.compile(r"\s*(\d+(\.\d+)?)(px|pt|mm|cm|in)?\s*")
DEEPEST = 200
"""Nested elements; a picture has a dozen."""

for prefix, space in (("", SVG), ("xlink", XLINK)):
    ET.register_namespace(prefix, space)


def checked_svg(content: bytes, what: str) -> bytes:
    """The file without what belongs to drawing programs; refused if anything can run or load.

    what: the file's name in messages.

    >>> b = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 1"><path d="M0 0h2"/></svg>'
    >>> checked_svg(b, "line.svg").decode()
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 1" width="2" height="1"><path d="M0
    0h2" /></svg>'
    """

    def refuse(why: str) -> Refusal:
        return Refusal(
            "bad",
            f"{what} {why}: save it as plain SVG (Inkscape: Save as, Plain SVG), or as PNG",
        )

    try:
        text = content.decode("utf-8-sig")
        if "<!ENTITY" in text:
            raise refuse("declares entities, which can grow without end")
        root = ET.fromstring(text)
    except (UnicodeDecodeError, ET.ParseError, ValueError) as error:
        raise refuse(f"is no SVG in UTF-8 that can be read ({error})") from error
    if root.tag != f"{{{SVG}}}svg":
        raise refuse("holds no <svg> element of SVG's namespace")
    for fault in _clean(root, 0):
        raise refuse(f"holds {fault}, which can run or load something")
    _give_size(root)
    return ET.tostring(root, encoding="utf-8")


def _clean(element: ET.Element, depth: int) -> Iterator[str]:
    """Remove what is not of SVG's namespace; yield what makes the file unfit."""
    name = element.tag.rpartition("}")[2]
    if name not in ELEMENTS:
        yield f"<{name}>"
    if depth > DEEPEST:
        yield f"more than {DEEPEST} elements inside each other"
        return
    for attribute, value in list(element.attrib.items()):
        space, _, plain = attribute.rpartition("}")
        if space not in ("", f"{{{XLINK}", f"{{{XML}"):
            del element.attrib[attribute]
        elif plain == "href" and name == "a":
            del element.attrib[attribute]  # a picture is no link
        elif _is_unfit(plain, value):
            yield f"{plain}={value[:60]!r}"
    if name == "style" and LOADS.search("".join(element.itertext())):
        yield "a <style> with an address"
    for child in list(element):
        if child.tag.startswith(f"{{{SVG}}}") and child.tag != f"{{{SVG}}}metadata":
            yield from _clean(child, depth + 1)
        else:
            _remove(element, child)


def _is_unfit(attribute: str, value: str) -> bool:
    if attribute == "href":
        return not (value.strip().startswith("#") or PICTURE.match(value))
    is_active = attribute == "base" or attribute.lower().startswith("on")
    animates_address = attribute == "attributeName" and "href" in value.lower()
    return is_active or animates_address or LOADS.search(value) is not None


def _remove(parent: ET.Element, child: ET.Element) -> None:
    """Remove an element, but keep the text after it."""
    before = parent[: list(parent).index(child)]
    if child.tail and before:
        before[-1].tail = (before[-1].tail or "") + child.tail
    elif child.tail:
        parent.text = (parent.text or "") + child.tail
    parent.remove(child)


def _give_size(root: ET.Element) -> None:
    """A picture without a size of its own gets that of its viewBox; browsers guess otherwise."""
    box = root.get("viewBox", "").replace(",", " ").split()
    sized = all(LENGTH.fullmatch(root.get(side, "")) for side in ("width", "height"))
    if len(box) == 4 and not sized:
        root.set("width", box[2])
        root.set("height", box[3])
