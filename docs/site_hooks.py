"""Name files of the repository that are no pages of the site, in place of links that would lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Return the page with links out of `docs/` as text; MkDocs calls it for each page."""
    folder, docs = Path(page.file.abs_src_path).parent, Path(config["docs_dir"])

    def written(link: re.Match[str]) -> str:
        image, words, target, _ = link.groups()
        path = (folder / target).resolve()
        if image or "://" in target or (path.is_file() and path.is_relative_to(docs)):
            return link[0]
        inside = path.relative_to(docs.parent) if path.is_relative_to(docs.parent) else Path(target)
        return words if str(inside) in words else f"{words} (`{inside}`)"

    return LINK.sub(written, markdown)
