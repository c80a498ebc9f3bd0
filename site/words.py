"""Finds words that uncork does not use, in pages and sources, with the words to use: `site/words.tsv`.

    python3 site/words.py                    # prints each place; exits with 1 if there is one
    python3 site/words.py crates docs        # only what is below these folders

The pages of the command line are generated, so they hold the texts of `--help`. In sources, the parts of a name count as words.
The few right uses are in `site/words-allowed.tsv`: `text` in a line of `file`, which may be a pattern such as `crates/*`.
"""

import csv
import re
import subprocess
import sys
from fnmatch import fnmatch

from pages import CODE, FENCED, ROOT

WORDS = ROOT / "site/words.tsv"
ALLOWED = ROOT / "site/words-allowed.tsv"
# What others wrote, what programs wrote, and the lists of the words themselves.
OTHERS = (
    "LICENSE",
    "crates/core/cc/SPEC_COVERAGE.md",
    "crates/core/cc/spec/",
    "crates/core/page/vendor/",
    "docs/example/",
    "docs/from-logs/",
    "docs/reference/glossary.md",
    "patches/",
    "site/words",
    "vendor/",
)
GENERATED = (".snap", ".svg", ".json", ".jsonl", ".lock")
# The parts of a page that are not prose.
NO_PROSE = (FENCED, CODE, re.compile(r"\]\([^()\s]*\)"))


def load_words() -> list[tuple[re.Pattern[str], str]]:
    with WORDS.open() as lines:
        return [
            (re.compile(rf"\b(?:{row['pattern']})(?-i:(?![a-z]))", re.IGNORECASE), row["say"])
            for row in csv.DictReader(lines, delimiter="\t")
        ]


def any_of(words: list[tuple[re.Pattern[str], str]]) -> re.Pattern[str]:
    """Finds the lines that are worth a second look, in one pass."""
    return re.compile("|".join(f"(?:{pattern.pattern})" for pattern, _ in words), re.IGNORECASE)


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


def readings(name: str, text: str) -> list[str]:
    """The text as it is searched: a page without its code; a source as it is, and with names split into words."""
    if not name.endswith(".md"):
        return [text, text.replace("_", " ")]
    for pattern in NO_PROSE:
        text = pattern.sub(blank, text)
    return [text]


def problems(name: str, words: list[tuple[re.Pattern[str], str]], allowed: list[tuple[str, str]]) -> list[str]:
    path = ROOT / name
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return []
    lines = text.splitlines()
    excuses = [part for pattern, part in allowed if fnmatch(name, pattern)]
    is_suspect = any_of(words).search
    found = {
        (number, match[0], say)
        for reading in readings(name, text)
        for number, line in enumerate(reading.splitlines(), 1)
        if is_suspect(line)
        for pattern, say in words
        for match in pattern.finditer(line)
        if not any(part in lines[number - 1] for part in excuses)
    }
    return [f"{name}:{number}: {word!r}: say {say}" for number, word, say in sorted(found)]


def main() -> None:
    words, allowed = load_words(), load_allowed()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    names = [name for name in listed.stdout.splitlines() if is_checked(name, sys.argv[1:]) and (ROOT / name).is_file()]
    found = [it for name in names for it in problems(name, words, allowed)]
    for it in found:
        print(f"error: {it}", file=sys.stderr)
    sys.exit(1 if found else 0)


main()
