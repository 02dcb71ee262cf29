"""A profile's file: a line of text that says what follows, then plain arrays, read in place.

The line holds numbers and the names of columns and metrics; the arrays hold counts. No value of the data.
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.lattice import Lattice
from shoal.core.tabulate import Table
from shoal.errors import DataError, OutputError
from shoal.outputs import cannot, check_place, written_whole
from shoal.profiling.grouping import Grouping
from shoal.profiling.source import PolicyWish

if TYPE_CHECKING:
    from shoal.profile import Profile

_MAGIC = b"shoal-profile "
_FORMAT = 2
_ALIGN = 64
_KINDS = ("uint16", "uint32", "uint64", "int64")


def save(profile: Profile, path: Path, *, force: bool = False) -> Path:
    """Write a profile beside its target and rename it into place."""
    check_target(path, force=force)
    arrays = [("numbers", profile.numbers)]
    for place, table in enumerate(profile.tables.values()):
        arrays += [(f"{place}.{name}", getattr(table, name)) for name in Table.__dataclass_fields__]
    body, index = _packed(arrays)
    text = json.dumps(_header(profile) | {"arrays": index}, ensure_ascii=False, allow_nan=False).encode()
    first = f"{_FORMAT} {zlib.crc32(body, zlib.crc32(text)):08x}".encode()
    with written_whole(path) as file:
        file.writelines((_MAGIC, first, b"\n", text, b"\n", body))
    return path


def check_target(path: Path, *, force: bool, inputs: Mapping[Path, str] | None = None) -> None:
    """Refuse a file that a profile cannot or must not be written to; inputs are told by what they are."""
    check_place(path)
    if not path.exists():
        return
    for known, what in (inputs or {}).items():
        if known.exists() and path.samefile(known):
            message = f"{str(path)!r} is {what} and would be replaced. Name another output."
            raise OutputError(message)
    if not force:
        message = f"{str(path)!r} exists. Use --force to replace it, or --extend to go on from it."
        raise OutputError(message)
    if not _begins_as_profile(path):
        message = f"{str(path)!r} is no profile, and --force replaces nothing else. Name another output."
        raise OutputError(message)


def _begins_as_profile(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise cannot(path, error) from None


def _packed(arrays: list[tuple[str, IntArray]]) -> tuple[bytes, dict[str, Any]]:
    body = bytearray()
    index = {}
    for name, array in arrays:
        body.extend(bytes(-len(body) % _ALIGN))
        index[name] = [array.dtype.name, len(body), len(array)]
        body.extend(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return bytes(body), index


def _header(profile: Profile) -> dict[str, Any]:
    lattice = profile.lattice
    return {
        "shoal": version("shoal"),
        "columns": lattice.columns,
        "heights": lattice.heights,
        "axes": lattice.axes,
        "records": profile.records,
        "combinations": profile.combinations,
        "sensitive": profile.sensitive,
        "losses": {name: [part.tolist() for part in parts] for name, parts in profile.losses.items()},
        "groups": profile.grouping.groups,
        "sizes": profile.grouping.sizes,
        "importances": profile.grouping.importances,
        "wish": {name: getattr(profile.wish, name) for name in PolicyWish.__dataclass_fields__},
        "key": profile.key,
        "fingerprint": profile.fingerprint,
    }


def load(path: Path, make: type[Profile]) -> Profile:
    """Open a profile's file, refusing what is damaged or of another version."""
    try:
        with open(path, "rb") as file:
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        message = f"Cannot read the profile {str(path)!r}: {error.strerror}."
        raise DataError(message) from None
    except ValueError:  # nothing to map
        raise _damaged(path) from None
    first = whole[:64].partition(b"\n")[0]
    if not first.startswith(_MAGIC):
        message = f"{str(path)!r} is no profile. Make one with: shoal profile DATA --policy P --output F."
        raise DataError(message)
    kind, _, checksum = first.removeprefix(_MAGIC).partition(b" ")
    if kind != str(_FORMAT).encode():
        message = (
            f"The profile {str(path)!r} is of another version; shoal {version('shoal')} cannot read it. "
            "Make it anew with: shoal profile."
        )
        raise DataError(message)
    try:
        begin = whole.find(b"\n", len(first) + 1)
        text = whole[len(first) + 1 : begin]
        body = memoryview(whole)[begin + 1 :]
        if begin < 0 or int(checksum, 16) != zlib.crc32(body, zlib.crc32(text)):
            raise ValueError
        return _profile(json.loads(text), body, make)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        raise _damaged(path) from None


def _damaged(path: Path) -> DataError:
    return DataError(f"The profile {str(path)!r} is damaged. Make it anew with: shoal profile.")


def _profile(header: Mapping[str, Any], body: memoryview, make: type[Profile]) -> Profile:
    arrays = {name: _array(body, *where) for name, where in header["arrays"].items()}
    names = [None, *header["sensitive"]]
    tables = {
        name: Table(*(arrays[f"{place}.{part}"] for part in Table.__dataclass_fields__))
        for place, name in enumerate(names)
    }
    axes = tuple(tuple(axis) for axis in header["axes"])
    heights = tuple(header["heights"])
    high = tuple(heights[axis[0]] for axis in axes)
    found = [tuple(tuple(column) for column in header[part]) for part in ("groups", "sizes", "importances")]
    return make(
        lattice=Lattice(tuple(header["columns"]), heights, axes, (0,) * len(axes), high),
        records=header["records"],
        combinations=header["combinations"],
        numbers=arrays["numbers"],
        tables=tables,
        losses={n: tuple(np.array(part) for part in parts) for n, parts in header["losses"].items()},
        grouping=Grouping(*found),
        wish=PolicyWish(**header["wish"] | {"models": tuple(map(tuple, header["wish"]["models"]))}),
        key=header["key"],
        fingerprint=header["fingerprint"],
    )


def _array(body: memoryview, kind: str, start: int, length: int) -> IntArray:
    if kind not in _KINDS:
        raise ValueError
    found: IntArray = np.frombuffer(body, np.dtype(kind).newbyteorder("<"), length, start)
    return found
