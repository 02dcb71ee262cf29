"""What Spark refuses, in our words: its own may quote rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from shoal.errors import DataError, OutputError, ShoalError


def failures() -> tuple[type[Exception], ...]:
    """Return the errors that work in Spark ends with."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, Py4JNetworkError, pa.ArrowException, EOFError


def ours(error: Exception, path: Path | None, *, alive: bool) -> ShoalError:
    """Return our error for one of Spark's, whose session is still alive, or not."""
    text = str(error).lower()
    if "no space left" in text or "disk quota" in text:
        return OutputError("No space is left where Spark writes. Free some and run again.")
    if "outofmemory" in text or "out of memory" in text:
        return DataError("Spark ran out of memory. Raise memory_limit, or its executors' memory.")
    if not alive:
        return DataError("The connection to Spark was lost; nothing was released. Run again.")
    name = repr(str(path)) if path else "The table"
    message = (
        f"{name} cannot be read or worked on by Spark. Look whether it is whole and of the kind that "
        "its name tells, and whether all machines of Spark reach it; Spark's log says more."
    )
    return DataError(message)
