"""Pages: templates, in the language of whoever reads them."""

from functools import cache
from typing import Any

import nh3
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt

from penchant.study.catalogue import strings
from penchant.study.config import FOLLOW_BROWSER, LANGUAGES

TAGS = {
    *("p", "br", "hr", "em", "strong", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "table", "thead", "tbody", "tr", "th", "td"),
}
"""What Markdown may become: no links and no images, which would lead or call elsewhere."""


def language_for(wanted: str | None, accepted: str | None, fixed: str = FOLLOW_BROWSER) -> str:
    """The language asked for, else the study's, else the first that a browser accepts.

    >>> language_for(None, "fr-FR, de-AT;q=0.8"), language_for(None, "de", "en")
    ('de', 'en')
    """
    asked = [wanted or "", fixed, *(part.split(";")[0] for part in (accepted or "").split(","))]
    short = [name.strip().lower().split("-")[0] for name in asked]
    return next((name for name in short if name in LANGUAGES), LANGUAGES[0])


@cache
def as_html(markdown: str) -> str:
    """Markdown as harmless HTML.

    >>> as_html("**bold** <script>alert(1)</script>")
    '<p><strong>bold</strong> &lt;script&gt;alert(1)&lt;/script&gt;</p>'
    """
    raw = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return nh3.clean(raw, tags=TAGS, attributes={}).strip()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("penchant.study.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = as_html
    return environment


def page(name: str, language: str, status: int = 200, **content: Any) -> HTMLResponse:
    """A page from its template."""
    template = _environment().get_template(f"{name}.html")
    text = strings(language)
    return HTMLResponse(template.render(t=text, language=language, **content), status)
