"""Studies: items in, people vote in a browser, the model asks, the owner watches.

`penchant study new`, `serve`, `simulate` … are its commands; `Client` speaks with a running
server. Needs the extra `penchant[study]`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penchant.study.client import Client as Client

__all__ = ["Client"]


def __getattr__(name: str) -> Any:
    if name == "Client":
        from penchant.study.client import Client

        return Client
    raise AttributeError(f"module 'penchant.study' has no attribute {name!r}")
