"""The section of a report on how to reproduce it: the commands, and the versions."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.core.markup import Html, table, tag
from shoal.core.targets import Target
from shoal.outputs import REPORT, private_folder
from shoal.recipe import packages

if TYPE_CHECKING:
    from shoal.release import Release


def again(release: Release) -> Iterator[Html]:
    """Tell how to recode, count and search again, and with which versions."""
    if release.output is None:
        yield tag("p", "With the same table and policy, in Python:")
        node = f", node={release.start!r}" if release.start else ""
        yield _code(f"release = shoal.anonymize(table, policy{node})\nshoal.verify(release.table, policy)")
    else:
        yield from _commands(release.output)
    if release.apart:
        yield tag("p", "Which record goes to which group is left to chance, each time anew.")
    rows = [*packages().items(), ("Python", platform.python_version())]
    yield table("Versions", ("Package", "Version"), rows, numbers=(1,))


def name_of(release: Path | str) -> str:
    """Return a release's own name, without the folder."""
    return release.name if isinstance(release, Path) else release


def _commands(release: Path | str) -> Iterator[Html]:
    output = name_of(release)
    home = private_folder(release if isinstance(release, Path) else Target(release, "table").path)
    words = "In the folder of the release, where DATA stands for the table and POLICY.yaml for the policy:"
    if not isinstance(release, Path):
        words = (
            "In the folder that holds the private one, with the --engine of the table, where DATA stands for "
            "the table and POLICY.yaml for the policy:"
        )
    yield tag("p", words)
    quoted, recipe = shlex.quote(output), shlex.quote(f"{home.name}/recipe.json")
    again, anew = shlex.quote(f"again-{output}"), shlex.quote(f"new-{output}")
    yield _code(
        "# recode the same table, or a new one, in the same way\n"
        f"shoal apply {recipe} DATA --output {again}\n\n"
        "# count the release afresh\n"
        f"shoal verify {quoted} --policy POLICY.yaml --recipe {recipe}\n\n"
        "# search anew\n"
        f"shoal anonymize DATA --policy POLICY.yaml --output {anew} --report"
    )
    told = (
        "recipe.json holds the policy, the recoding and a keyed fingerprint of the input, whose key is not "
        "shown here; audit.json holds the SHA-256 of the release and what was counted. Both are beside this "
        f"file, {REPORT}, and as private. Rows come in another order each time."
    )
    yield tag("p", told)


def _code(written: str) -> Html:
    return tag("pre", tag("code", written))
