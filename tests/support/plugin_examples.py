"""What tests must know about a plug-in that the oracle does not know: a file of its own for each.

The file of `largest-class` is `tests/plugins/examples/largest_class.py`.

- A metric has `loss(rows, classes, refused)`: classes and refused classes are lists of row numbers.
- A model has `OPTIONS`, a Hypothesis strategy for each option, and `refuses(options, rows, extra)`: whether a
  class of these row numbers is suppressed. `STRENGTH` is optional: the option that `nearest` relaxes, and a
  step that makes it stronger. `extra` holds `columns` {name: sensitive value of each row}, `trees` {name:
  {value: labels from level 0}}, `units` {name: unit of each row} and `population` (rows, or None).
- An engine has `prepare(people, folder)`: it stores an Arrow table in a working folder and returns its name.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "plugins" / "examples"


@cache
def example(name: str) -> ModuleType | None:
    """Return the file of a plug-in, or None if it has none."""
    path = FOLDER / f"{name.replace('-', '_')}.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
