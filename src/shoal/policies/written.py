"""The YAML of a policy: read as it is written, with the line of what is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from shoal.engines.names import TABLE_FILES
from shoal.errors import PolicyError
from shoal.policies.faults import in_plain_words


def named_as_table(path: Path) -> bool:
    """Tell whether a name ends as a table's does; .txt may be anything.

    >>> named_as_table(Path("p.CSV")), named_as_table(Path("p.yaml")), named_as_table(Path("p.txt"))
    (True, False, False)
    """
    ending = path.suffix.lower()
    return ending in TABLE_FILES and ending != ".txt"


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the entries of a policy."""
    if path.is_file() and named_as_table(path):
        message = f"{str(path)!r} is a table, by its ending, and no policy. Are the two swapped?"
        raise PolicyError(message)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        message = f"The policy {str(path)!r} is not UTF-8 text (line {line}). Save it as UTF-8."
        raise PolicyError(message) from None
    except OSError as error:
        message = f"Cannot read the policy {str(path)!r}: {error.strerror}."
        raise PolicyError(message) from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        message = f"The policy {str(path)!r} is not valid YAML{in_plain_words(error)}"
        raise PolicyError(message) from None
    if not isinstance(data, dict):
        message = f"The policy {str(path)!r} must be a mapping that begins with 'columns:'."
        raise PolicyError(message)
    return data


class _Loader(yaml.SafeLoader):
    """YAML that reads what is written: no is a word, 007 a code, 14:05 a time; and no key stands twice."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - yaml's own name; filled below

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key given twice instead of keeping the last."""
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name!r} stands twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


_FLOAT = r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?"
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", [*"-+0123456789"]),
    ("float", _FLOAT, [*"-+.0123456789"]),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
