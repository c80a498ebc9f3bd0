"""Records in object stores: `s3://bucket/prefix`, `gs://` and `az://`.

Objects are copied to the local disk, sixteen at a time, and then read as files of a directory: an analysis
reads each file several times, so this asks the store for each byte once. The package obstore has the same
implementation as the program (the crate `object_store`), with the same variables for credentials.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uncork.measure.address import Address, Source
from uncork.measure.errors import InputError
from uncork.measure.files import writing

if TYPE_CHECKING:
    from obstore.store import ObjectStore

AT_A_TIME: Final = 16
MAX_REASON: Final = 300
"""Characters of an error of the store."""


def local(sources: Sequence[Source], into: Path, suffixes: Sequence[str] | None) -> list[Path]:
    """The sources as paths: objects with one of the suffixes (all without any) are copied below ``into``,
    with the names and the order that they have in the store.
    """
    paths: list[Path] = []
    for number, one in enumerate(sources):
        if isinstance(one, Path):
            paths.append(one)
            continue
        target = into / f"store-{number}"
        _copy(one, target, suffixes)
        paths.append(target)
    return paths


def state(address: Address) -> list[tuple[str, object]]:
    """The names of the objects and what changes with their content."""
    store, prefix = _open(address)
    return [(name, tag) for name, _, tag in _objects(address, store, prefix)]


def _copy(address: Address, target: Path, suffixes: Sequence[str] | None) -> None:
    store, prefix = _open(address)
    found = _objects(address, store, prefix)
    wanted = [(name, size) for name, size, _ in found if suffixes is None or Path(name).suffix in suffixes]
    if not wanted:
        raise InputError(str(address), "no records", "they are in .parquet or .jsonl files")

    def copy(one: tuple[str, int]) -> None:
        name, size = one
        # An object's name is not trusted to stay in the directory.
        parts = [part for part in name.removeprefix(prefix).split("/") if part not in ("", ".", "..")]
        _download(address, store, name, size, target.joinpath(*parts or [Path(name).name]))

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(copy, wanted))


def _open(address: Address) -> tuple[ObjectStore, str]:
    """The store of the bucket, and the prefix in it."""
    try:
        from obstore.store import from_url
    except ModuleNotFoundError as error:
        remedy = "run: pip install 'uncork[store]'"
        raise InputError(str(address), f"the package {error.name} is not installed", remedy) from None
    scheme, _, rest = address.text.partition("://")
    bucket, _, prefix = rest.partition("/")
    if "@" in bucket or "?" in rest or not bucket:
        shown = f"{scheme}://{bucket.rpartition('@')[2]}"
        raise InputError(
            shown,
            "not the address of a store",
            f"write {scheme}://BUCKET/PREFIX; credentials are in variables",
        )
    try:
        return from_url(f"{scheme}://{bucket}"), prefix.strip("/")
    except Exception as error:
        raise InputError(str(address), _reason(error), "set the variables of this store") from None


def _objects(address: Address, store: ObjectStore, prefix: str) -> list[tuple[str, int, object]]:
    """Name, size and tag of the objects, in the order of names; without files that are not finished."""
    from obstore.exceptions import BaseError

    try:
        found = [
            (one["path"], one["size"], one["e_tag"]) for some in store.list(prefix or None) for one in some
        ]
        if not found and prefix:
            one = store.head(prefix)
            found = [(one["path"], one["size"], one["e_tag"])]
    except FileNotFoundError:
        raise InputError(str(address), "no such objects", "name a prefix with records") from None
    except (BaseError, OSError) as error:
        raise InputError(str(address), _reason(error), "check the store and the credentials") from None
    return sorted(
        (it for it in found if not it[0].rpartition("/")[2].startswith(".")), key=lambda it: Path(it[0])
    )


def _download(address: Address, store: ObjectStore, name: str, size: int, target: Path) -> None:
    from obstore.exceptions import BaseError

    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            try:
                for chunk in store.get(name).stream():
                    file.write(chunk)
            except BaseError as error:
                raise InputError(f"{address}: {name}", _reason(error), "check the store") from None
    if target.stat().st_size != size:
        raise InputError(f"{address}: {name}", "it changed while it was read", "run the command again")


def _reason(error: BaseException) -> str:
    """The code of the answer, or the first line: the others are the structure of the error."""
    text = str(error)
    if code := re.search(r"<Code>(\w+)</Code>", text, re.IGNORECASE):
        return f"the store answers {code[1]}"
    return text.partition("\n")[0][:MAX_REASON].rstrip(". ")
