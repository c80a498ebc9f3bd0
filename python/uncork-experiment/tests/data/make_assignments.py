"""Writes assignments.txt, what `uncork policy explain` says of 240 units. Run: make_assignments.py UNCORK"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from test_assignment import units  # noqa: E402


def main() -> None:
    lines = []
    for unit in units(240):
        kind, value = unit.split(" ", 1)
        text = value.replace("=", ": ", 1) if kind == "header" else value
        policy = str(HERE / "assignments.toml")
        command = [sys.argv[1], "policy", "explain", policy, f"--{kind}", text, "--format=json"]
        explained = subprocess.run(command, check=True, capture_output=True).stdout
        arm = json.loads(explained)["decision"]["arm"]
        keys = ("experiment", "arm", "unit", "slot", "bucket", "propensity")
        lines.append(" ".join(str(arm[key]) for key in keys) if arm else "-")
    (HERE / "assignments.txt").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
