"""One process of `serve`: `python -m penchant.study.process web|work FOLDER`.

It imports no more than it needs: after a crash people wait for it. The supervisor has brought
the tables up to date before.
"""

import os
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from penchant.study.folder import Folder

if TYPE_CHECKING:
    import uvicorn

SWITCH_SECONDS = 0.0005
"""A request waits for every thread that is at work as long as Python lets each run: ten times as
long unless told otherwise."""
NICE = 5
"""People wait for web processes, nobody for the model: it gives way where cores are short."""


@click.group()
def main() -> None:
    """The processes of a study."""


@main.command()
@click.argument("folder")
@click.option("--fd", required=True, type=int)
@click.option("--parent", required=True, type=int)
@click.option("--proxies", default="")
def web(folder: str, fd: int, parent: int, proxies: str) -> None:
    """Serve on a socket that was handed over."""
    import uvicorn

    from penchant.study.web.app import create_app

    die_with(parent)
    sys.setswitchinterval(SWITCH_SECONDS)
    config = server_config(create_app(Folder(folder), migrate=False), proxies)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=fd)])


def server_config(app: Any, proxies: str) -> "uvicorn.Config":
    """How an application is served; proxies: whose word on where requests come from is taken."""
    import uvicorn

    return uvicorn.Config(
        app,
        access_log=False,  # addresses carry tokens and panels' ids
        log_level="warning",
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        timeout_graceful_shutdown=2,
    )


@main.command()
@click.argument("folder")
@click.option("--parent", type=int)
def work(folder: str, parent: int | None) -> None:
    """Keep the model up."""
    from penchant.study.worker import work as run

    if parent is not None:
        die_with(parent)
    if hasattr(os, "nice"):
        os.nice(NICE)
    database = Folder(folder).open(durable=False, migrate=parent is None)
    try:
        run(database)
    finally:
        database.close()


def die_with(parent: int) -> None:
    """End this process when its supervisor is gone, so that nothing holds the port."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="watch parent", daemon=True).start()


if __name__ == "__main__":
    main()
