"""Rows: a file of the numbers of records, closed to others, for what must never be printed."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from shoal.core.arrays import IntArray
from shoal.outputs import cannot


def write_rows_file(path: Path, numbers: IntArray) -> None:
    """Write a number on each line; whole or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.writelines(f"{number}\n" for number in numbers.tolist())
        os.replace(temporary, path)
    except OSError as error:
        raise cannot(path, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
