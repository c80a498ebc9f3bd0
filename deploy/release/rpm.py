"""Prints the table of cargo-generate-rpm for what the Debian package has: one list of files for both.

deploy/release/rpm.py PACKAGED > rpm.toml    # PACKAGED: the folder with the program, its manual pages and completions
"""

import json
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANIFEST = "crates/tools/cli/Cargo.toml"


def assets(deb: dict, packaged: str) -> list[dict]:
    """The files of the Debian package, and its units."""
    up = "../../../"
    found = [
        {
            "source": source.removeprefix(up).replace("target/package", packaged, 1),
            # Only Debian's zsh looks there.
            "dest": "/" + dest.replace("zsh/vendor-completions", "zsh/site-functions"),
            "mode": mode,
        }
        for source, dest, mode in deb["assets"]
    ]
    for unit in deb["systemd-units"]:
        name = f"{unit['unit-name']}.service"
        folder = unit["unit-scripts"].removeprefix(up)
        found.append({"source": folder + name, "dest": f"/usr/lib/systemd/system/{name}", "mode": "644"})
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        found.append({"source": licence, "dest": f"/usr/share/licenses/uncork/{licence}", "mode": "644"})
    return found


def scripts(deb: dict) -> dict[str, str]:
    """What Debian's packages do by themselves: systemd reads the units, and stops what is removed."""
    units = " ".join(f"{it['unit-name']}.service" for it in deb["systemd-units"])
    reload = "systemctl daemon-reload >/dev/null 2>&1 || :"
    return {
        "post_install_script": f"systemd-tmpfiles --create uncork-watch.conf >/dev/null 2>&1 || :\n{reload}",
        "pre_uninstall_script": f'[ "$1" -gt 0 ] || systemctl --no-reload disable --now {units} >/dev/null 2>&1 || :',
        "post_uninstall_script": reload,
    }


def main() -> None:
    package = tomllib.loads((ROOT / MANIFEST).read_text())["package"]
    deb = package["metadata"]["deb"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    values = {
        "name": "uncork",
        "version": workspace["version"],
        "license": workspace["license"],
        "summary": package["description"],
        "auto-req": "no",
        **scripts(deb),
    }
    # Strings of JSON are strings of TOML.
    for key, value in values.items():
        print(key, "=", json.dumps(value))
    for asset in assets(deb, sys.argv[1]):
        print("[[assets]]")
        for key, value in asset.items():
            print(key, "=", json.dumps(value))


main()
