"""What the scripts share that write tables into a page of evidence."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

EVIDENCE = Path(__file__).resolve().parents[4] / "docs/evidence"
END = "<!-- end -->\n"


def main(description: str | None, page: str, tables: Mapping[str, Callable[[Path], str]]) -> None:
    """Prints the tables, each made by a program of uncork. With `--write` also replaces those of the page."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("uncork", type=Path, help="the program")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    arguments = parser.parse_args()
    made = {name: table(arguments.uncork) for name, table in tables.items()}
    print("\n".join(made.values()), end="")
    if arguments.write:
        write(page, made)


def write(page: str, tables: Mapping[str, str]) -> None:
    """Replaces tables of a page, by their names."""
    file = EVIDENCE / page
    text = file.read_text(encoding="utf-8")
    for name, table in tables.items():
        begin = f"<!-- table: {name} -->\n"
        before, found, rest = text.partition(begin)
        if not found:
            raise SystemExit(f"{file}: no table {name!r}; add {begin.strip()} and {END.strip()}")
        _, _, after = rest.partition(END)
        text = before + begin + table + END + after
    file.write_text(text, encoding="utf-8")
