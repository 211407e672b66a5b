"""Addresses of the package: those of the repository that a release is built in.

A workflow names it; what is built elsewhere, or in a fork that says nothing, has none that could be
somebody else's.
"""

import os

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Addresses(MetadataHookInterface):
    """The hook that `pyproject.toml` names."""

    def update(self, metadata):
        repository = os.environ.get("GITHUB_REPOSITORY", "")
        owner, _, name = repository.partition("/")
        home = f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
        metadata["urls"] = {
            "Source": home,
            "Issues": f"{home}/issues",
            "Changelog": f"{home}/blob/main/CHANGELOG.md",
            "Documentation": f"https://{owner}.github.io/{name}/",
        }
        if not repository:
            metadata["urls"] = {}
