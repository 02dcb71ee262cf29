"""Reads the YAML of a policy; errors name the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.engines.names import TABLE_FILES
from shoal.errors import PolicyError
from shoal.files.outputs import check_path
from shoal.files.yaml import MAX_YAML_BYTES, LoadError, load_yaml, read_bytes
from shoal.wording import quote


def named_as_table(path: Path) -> bool:
    """Return whether a path has the extension of a table, except .txt, which may also be a policy.

    >>> named_as_table(Path("p.CSV")), named_as_table(Path("p.yaml")), named_as_table(Path("p.txt"))
    (True, False, False)
    """
    ending = path.suffix.lower()
    return ending in TABLE_FILES and ending != ".txt"


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the entries of a policy."""
    check_path(path)
    if path.is_file() and named_as_table(path):
        raise PolicyError(f"{quote(path)} has the ending of a table, not of a policy. Are the two swapped?")
    try:
        return parse_yaml(read_bytes(path, MAX_YAML_BYTES).decode("utf-8"), f" {quote(path)}")
    except LoadError as error:
        raise PolicyError(f"The policy {quote(path)} is {error}.") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PolicyError(
            f"The policy {quote(path)} is not UTF-8 text (line {line}). Save it as UTF-8."
        ) from None
    except OSError as error:
        raise PolicyError(f"Cannot read the policy {quote(path)}: {error.strerror}.") from None


def parse_yaml(text: str, name: str = "") -> dict[str, Any]:
    """Parse the entries of a policy; `name` follows "The policy" in messages."""
    try:
        data = load_yaml(text)
    except LoadError as error:
        raise PolicyError(f"The policy{name} is {error}.") from None
    if not isinstance(data, dict):
        raise PolicyError(f"The policy{name} must be a mapping that begins with 'columns:'.")
    return data
