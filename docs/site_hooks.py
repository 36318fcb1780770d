"""Hooks of MkDocs: the README becomes the first page; files outside docs/ become links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

OUTSIDE = re.compile(r"\]\(\.\./([^)]+)\)")
"""The link of a page to a file of the repository that is not in docs/."""
IN_DOCS = re.compile(r"\]\(docs/")
IN_REPOSITORY = re.compile(r"\]\((?!https?:|#|docs/)([^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the README as the first page."""
    readme = (Path(config.config_file_path).parent / "README.md").read_text(encoding="utf-8")
    linked = IN_REPOSITORY.sub(rf"]({config.repo_url}/blob/main/\1)", readme)
    files.append(File.generated(config, "index.md", content=IN_DOCS.sub("](", linked)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links that leave docs/ point to the repository."""
    return OUTSIDE.sub(rf"]({config.repo_url}/blob/main/\1)", markdown)
