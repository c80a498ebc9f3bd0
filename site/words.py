"""Finds words that the documentation does not use, with the words to use: `site/words.tsv`.

    python3 site/words.py              # prints each place; exits with 1 if there is one
    python3 site/words.py --all        # the pages that are not rewritten yet, too

The pages of the command line are generated, so they hold the texts of `--help`.
"""

import csv
import re
import sys

from pages import CODE, FENCED, ROOT

WORDS = ROOT / "site/words.tsv"
# Pages that are still written in other words.
NOT_YET = (
    "docs/evidence/",
    "docs/reference/",
    "docs/example/",
    "ARCHITECTURE.md",
    "crates/",
    "python/",
    "patches/",
    "conformance/",
)
REWRITTEN = (
    "docs/reference/cli.md",
    "docs/reference/cli-python.md",
    "docs/reference/glossary.md",
    "docs/reference/exit-statuses.md",
)
# The parts of a page that are not prose.
NO_PROSE = (FENCED, CODE, re.compile(r"\]\([^()\s]*\)"))


def load_words() -> list[tuple[re.Pattern, str]]:
    with WORDS.open() as lines:
        return [
            (re.compile(rf"\b(?:{row['pattern']})\b", re.IGNORECASE), row["say"])
            for row in csv.DictReader(lines, delimiter="\t")
        ]


def is_checked(name: str) -> bool:
    return name in REWRITTEN or not name.startswith(NOT_YET)


def blank(code: re.Match) -> str:
    """Keeps the lines of code, so that places stay right."""
    return re.sub(r"[^\n]", " ", code[0])


def problems(name: str, words: list[tuple[re.Pattern, str]]) -> list[str]:
    text = (ROOT / name).read_text()
    for pattern in NO_PROSE:
        text = pattern.sub(blank, text)
    return [
        f"{name}:{number}: {found[0]!r}: say {say}"
        for number, line in enumerate(text.splitlines(), 1)
        for pattern, say in words
        for found in pattern.finditer(line)
    ]


def main() -> None:
    words = load_words()
    pages = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    found = [it for name in pages if "--all" in sys.argv or is_checked(name) for it in problems(name, words)]
    for it in found:
        print(f"error: {it}", file=sys.stderr)
    sys.exit(1 if found else 0)


main()
