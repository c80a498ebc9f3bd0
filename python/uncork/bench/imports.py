"""What an import costs: rows per second of CPU time, and memory.

python bench/imports.py
"""

import resource
import tempfile
import time
from pathlib import Path

from uncork.measure.sources import built_in, import_files
from uncork.measure.sources.uncork import JSON_LINES

RECORDS = Path(__file__).parents[1] / "tests/data/serve.jsonl"
NGINX = (
    '{"time":"1793577600.123","request_time":"4.512","remote_addr":"198.51.100.7","host":"a.example",'
    '"status":"200","body_bytes_sent":"10485760","content_length":"10485760","server":"edge","rtt":"24900",'
    '"arm":"bbr"}\n'
)


def main() -> None:
    """Imports 100,000 rows of nginx and 40,000 records."""
    logs = {
        "nginx": (NGINX * 100_000, built_in("nginx")),
        "records": (RECORDS.read_text() * 1000, JSON_LINES),
    }
    with tempfile.TemporaryDirectory() as directory:
        for name, (text, mapping) in logs.items():
            log = Path(directory) / f"{name}.jsonl"
            log.write_text(text)
            begin = time.process_time()
            rows = import_files([log], mapping, Path(directory) / name).rows
            print(f"{name}: {rows / (time.process_time() - begin):,.0f} rows per second of CPU time")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
