"""Writes assignments.txt: what `uncork policy explain` says of 240 units. Run: make_assignments.py PATH-OF-UNCORK"""

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
        flag = {"ip": ["--ip", value], "cookie": ["--cookie", value], "header": ["--header", value.replace("=", ": ", 1)]}[kind]
        command = [sys.argv[1], "policy", "explain", str(HERE / "assignments.toml"), *flag, "--format", "json"]
        arm = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["decision"]["arm"]
        keys = ("experiment", "arm", "unit", "slot", "bucket", "propensity")
        lines.append(" ".join(str(arm[key]) for key in keys) if arm else "-")
    (HERE / "assignments.txt").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
