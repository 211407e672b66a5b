"""Random names and secrets; the database keeps hashes of secrets only."""

import hashlib
import hmac
import secrets


def new_id() -> str:
    """A name that cannot be guessed and tells nothing: 96 random bits."""
    return secrets.token_urlsafe(12)


def new_token() -> str:
    """A secret for a link: 192 random bits."""
    return secrets.token_urlsafe(24)


def hash_token(token: str) -> str:
    """What the database keeps of a token: it is random, so that a plain hash hides it.

    >>> len(hash_token("secret"))
    64
    """
    return hashlib.sha256(token.encode()).hexdigest()


def hash_external_id(external_id: str, study: str, key: str) -> str:
    """What the database keeps of a panel's id: those can be guessed, so that a key is needed."""
    return hmac.new(key.encode(), f"{study}\n{external_id}".encode(), hashlib.sha256).hexdigest()
