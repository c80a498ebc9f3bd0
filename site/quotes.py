"""Finds messages in the tables `you see` of the pages for troubleshooting that no program prints.

`…` and figures stand for any value. The parts between them must be in a `tests/messages.txt` or in a source.
"""

import re

from pages import DOCS, ROOT, files

TABLE = re.compile(r"^\| you see \|.*\n\|[-| ]+\|\n((?:\|.*\n)+)", re.MULTILINE)
QUOTED = re.compile(r"``\s?(.+?)\s?``|`([^`]+)`")
# Values, and the joints of a message that two places of the program write.
JOINT = re.compile(r"…|\d+|; |: | \(|[/']")
# A literal of Rust that continues on the next line.
CONTINUED = re.compile(r"\\\n\s*")
# Parts too short to be found anywhere else than by chance.
MIN_LETTERS = 4
# Messages of the system and of libraries.
OTHERS = ROOT / "site/quotes-of-others.txt"
# Pages that a reader searches for the text on the screen. The tables of other guides have values as examples.
PAGES = ("howto/troubleshoot.md", "howto/read-a-verdict.md")


def sources() -> str:
    """All that the programs may print."""
    names = files("crates/*.rs", "*/messages.txt", "python/uncork/src/*.py")
    texts = (CONTINUED.sub("", (ROOT / name).read_text()) for name in names if not is_test(name))
    return "\n".join([*texts, OTHERS.read_text()])


def is_test(name: str) -> bool:
    return "/tests/" in name and not name.endswith("messages.txt")


def quotes(text: str) -> list[str]:
    """What the first column of the tables quotes."""
    rows = (row for table in TABLE.findall(text) for row in table.splitlines())
    cells = (row.strip("|").split(" | ")[0] for row in rows)
    return [double or single for cell in cells for double, single in QUOTED.findall(cell)]


def parts(quote: str) -> list[str]:
    found = (part.strip(" ,.") for part in JOINT.split(quote))
    return [part for part in found if sum(map(str.isalpha, part)) >= MIN_LETTERS]


def problems() -> list[str]:
    printed = sources()
    return [
        f"docs/{page}: no program prints {part!r} of the message {quote!r}"
        for page in PAGES
        for quote in quotes((DOCS / page).read_text())
        for part in parts(quote)
        if part not in printed
    ]
