"""A mount namespace of the script's own, with a BPF file system: what is loaded goes with the script."""

from __future__ import annotations

import os
import subprocess
import sys

# In the environment of the script that was started again.
STARTED_AGAIN = "UNCORK_IN_OWN_MOUNTS"


def enter() -> None:
    """Starts the script again there; in the second start it returns. Needs root and util-linux."""
    script = os.path.basename(sys.argv[0])
    if os.geteuid() != 0:
        sys.exit(f"{script}: it makes network namespaces and loads BPF programs; run it as root")
    if STARTED_AGAIN not in os.environ:
        os.environ[STARTED_AGAIN] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)
