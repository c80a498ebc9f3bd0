"""Pages in a real browser: on a screen and on a phone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = (
    shutil.which("chromium-headless-shell") or shutil.which("chromium") or shutil.which("google-chrome")
)
WIDTHS = (1280, 400)
PROBE = """<script>document.title = [document.documentElement.scrollWidth, innerWidth,
Math.max(...[...document.querySelectorAll('.wide')].map(e => e.scrollWidth - e.clientWidth))
].join(' ')</script></body>"""


def assert_fits(page: str, width: int, work: Path) -> None:
    """Neither the page nor a table is wider than a window of this width."""
    if CHROMIUM is None:
        pytest.skip("*** NOT RUN: chromium is not installed ***")
    file = work / "page.html"
    file.write_text(re.sub(r"<meta http-equiv[^>]+>", "", page).replace("</body>", PROBE), encoding="utf-8")
    flags = f"--no-sandbox --headless --disable-gpu --window-size={width},900 --dump-dom".split()
    command = [CHROMIUM, *flags, file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r"<title>(\d+) (\d+) (-?\d+)</title>", dom)
    assert found is not None, dom[:500]
    whole, window, table = (int(part) for part in found.groups())
    assert whole <= window
    assert table <= 0, "a table is wider than the window"
