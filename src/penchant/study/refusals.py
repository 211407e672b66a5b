"""Why a request cannot be met: a code for programs, a sentence for people."""

from penchant.errors import DataError

STATUS = {
    "unknown": 404,
    "token": 403,
    "forbidden": 403,
    "closed": 409,
    "paused": 409,
    "conflict": 409,
    "too_large": 413,
    "bad": 422,
    "busy": 429,
}
"""Every code, and the HTTP status that goes with it."""


class Refusal(DataError):
    """A request that the state of the study does not allow.

    >>> Refusal("closed", "the study is closed").code
    'closed'
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
