"""Checks links and the headings that they name; of docs/ also headers of tables, contents, lengths, schemas, quoted messages,
and questions.tsv.

python3 site/check.py         # prints the words of each part and every problem; exits with 1 if there is a problem
"""

import csv
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import quotes
from pages import CODE, DOCS, FENCED, ROOT, files

# Maximum number of words of a page, by folder.
PAGE_BUDGET = {"start": 600, "howto": 800, "explain": 1_500}
# Maximum number of words of all pages outside of reference and evidence.
TOTAL_BUDGET = 45_000
WITHOUT_BUDGET = {"reference", "evidence", "example"}
# Pages of others.
OTHERS = ("vendor/", "crates/core/page/vendor/")

HEADING = re.compile(r"^#{1,6} +(.*?) *$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">')
# The first line of a table, and the line below it that makes it one.
HEADER = re.compile(r"^(\|.*\|) *\n\|[-: |]+\|$", re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+)\)")
WORD = re.compile(r"[\w’'-]*[A-Za-z][\w’'-]*")


def slug(heading: str) -> str:
    """The anchor of a heading, as mdBook and the forges make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "").lower()
    return re.sub(r"[^\w -]", "", text).strip().replace(" ", "-")


@dataclass(frozen=True)
class Page:
    """A page in Markdown."""

    path: Path

    @cached_property
    def text(self) -> str:
        """Without fenced blocks."""
        return FENCED.sub("", self.path.read_text())

    @cached_property
    def anchors(self) -> set[str]:
        anchors: dict[str, int] = {}
        for heading in HEADING.findall(self.text):
            name = slug(heading)
            count = anchors.get(name, 0)
            anchors[name] = count + 1
            if count:
                anchors[f"{name}-{count}"] = 1
        return {*anchors, *ANCHOR.findall(self.text)}

    @cached_property
    def links(self) -> list[str]:
        """Targets inside of the repository."""
        targets = LINK.findall(CODE.sub("", self.text))
        return [it for it in targets if "://" not in it and not it.startswith("mailto:")]

    @cached_property
    def targets(self) -> set[Path]:
        """The files that the links name."""
        return {(self.path.parent / it.partition("#")[0]).resolve() for it in self.links}

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def part(self) -> str:
        folders = self.path.relative_to(DOCS).parts[:-1]
        return folders[0] if folders else "."

    @property
    def words(self) -> int:
        return len(WORD.findall(self.text))


def link_problems(page: Page, pages: dict[Path, Page]) -> list[str]:
    problems = []
    for link in page.links:
        file, _, anchor = link.partition("#")
        target = (page.path.parent / file).resolve() if file else page.path
        if not target.exists():
            problems.append(f"{page.name}: link to a file that does not exist: {link}")
        elif anchor and target in pages and anchor not in pages[target].anchors:
            problems.append(f"{page.name}: link to a heading that does not exist: {link}")
    return problems


def table_problems(page: Page) -> list[str]:
    """A screen reader reads a cell with the header of its column."""
    empty = [it for it in HEADER.findall(page.text) if not all(cell.strip() for cell in it.strip("|").split("|"))]
    return [f"{page.name}: a column without a header: {it}" for it in empty]


def contents_problems(pages: list[Page]) -> list[str]:
    """Every page is in the contents."""
    listed = Page(DOCS / "SUMMARY.md").targets
    missing = [it.name for it in pages if it.part in {*PAGE_BUDGET, *WITHOUT_BUDGET} and it.path not in listed]
    return [f"{name}: missing in docs/SUMMARY.md" for name in missing]


def word_problems(pages: list[Page]) -> list[str]:
    problems, total = [], dict.fromkeys(sorted({it.part for it in pages}), 0)
    for page in pages:
        total[page.part] += page.words
        if page.words > PAGE_BUDGET.get(page.part, page.words):
            problems.append(f"{page.name}: {page.words} words, at most {PAGE_BUDGET[page.part]}")
    print("words in docs/:", ", ".join(f"{part} {words}" for part, words in total.items()))
    guides = sum(words for part, words in total.items() if part not in WITHOUT_BUDGET)
    if guides > TOTAL_BUDGET:
        problems.append(f"docs: {guides} words outside of reference and evidence, at most {TOTAL_BUDGET}")
    return problems


def question_problems(pages: dict[Path, Page]) -> list[str]:
    """Each question has its answer at a heading, at most two clicks from the start page."""
    one_click = pages[DOCS / "README.md"].targets
    two_clicks = one_click.union(*(pages[path].targets for path in one_click & pages.keys()))
    problems = []
    with (DOCS / "questions.tsv").open() as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            place, path = f"docs/questions.tsv: {row['question']}", DOCS / row["page"]
            if path not in pages:
                problems.append(f"{place}: the page does not exist: {row['page']}")
            elif row["heading"] and slug(row["heading"]) not in pages[path].anchors:
                problems.append(f"{place}: {row['page']} has no heading '{row['heading']}'")
            elif path not in two_clicks:
                problems.append(f"{place}: {row['page']} is more than two clicks away from docs/README.md")
    return problems


def schema_problems(page: Page) -> list[str]:
    """Schemas that the page of formats does not link."""
    return [
        f"{page.path.relative_to(ROOT)}: has no link to schemas/{one.name}"
        for one in sorted((DOCS / "schemas").glob("*.json"))
        if f"../schemas/{one.name}" not in page.links
    ]


def main() -> None:
    pages = {ROOT / name: Page(ROOT / name) for name in files("*.md") if not name.startswith(OTHERS)}
    docs = [page for path, page in pages.items() if path.is_relative_to(DOCS)]
    problems = [it for page in pages.values() for it in link_problems(page, pages)]
    problems += [it for page in docs for it in table_problems(page)]
    problems += contents_problems(docs) + word_problems(docs) + question_problems(pages)
    problems += schema_problems(pages[DOCS / "reference/results.md"])
    problems += quotes.problems()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
