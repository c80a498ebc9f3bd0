"""The share of type names that are defined more than once, in the code without its tests, has a limit: a reader finds by name.

python3 .ci/type_names.py           # fails above the limit
python3 .ci/type_names.py --list    # prints each repeated name with its files
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_SHARE = 0.10
# Folders and files of tests, benchmarks and examples, and code of others.
LEFT_OUT = re.compile(r"(^|/)(vendor|tests?|benches|examples|fuzz|testkit)/|(^|/)tests?\.rs$")
UNIT_TESTS = "#[cfg(test)]\nmod tests {"
DEFINITION = re.compile(r"^(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|union|type) (\w+)", re.MULTILINE)


def definitions() -> dict[str, list[str]]:
    """The files that define each name."""
    files = subprocess.run(["git", "ls-files", "*.rs"], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    found = defaultdict[str, list[str]](list)
    for file in files.split():
        if not LEFT_OUT.search(file):
            code, _, _ = (ROOT / file).read_text().partition(UNIT_TESTS)
            for name in DEFINITION.findall(code):
                found[name].append(file)
    return found


def main() -> None:
    found = definitions()
    repeated = {name: files for name, files in found.items() if len(files) > 1}
    if sys.argv[1:] == ["--list"]:
        for name, files in sorted(repeated.items(), key=lambda item: (-len(item[1]), item[0])):
            print(name, *files)
    share = len(repeated) / len(found)
    print(f"{len(repeated)} of {len(found)} type names are defined more than once: {share:.1%}, maximum {MAX_SHARE:.0%}")
    if share > MAX_SHARE:
        sys.exit("give one of two types a longer name: `python3 .ci/type_names.py --list`")


main()
