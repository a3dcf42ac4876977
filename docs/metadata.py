"""Writes what a package index shows of the project: its addresses, and a README whose links lead somewhere from there.

A hook of the build (``[tool.hatch.metadata.hooks.custom]``). Where the project lives is said by whoever builds a release
(``PROJECT_URL``, in GitHub's workflow the address of the repository), so that a fork's package leads to the fork. A build without
it names no address and leaves the links as they are.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# A link of Markdown to a place in this checkout: not to another site, and not within the page.
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


class ProjectMetadata(MetadataHookInterface):
    """Fills ``readme`` and ``urls``, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Write both fields into the metadata."""
        home = os.environ.get("PROJECT_URL", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_absolute_links(text, home)}
        metadata["urls"] = addresses(home)


def with_absolute_links(text: str, home: str) -> str:
    """Markdown whose links into the checkout lead to the repository at ``home``; as it is where that is empty."""
    return _LINK.sub(lambda link: f"]({home}/blob/main/{link[1]})", text) if home else text


def addresses(home: str) -> dict[str, str]:
    """The places of a repository by the names that the index shows."""
    if not home:
        return {}
    return {
        "Homepage": home,
        "Documentation": f"{home}/blob/main/docs/index.md",
        "Source": home,
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
    }
