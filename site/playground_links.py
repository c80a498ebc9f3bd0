"""A preprocessor of mdBook: below a block with `$ uncork compare …`, a link runs the comparison in the playground.

The playground runs one path and writes no files: comparisons of several paths, and with output options, get no link.
"""

import json
import shlex
import sys
from html import escape
from pathlib import Path
from urllib.parse import quote

from pages import DOCS, FENCED

PROMPT = "$ uncork compare"
OPTIONS = (
    *("preset", "rate", "rtt", "loss", "loss-position", "buffer", "queue", "jitter", "host-jitter"),
    *("size", "duration", "flows", "start", "cc", "seeds", "seed"),
)
# The playground's own default has two controllers.
USUAL = {"cc": "cubic,bbr1,bbr3"}


def address(line: str) -> str | None:
    """The part of the playground's address after `#`; `None` for a command that it does not run."""
    words = shlex.split(line.removeprefix(PROMPT))
    names, values = words[::2], words[1::2]
    if len(names) != len(values) or any(name.removeprefix("--") not in OPTIONS for name in names):
        return None
    options = {name.removeprefix("--"): value for name, value in zip(names, values, strict=True)}
    if any("," in options.get(name, "") for name in ("rate", "rtt", "buffer")) or is_list(options.get("loss", "")):
        return None
    return "&".join(f"{name}={quote(value, safe=',:+=')}" for name, value in {**USUAL, **options}.items())


def is_list(loss: str) -> bool:
    """Whether a loss is several ones: the parameters of one have commas, too."""
    return any("=" not in part for part in loss.split(",")[1:])


def links(block: str, page: Path) -> str:
    up = "../" * len(page.parent.relative_to(DOCS).parts)
    commands = [line for line in block.splitlines() if line.startswith(PROMPT)]
    found = [(line.removeprefix("$ "), it) for line in commands if (it := address(line)) is not None]
    one = "Run it in the playground"
    texts = [one if len(found) == 1 else f"Run <code>{escape(command)}</code> in the playground" for command, _ in found]
    return "".join(
        f'\n<p class="run-in-playground"><a href="{up}playground/index.html#{escape(hash_)}">{text}</a></p>\n'
        for text, (_, hash_) in zip(texts, found, strict=True)
    )


def with_links(content: str, page: Path) -> str:
    return FENCED.sub(lambda block: block[0] + links(block[0], page), content)


def adapt_items(items: list) -> None:
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter and chapter["path"]:
            chapter["content"] = with_links(chapter["content"], DOCS / chapter["path"])
        if chapter:
            adapt_items(chapter["sub_items"])


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0 if sys.argv[2] == "html" else 1)
    _context, book = json.load(sys.stdin)
    adapt_items(book.get("items", book.get("sections")))
    json.dump(book, sys.stdout)


main()
