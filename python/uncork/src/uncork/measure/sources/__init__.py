"""Records from files: uncork's own, and logs of others by a mapping file."""

from uncork.measure.sources.importing import Imported, Progress, import_files
from uncork.measure.sources.mapping import Mapping, built_in, load
from uncork.measure.sources.reading import LoadedRecords, read

__all__ = [
    "Imported",
    "LoadedRecords",
    "Mapping",
    "Progress",
    "built_in",
    "import_files",
    "load",
    "read",
]
