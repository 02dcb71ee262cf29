"""Profile files: a header line in JSON, then plain arrays, which are memory-mapped.

The header has numbers and the names of columns and metrics. The arrays have counts. A profile file has no
values of the data.
"""

from __future__ import annotations

import json
import math
import mmap
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts.diversity import KINDS, Diversity, Measure
from shoal.core.lattice.lattice import Lattice
from shoal.errors import DataError, OutputError
from shoal.files.outputs import REPLACE, cannot_write, check_inputs, check_place, written_whole
from shoal.files.yaml import load_json
from shoal.wording import Change, quote
from shoal.workflow.profile.grouping import Grouping
from shoal.workflow.profile.source import PolicyDefaults, PolicyModel
from shoal.workflow.profile.tables import JointTable, SizeTable

if TYPE_CHECKING:
    from shoal.workflow.profile.profile import Profile


_MAX_LEVEL = 1000
_MAX_NODES = 1 << 27  # maximum size of a lattice; an answer needs arrays of this length
_MAX_COUNT = 1 << 53
_MAX_L = 1 << 24
_HEX = re.compile(r"(?:[0-9a-f]{2})*")


def check_profile(profile: Profile) -> None:
    """Raise ValueError if a part is missing, has the wrong type or is out of bounds."""
    if not all(_checks(profile)):
        raise ValueError


def _checks(profile: Profile) -> Iterator[bool]:
    """Yield the result of each check. A check may need the success of earlier checks."""
    lattice = profile.lattice
    names, levels = lattice.columns, [range(height + 1) for height in lattice.heights]
    yield 0 < len(names) == len(set(names)) == len(levels) and _all(str, names)
    yield _all(int, lattice.heights) and all(0 <= height <= _MAX_LEVEL for height in lattice.heights)
    yield sorted(column for axis in lattice.axes for column in axis) == list(range(len(names)))
    yield all(len({lattice.heights[column] for column in axis}) == 1 for axis in lattice.axes)
    yield lattice.size <= _MAX_NODES
    yield all(type(n) is int and 0 < n <= _MAX_COUNT for n in (profile.records, profile.combinations))
    numbers = profile.numbers
    yield 0 < len(numbers) <= lattice.size and _in_range(numbers, 0, lattice.size - 1)
    yield len(np.unique(numbers)) == len(numbers)
    for name, table in profile.tables.items():
        yield name is None or isinstance(name, str)
        yield _is_table(table, len(numbers), profile.records)
    for measure, joint in profile.joints.items():
        yield measure.column in profile.sensitive and 1 <= measure.diversity.steps <= _MAX_LEVEL
        yield _is_joint(joint, len(numbers), profile.records)
    for name, parts in profile.losses.items():
        yield isinstance(name, str) and len(parts) == len(levels)
        for part, counts in zip(parts, levels, strict=True):
            yield (part.dtype.kind in "fi" and part.shape == (len(counts),) and bool(np.isfinite(part).all()))
    yield set(profile.removable) <= set(names)
    grouping = profile.grouping
    for by_column in (grouping.groups, grouping.sizes, grouping.importances):
        yield [len(column) for column in by_column] == [len(counts) for counts in levels]
        yield all(_is_positive(number) for column in by_column for number in column)
    yield _is_policy_defaults(profile, dict(zip(names, lattice.heights, strict=True)))
    yield all(
        isinstance(key, str) and bool(_HEX.fullmatch(key)) for key in (profile.key, profile.fingerprint)
    )


def _is_table(table: SizeTable, nodes: int, records: int) -> bool:
    """Return whether the entries of each node are ascending and lie within the arrays of a table."""
    begins, values, below = table.begins, table.values, table.below
    if not (len(begins) == nodes + 1 and len(values) == len(below) and len(table.classes) == nodes):
        return False
    if not (_in_range(begins, 0, len(values)) and begins[0] == 0 and begins[-1] == len(values)):
        return False
    if (np.diff(begins.astype(np.int64)) < 1).any():  # every node has at least one class
        return False
    if not (_in_range(values, 1, records) and _in_range(below, 0, records)):
        return False
    if not _in_range(table.classes, 1, records):
        return False
    inside = np.ones(len(values), bool)
    inside[begins[:-1]] = False  # the first entry of a node has no predecessor
    grow = (np.diff(part.astype(np.int64), prepend=0) > 0 for part in (values, below))
    return bool(all(part[inside].all() for part in grow) and not below[begins[:-1]].any())


def _is_joint(joint: JointTable, nodes: int, records: int) -> bool:
    """Return whether the entries of each node lie within the arrays and count each record once."""
    begins, entries = joint.begins, len(joint.sizes)
    if not (len(begins) == nodes + 1 and entries == len(joint.values) == len(joint.records)):
        return False
    if not (_in_range(begins, 0, entries) and begins[0] == 0 and begins[-1] == entries):
        return False
    if (np.diff(begins.astype(np.int64)) < 1).any():
        return False
    if not (_in_range(joint.sizes, 1, records) and _in_range(joint.records, 1, records)):
        return False
    sums = np.add.reduceat(joint.records.astype(np.int64), begins[:-1])
    return bool((sums == records).all()) and _in_range(joint.values, 0, _MAX_L)


def _is_policy_defaults(profile: Profile, heights: Mapping[str, int]) -> bool:
    defaults = profile.defaults
    limits = (defaults.max_level, defaults.min_level)
    return (
        defaults.model in ("k", "l")
        and _is_least(defaults.least)
        and (defaults.l is None or _is_least(defaults.l))
        and defaults.diversity in KINDS
        and (defaults.c is None or _is_positive(defaults.c))
        and type(defaults.limit) is int
        and 0 <= defaults.limit <= profile.records
        and all(isinstance(limit, Mapping) and limit.keys() <= heights.keys() for limit in limits)
        and all(type(n) is int and 0 <= n <= heights[name] for limit in limits for name, n in limit.items())
        and all(isinstance(text, str | None) for text in (defaults.sensitive, defaults.metric))
        and isinstance(defaults.share, float | str | None)
        and all(_is_asked(model) for model in defaults.models)
    )


def _is_least(number: object) -> bool:
    return type(number) in (int, float) and 1 <= number <= _MAX_COUNT  # type: ignore[operator]


def _is_asked(model: PolicyModel) -> bool:
    return (
        isinstance(model.name, str)
        and (model.least is None or _is_least(model.least))
        and isinstance(model.column, str | None)
        and (model.c is None or _is_positive(model.c))
    )


def _in_range(array: IntArray, low: int, high: int) -> bool:
    return len(array) > 0 and int(array.min()) >= low and int(array.max()) <= high


def _all(kind: type, values: Sequence[object]) -> bool:
    return all(type(value) is kind for value in values)


def _is_positive(number: object) -> bool:
    return type(number) in (int, float) and 0 < number < math.inf  # type: ignore[operator]


_MAGIC = b"shoal-profile "
_FORMAT = 3
_ALIGN = 64
_MAX_HEADER = 64_000_000
_KINDS = ("uint16", "uint32", "uint64", "int64")


def save(profile: Profile, path: Path, *, force: bool = False) -> Path:
    """Write a profile to a temporary file, then rename it to `path`."""
    check_target(path, force=force)
    arrays = [("numbers", profile.numbers)]
    for number, table in enumerate(profile.tables.values()):
        arrays += [(f"{number}.{name}", getattr(table, name)) for name in SizeTable.__dataclass_fields__]
    for number, joint in enumerate(profile.joints.values()):
        arrays += [
            (f"joint {number}.{name}", getattr(joint, name)) for name in JointTable.__dataclass_fields__
        ]
    body, index = _packed(arrays)
    text = json.dumps(_header(profile) | {"arrays": index}, ensure_ascii=False, allow_nan=False).encode()
    first = f"{_FORMAT} {zlib.crc32(body, zlib.crc32(text)):08x}".encode()
    with written_whole(path) as file:
        file.writelines((_MAGIC, first, b"\n", text, b"\n", body))
    return path


def check_target(path: Path, *, force: bool, inputs: Mapping[Path, str] | None = None) -> None:
    """Raise if a profile cannot be written to a file, or would overwrite one without permission."""
    check_place(path)
    if not path.exists():
        return
    check_inputs([path], inputs or {})
    if not force:
        raise OutputError(
            f"{quote(path)} exists.",
            code="output-exists",
            advice=[REPLACE, Change("extend", action="Use {} to continue from it")],
        )
    if not _begins_as_profile(path):
        raise OutputError(f"{quote(path)} is not a profile, so it is not replaced. Name another output.")


def _begins_as_profile(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise cannot_write(path, error) from None


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
        "removable": profile.removable,
        "measures": [
            [item.column, item.diversity.kind, item.diversity.c, item.diversity.steps]
            for item in profile.joints
        ],
        "losses": {name: [part.tolist() for part in parts] for name, parts in profile.losses.items()},
        "groups": profile.grouping.groups,
        "sizes": profile.grouping.sizes,
        "importances": profile.grouping.importances,
        "defaults": {name: getattr(profile.defaults, name) for name in PolicyDefaults.__dataclass_fields__},
        "key": profile.key,
        "fingerprint": profile.fingerprint,
    }


def load(path: Path, make: type[Profile]) -> Profile:
    """Open a profile's file; raise if it is damaged or of another version."""
    try:
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise DataError(f"Cannot read the profile {quote(path)}: {error.strerror}.") from None
    except ValueError:  # the file is empty
        raise _damaged(path) from None
    first = mapped[:64].partition(b"\n")[0]
    if not first.startswith(_MAGIC):
        raise DataError(
            f"{quote(path)} is not a profile. Make one with: shoal profile DATA --policy P --output F."
        )
    kind, _, checksum = first.removeprefix(_MAGIC).partition(b" ")
    if kind != str(_FORMAT).encode():
        raise DataError(
            f"The profile {quote(path)} is of another version; shoal {version('shoal')} cannot read it. "
            "Make it again with: shoal profile."
        )
    try:
        begin = mapped.find(b"\n", len(first) + 1)
        text = mapped[len(first) + 1 : begin]
        body = memoryview(mapped)[begin + 1 :]
        if begin < 0 or int(checksum, 16) != zlib.crc32(body, zlib.crc32(text)):
            raise ValueError
        profile = _profile(load_json(text, max_bytes=_MAX_HEADER), body, make)
        check_profile(profile)
        return profile
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        raise _damaged(path) from None


def _damaged(path: Path) -> DataError:
    return DataError(f"The profile {quote(path)} is damaged. Make it again with: shoal profile.")


def _profile(header: Mapping[str, Any], body: memoryview, make: type[Profile]) -> Profile:
    arrays = {name: _array(body, *where) for name, where in header["arrays"].items()}
    names = [None, *header["sensitive"]]
    tables = {
        name: SizeTable(*(arrays[f"{number}.{part}"] for part in SizeTable.__dataclass_fields__))
        for number, name in enumerate(names)
    }
    measures = [Measure(column, Diversity(*kind)) for column, *kind in header["measures"]]
    joints = {
        measure: JointTable(*(arrays[f"joint {number}.{part}"] for part in JointTable.__dataclass_fields__))
        for number, measure in enumerate(measures)
    }
    axes = tuple(tuple(axis) for axis in header["axes"])
    heights = tuple(header["heights"])
    high = tuple(heights[axis[0]] for axis in axes)
    figures = [tuple(tuple(column) for column in header[part]) for part in ("groups", "sizes", "importances")]
    return make(
        lattice=Lattice(tuple(header["columns"]), heights, axes, (0,) * len(axes), high),
        records=header["records"],
        combinations=header["combinations"],
        numbers=arrays["numbers"],
        tables=tables,
        losses={n: tuple(np.array(part) for part in parts) for n, parts in header["losses"].items()},
        grouping=Grouping(*figures),
        defaults=PolicyDefaults(
            **header["defaults"]
            | {"models": tuple(PolicyModel(*fields) for fields in header["defaults"]["models"])}
        ),
        key=header["key"],
        fingerprint=header["fingerprint"],
        joints=joints,
        removable=tuple(header["removable"]),
    )


def _array(body: memoryview, kind: str, start: int, length: int) -> IntArray:
    if kind not in _KINDS:
        raise ValueError
    array: IntArray = np.frombuffer(body, np.dtype(kind).newbyteorder("<"), length, start)
    return array
