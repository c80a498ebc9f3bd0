"""A preprocessor of mdBook: links to files that are not pages go to the forge (`UNCORK_FORGE`), or become plain text.

Links to the playground's source go to the playground, which `site/build.sh` puts next to the pages.
"""

import json
import os
import re
import sys
from pathlib import Path

from pages import DOCS, FENCED, ROOT

PLAYGROUND = ROOT / "web/index.html"

LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")


def adapt_link(link: re.Match, page: Path, forge: str) -> str:
    target, _, anchor = link["target"].partition("#")
    if not target or "://" in target or target.startswith("mailto:"):
        return link[0]
    path = (page.parent / target).resolve()
    if not path.exists():
        sys.exit(f"{page.relative_to(ROOT)}: link to a file that does not exist: {target}")
    if path.is_relative_to(DOCS) and path.suffix == ".md":
        return link[0]
    if path == PLAYGROUND:
        up = "../" * len(page.parent.relative_to(DOCS).parts)
        return f"[{link['text']}]({up}playground/index.html{'#' if anchor else ''}{anchor})"
    if not forge:
        return link["text"]
    anchor = f"#{anchor}" if anchor else ""
    return f"[{link['text']}]({forge}/{path.relative_to(ROOT).as_posix()}{anchor})"


def adapt_page(text: str, page: Path, forge: str) -> str:
    """Changes the links of a page outside of its fenced blocks."""
    parts, at = [], 0
    for block in FENCED.finditer(text):
        parts += [LINK.sub(lambda it: adapt_link(it, page, forge), text[at : block.start()]), block[0]]
        at = block.end()
    return "".join(parts) + LINK.sub(lambda it: adapt_link(it, page, forge), text[at:])


def adapt_items(items: list, forge: str) -> None:
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter and chapter["path"]:
            chapter["content"] = adapt_page(chapter["content"], DOCS / chapter["path"], forge)
        if chapter:
            adapt_items(chapter["sub_items"], forge)


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0 if sys.argv[2] == "html" else 1)
    _context, book = json.load(sys.stdin)
    adapt_items(book.get("items", book.get("sections")), os.environ.get("UNCORK_FORGE", "").rstrip("/"))
    json.dump(book, sys.stdout)


main()
