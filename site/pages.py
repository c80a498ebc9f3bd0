"""Where the pages are, and what the scripts of this folder read in them."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def files(*patterns: str) -> list[str]:
    """The names of the repository's files, with new ones that are not committed yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in sorted(set(listed.splitlines())) if (ROOT / name).is_file()]
