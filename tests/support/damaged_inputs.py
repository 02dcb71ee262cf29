"""Files of every kind that shoal reads, damaged at random, and what a command makes of each.

Run as a program in a process of its own, which may then crash, it writes a line of JSON for every file:
`python damaged.py FOLDER KIND SEED FIRST LAST`. The kind, the seed and the number of a file determine it.
"""

from __future__ import annotations

import io
import json
import random
import resource
import signal
import sys
import time
import traceback
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

CANARY = "C4N4RY"
MEMORY = 6 << 30  # bytes of address space
SECONDS = 120  # for one file, on a machine that is busy with other work
JUNK: list[Any] = [
    None, True, -1, 0, 2**40, 10**300, 1e308, -0.5, "", "x", "\x00", "*", "/etc/hostname", "a" * 5000,
    [], {}, [[]], [None], {"": None}, [1, [2, [3]]], {"k": {"k": {}}},
]  # fmt: skip
LENGTHS = [b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\xff" * 8, b"\x00" * 8]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Flip bits, cut off, splice, append garbage, and write huge lengths."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(found) or 1)
        kind = rng.choice(["flip"] * 4 + ["length"] * 3 + ["splice"] * 3 + ["append", "cut", "nest"])
        if kind == "flip" and found:
            found[at] ^= 1 << rng.randrange(8)
        elif kind == "length":
            length = rng.choice(LENGTHS)
            found[at : at + len(length)] = length
        elif kind == "splice":
            start, size = rng.randrange(len(found) or 1), rng.randrange(1, 64)
            found[at : at + rng.choice([0, size])] = found[start : start + size]
        elif kind == "append":
            found += rng.randbytes(rng.randrange(1, 64))
        elif kind == "cut":
            del found[at:]
        else:
            found[at:at] = rng.choice([b"[", b"{", b'{"a":', b"- ", b"(", b"<a>"]) * rng.choice([3, 3000])
    return bytes(found)


def changed(data: Any, rng: random.Random) -> Any:
    """Replace, remove or repeat some value of a document, which stays well formed."""
    places: list[tuple[Any, Any]] = []
    level = [data]
    while level:
        one = level.pop()
        for key in list(one) if isinstance(one, dict) else range(len(one)):
            places.append((one, key))
            if isinstance(one[key], dict | list):
                level.append(one[key])
    for _ in range(rng.choice([1, 1, 2])):
        holder, key = rng.choice(places)
        if rng.random() < 0.2 and isinstance(holder, dict):
            holder.pop(key, None)
        elif rng.random() < 0.2:
            other, there = rng.choice(places)
            if there in other if isinstance(other, dict) else there < len(other):
                holder[key] = json.loads(json.dumps(other[there]))
        else:
            holder[key] = rng.choice(JUNK)
    return data


def damaged_json(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return mutated(data, rng)
    return json.dumps(changed(json.loads(data), rng)).encode()


def damaged_yaml(data: bytes, rng: random.Random) -> bytes:
    import yaml

    if rng.random() < 0.5:
        return mutated(data, rng)
    return yaml.safe_dump(changed(yaml.safe_load(data), rng)).encode()


def damaged_profile(data: bytes, rng: random.Random) -> bytes:
    """Damage a profile anywhere, or its header or body under a checksum that is right again."""
    first, header, body = data.split(b"\n", 2)
    choice = rng.randrange(3)
    if choice == 0:
        return mutated(data, rng)
    if choice == 1:
        header = json.dumps(changed(json.loads(header), rng)).encode()
    else:
        body = mutated(body, rng)
    start = first.rpartition(b" ")[0]
    return start + f" {zlib.crc32(body, zlib.crc32(header)):08x}".encode() + b"\n" + header + b"\n" + body


def damaged_project(data: bytes, rng: random.Random) -> bytes:
    """Damage a project as a file, or one of its members in a ZIP that is whole."""
    if rng.random() < 0.4:
        return mutated(data, rng)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, mutated(content, rng) if name == chosen else content)
    return made.getvalue()


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "parquet": mutated,
    "arrow": mutated,
    "policy": damaged_yaml,
    "offer": damaged_json,
    "recipe": damaged_json,
    "regions": damaged_json,
    "profile": damaged_profile,
    "project": damaged_project,
}
NAMES = {
    "parquet": "x.parquet", "arrow": "x.arrow", "policy": "x.yaml", "offer": "x.json", "recipe": "x.json",
    "regions": "x.json", "profile": "x.profile", "project": "x.deid",
}  # fmt: skip
RELEASE = ["--output", "out.csv", "--force", "--json"]
COMMANDS = {
    "parquet": ["anonymize", "FILE", "--policy", "policy.yaml", *RELEASE],
    "arrow": ["anonymize", "FILE", "--policy", "policy.yaml", *RELEASE],
    "policy": ["anonymize", "table.csv", "--policy", "FILE", *RELEASE],
    "offer": ["anonymize", "table.csv", "--policy", "policy.yaml", "--node", "FILE", *RELEASE],
    "recipe": ["apply", "FILE", "table.csv", *RELEASE],
    "regions": ["apply", "FILE", "table.csv", *RELEASE],
    "profile": ["negotiate", "FILE", "--k", "3", "--suppression-limit", "5", "--json"],
    "project": ["import-arx", "FILE", "--output", "imported", "--force", "--json"],
}


def prepare(folder: Path) -> None:
    """Write one whole file of every kind."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    import shoal

    rng = random.Random(1)
    rows = range(120)
    table = pa.table(
        {
            "age": [rng.randrange(18, 90) for _ in rows],
            "town": [f"{CANARY}{rng.randrange(4)}" for _ in rows],
            "illness": [f"{CANARY}ill{rng.randrange(5)}" if rng.random() < 0.9 else None for _ in rows],
            "stay": [rng.randrange(20) / 2 for _ in rows],
        }
    )
    pyarrow.csv.write_csv(table, folder / "table.csv")
    pyarrow.parquet.write_table(table, folder / "whole.parquet")
    pyarrow.feather.write_feather(table, str(folder / "whole.arrow"), compression="zstd")
    (folder / "towns.csv").write_text(
        "".join(f"{CANARY}{town};group{town % 2};*\n" for town in range(4)), encoding="utf-8"
    )
    policy = (
        "columns:\n"
        "  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10, 20]}}\n"
        "  town: {role: quasi-identifier, hierarchy: {csv: towns.csv}}\n"
        "  illness: {role: sensitive}\n"
        "  stay: {role: other}\n"
        "models: [{k-anonymity: {k: 3}}, {distinct-l-diversity: {l: 2}}]\n"
        "suppression_limit: 10%\n"
    )
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    (folder / "whole.policy").write_text(policy, encoding="utf-8")
    (folder / "whole.offer").write_text(
        '{"node": {"age": 2, "town": 1}, "height": 3, "suppressed": 4, "k": 3, "limit": 12}', encoding="utf-8"
    )
    shoal.anonymize(folder / "table.csv", folder / "policy.yaml", output=folder / "released.csv")
    (folder / "whole.recipe").write_bytes((folder / "released.csv.private" / "recipe.json").read_bytes())
    regions = shoal.Policy.load(folder / "policy.yaml").with_(algorithm="mondrian")
    shoal.anonymize(folder / "table.csv", regions, output=folder / "regions.csv")
    (folder / "whole.regions").write_bytes((folder / "regions.csv.private" / "recipe.json").read_bytes())
    shoal.profile(folder / "table.csv", folder / "policy.yaml").save(folder / "whole.profile")
    with zipfile.ZipFile(folder / "whole.project", "w") as project:
        for name, text in _project().items():
            project.writestr(name, text)


def _project() -> dict[str, str]:
    def column(name: str, kind: str, rest: str = "") -> str:
        return f"<assigment><name>{name}</name><type>{kind}</type>{rest}</assigment>"

    towns = "<datatype>String</datatype><ref>hierarchies/town.csv</ref><min>All</min><max>1</max>"
    return {
        "metadata.xml": "<metadata><version>3.9.1</version><vocabulary>2.0</vocabulary></metadata>",
        "input/definition.xml": "<definition>"
        + column("age", "INSENSITIVE_ATTRIBUTE", "<datatype>Integer</datatype>")
        + column("town", "QUASI_IDENTIFYING_ATTRIBUTE", towns)
        + column("illness", "SENSITIVE_ATTRIBUTE")
        + "</definition>",
        "input/config.xml": "<config><relativeMaxOutliers>0.1</relativeMaxOutliers><metric>Height</metric>"
        "<criteria><criterion>3-anonymity</criterion></criteria></config>",
        "input/hierarchies/town.csv": "".join(f"{CANARY}{town};group;*\n" for town in range(4)),
    }


def outcome(kind: str, path: Path) -> dict[str, Any]:
    """Run the command of a kind on a file, and describe how it ended."""
    from typer.testing import CliRunner

    from shoal.cli.app import app

    words = [str(path) if word == "FILE" else word for word in COMMANDS[kind]]
    began = time.monotonic()
    result = CliRunner().invoke(app, words)
    shown = result.stdout + result.stderr
    told: dict[str, Any] = {
        "code": result.exit_code,
        "seconds": round(time.monotonic() - began, 2),
        "leak": CANARY in shown,
        "long": len(result.stderr) > 5000,
        "message": result.stderr[:300],
    }
    if '"InternalError"' in result.stdout:
        told["accident"] = f"InternalError: {result.stderr[:200]}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        last = traceback.extract_tb(result.exception.__traceback__)[-3:]
        where = "; ".join(f"{Path(one.filename).name}:{one.lineno}" for one in last)
        told["accident"] = f"{type(result.exception).__name__}: {result.exception} at {where}"
    return told


def main(folder: Path, kind: str, seed: int, first: int, last: int) -> None:
    import os

    os.chdir(folder)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    whole = (folder / f"whole.{kind}").read_bytes()
    path = folder / f"{kind}-{NAMES[kind]}"
    for number in range(first, last):
        path.write_bytes(DAMAGE[kind](whole, random.Random(f"{kind} {seed} {number}")))
        signal.alarm(SECONDS)
        sys.stdout.write(json.dumps({"kind": kind, "number": number, **outcome(kind, path)}) + "\n")
        sys.stdout.flush()
        signal.alarm(0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(json.dumps({"kind": kind, "peak": peak}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6]))
