"""A simple proof against scripted joins; nothing is asked of other services.

The form for joining carries a signed ticket, which lasts an hour, makes one participant, and is not
taken before somebody can have read the page. A field that people do not see must stay empty. Where
many join from one address, the browser also has to compute for a moment; without JavaScript people
wait until fewer do. Whoever writes a script for this very page gets in, at the price of computing.
"""

import hashlib
from collections.abc import Mapping

from fastapi import Response
from itsdangerous import BadSignature

from penchant.study.config import Config
from penchant.study.store.tables import new_id
from penchant.study.web.site import Site, page

LEAST_SECONDS, MOST_SECONDS = 1.0, 3600.0
"""Nobody reads a page and starts in less."""
BITS = 17
"""Leading zeros of the hash that a browser has to find: 130,000 tries on average."""
TRAP = "website"


def ticket(site: Site, study: str, config: Config) -> str:
    """A new ticket, or nothing where joins are not guarded."""
    content = {"study": study, "at": site.now(), "id": new_id()}
    return site.signer("join").dumps(content) if config.guard_joins else ""


def admit(site: Site, study: str, form: Mapping[str, str], address: str) -> tuple[str, str]:
    """The new participant's id, or why the form is not taken yet, as the name of a string."""
    signed = form.get("ticket", "")
    try:
        content = site.signer("join").loads(signed)
    except BadSignature:
        return "", "join_again"
    is_timely = LEAST_SECONDS <= site.now() - content["at"] <= MOST_SECONDS
    if content["study"] != study or not is_timely or form.get(TRAP):
        return "", "join_again"
    if site.crowds.allows(address) or is_work(signed, form.get("work", "")):
        return content["id"], ""
    return "", "join_crowd"


def is_work(signed: str, work: str) -> bool:
    """Whether a number was searched for that makes a hash begin with zeros.

    The hash is that of the ticket's signature and the number.

    >>> is_work("ticket", "1")
    False
    """
    signature = signed.rpartition(".")[2]
    digest = hashlib.sha256(f"{signature}.{work[:20]}".encode()).digest()
    return int.from_bytes(digest, "big") >> (256 - BITS) == 0


def once_more(
    site: Site, study: str, config: Config, form: Mapping[str, str], words: str, why: str
) -> Response:
    """The same form with a new ticket: what was filled in is kept."""
    kept = {k: v for k, v in form.items() if k not in ("ticket", "work", TRAP)}
    bits = BITS if why == "join_crowd" else 0
    about = {"study": study, "heading": config.question, "text": why, "kept": kept, "bits": bits}
    reply = page("again", words, 429, **about, ticket=ticket(site, study, config))
    reply.headers["Retry-After"] = "60" if bits else "1"
    return reply
