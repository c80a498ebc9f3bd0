"""Finds words that uncork does not use, in pages and sources, with the words to use: `site/words.tsv`.

    python3 site/words.py                    # prints each place; exits with 1 if there is one
    python3 site/words.py crates docs        # only what is below these folders

The pages of the command line are generated, so they hold the texts of `--help`. In sources, the parts of a name count as words.
The few right uses are in `site/words-allowed.tsv`: `text` in a line of `file`, which may be a pattern such as `crates/*`.
"""

import csv
import re
import sys
from fnmatch import fnmatch

from pages import CODE, ROOT, files

WORDS = ROOT / "site/words.tsv"
ALLOWED = ROOT / "site/words-allowed.tsv"
# What others wrote, what programs wrote, and the lists of the words themselves.
OTHERS = (
    "LICENSE",
    "crates/core/cc/LICENSE",
    "crates/core/units/LICENSE",
    "crates/core/cc/SPEC_COVERAGE.md",
    "crates/core/cc/spec/",
    "crates/core/page/vendor/",
    "docs/from-logs/",
    "docs/reference/glossary.md",
    "patches/",
    "site/words",
    "vendor/",
)
GENERATED = (".snap", ".svg", ".json", ".jsonl", ".lock")
# Fenced blocks of a language. Those of text, and without a label, have what programs print, and figures.
FENCED_CODE = re.compile(r"^```(?!text\b)\w.*?^```", re.MULTILINE | re.DOTALL)
# The parts of a page that are not prose.
NO_PROSE = (FENCED_CODE, CODE, re.compile(r"\]\([^()\s]*\)"))


def load_words() -> tuple[re.Pattern[str], dict[str, str]]:
    """One pattern with a group for each row, and what to say instead by group."""
    with WORDS.open() as lines:
        rows = {f"row{at}": row for at, row in enumerate(csv.DictReader(lines, delimiter="\t"))}
    groups = "|".join(f"(?P<{group}>{row['pattern']})" for group, row in rows.items())
    pattern = re.compile(rf"\b(?:{groups})(?-i:(?![a-z]))", re.IGNORECASE)
    return pattern, {group: row["say"] for group, row in rows.items()}


def load_allowed() -> list[tuple[str, str]]:
    with ALLOWED.open() as lines:
        return [(row["file"], row["text"]) for row in csv.DictReader(lines, delimiter="\t")]


def is_checked(name: str, folders: list[str]) -> bool:
    if name.startswith(OTHERS) or (name.endswith(GENERATED) and not name.startswith("docs/schemas/")):
        return False
    return not folders or any(name == folder or name.startswith(folder.rstrip("/") + "/") for folder in folders)


def blank(code: re.Match[str]) -> str:
    """Keeps the lines of code, so that places stay right."""
    return re.sub(r"[^\n]", " ", code[0])


def prose(name: str, text: str) -> str:
    """The text as it is searched, of the same length: a page without its code, a source with names split into words."""
    if not name.endswith(".md"):
        return text.replace("_", " ")
    for pattern in NO_PROSE:
        text = pattern.sub(blank, text)
    return text


def problems(name: str, words: re.Pattern[str], say: dict[str, str], allowed: list[tuple[str, str]]) -> list[str]:
    try:
        text = (ROOT / name).read_text()
    except UnicodeDecodeError:
        return []
    excuses = [part for pattern, part in allowed if fnmatch(name, pattern)]
    return [
        f"{name}:{number}: {found[0]!r}: say {say[found.lastgroup or '']}"
        for number, (line, searched) in enumerate(zip(text.split("\n"), prose(name, text).split("\n"), strict=True), 1)
        for found in words.finditer(searched)
        if not any(part in line for part in excuses)
    ]


def main() -> None:
    (words, say), allowed = load_words(), load_allowed()
    names = [name for name in files() if is_checked(name, sys.argv[1:])]
    found = [it for name in names for it in problems(name, words, say, allowed)]
    for it in found:
        print(f"error: {it}", file=sys.stderr)
    sys.exit(1 if found else 0)


main()
