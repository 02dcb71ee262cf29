"""Recovery: the next command on a release completes or undoes an interrupted run.

A run may be interrupted at any moment, even by kill -9. If the release of the run was already published, its
private folder and the files next to it are moved into place. Otherwise the private folder of the old release
is restored. Then the temporary files are removed, except those of a running process.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from shoal.core.contracts import Engine
from shoal.core.targets import TableEngine, Target
from shoal.errors import Note, ShoalError
from shoal.files.locks import exclusive_lock, is_lock_left, is_stale, marks, temporary_files
from shoal.files.outputs import WHOLE, kind_of, private_folder
from shoal.files.work_folders import BESIDE_PREFIX, remove_stale
from shoal.policy.policy import Policy
from shoal.workflow.release.stage import Companions, Stage, read_audit, recorded_companions, remove, stage_of
from shoal.workflow.session import AUTO, choose_engine

RecoveryOutcome = Literal["completed", "undone"] | None
_PRIVATE = ".private"


def matches_release(private: Path, stage: Stage) -> bool:
    """Return whether a private folder belongs to the published release, by the digest in its audit."""
    try:
        audit = read_audit(private)
        return audit["release_sha256"] is not None and audit["release_sha256"] == stage.digest_in_place()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def stale_marks(target: Target) -> dict[Path, str]:
    """Return the marks of ended runs on an output (see `publish`), each with the kind of its output."""
    table = target.kind == "table"
    kinds = {mark: kind_of(mark) for mark in marks(target.path)}
    return {m: kind for m, kind in kinds.items() if kind in _kinds(table=table) and is_stale(m)}


def _kinds(*, table: bool) -> tuple[str, ...]:
    """Return the kinds of marks that a table, or a file or folder, can have."""
    return ("", "table") if table else ("", "file", "folder", WHOLE)


def recover_stale(target: Target, engine: Engine) -> RecoveryOutcome:
    """Complete or undo interrupted runs on an output; the caller must hold the exclusive lock."""
    outcome: RecoveryOutcome = None
    for mark, kind in stale_marks(target).items():
        if kind == WHOLE:
            remove_temporaries(target.path, mark)
        else:
            recorded = replace(target, kind=kind) if kind in ("file", "folder") else target  # type: ignore[arg-type]
            outcome = recover_stage(stage_of(recorded, mark, engine)) or outcome
    return outcome


def recover_stage(stage: Stage) -> RecoveryOutcome:
    """Complete or undo the publication of a run, and remove its temporary files."""
    outcome = complete_or_undo(stage)
    remove_temporaries(stage.target.path, stage.mark)
    return outcome


def complete_or_undo(stage: Stage) -> RecoveryOutcome:
    """Complete or undo the publication of a run; after an error, the next command tries again."""
    output, mark = stage.target.path, stage.mark
    home, waiting, replaced = private_folder(output), Path(f"{mark}.private"), Path(f"{mark}.replaced")
    outcome: RecoveryOutcome = None
    stage.recover()
    if waiting.exists() and not os.path.lexists(home):
        if matches_release(waiting, stage):
            waiting.rename(home)
            outcome = "completed"
        elif replaced.exists():
            replaced.rename(home)
            outcome = "undone"
    if unpack(home, recorded_companions(output)):
        outcome = outcome or ("undone" if waiting.exists() else "completed")
    return outcome


def pack(home: Path, companions: Companions) -> None:
    """Move the files next to a release into its private folder."""
    for name, path in companions.items():
        if path.exists():
            path.replace(home / name)


def unpack(home: Path, companions: Companions) -> bool:
    """Move files from the private folder to their paths next to the release; return whether there were any.

    A file whose target path exists belongs to the user and is not moved.
    """
    names = [name for name, path in companions.items() if not os.path.lexists(path)]
    waiting = {home / name: companions[name] for name in names if (home / name).exists()}
    for source, path in waiting.items():
        source.replace(path)
    return bool(waiting)


def remove_temporaries(output: Path, mark: Path) -> None:
    """Remove the temporary files of a run. The mark is removed last, because it identifies the others."""
    for path in temporary_files(output):
        if path.name.startswith(mark.name) and path != mark:
            remove(path)
    if not any(path.name.startswith(mark.name) and path != mark for path in temporary_files(output)):
        remove(mark)


def recover(release: Any, engine: Engine) -> None:
    """Complete or undo interrupted runs on a release that is about to be read, and warn about it.

    If the folder of the release is read-only, the warning says so and nothing is changed.
    """
    if not isinstance(release, str | Path):
        return
    target = Target(str(release), "file")
    if isinstance(engine, TableEngine):
        try:
            target = engine.target(str(release))
        except ShoalError:  # the caller gets the same error when it reads the release
            return
    _recover(target, engine)


def load_policy(policy: Any, engine: str | Engine = AUTO) -> Policy:
    """Load a policy; if it is in the private folder of a release, recover that release first."""
    if _release_of(policy) is not None:
        chosen = choose_engine(engine, policy)
        try:
            recover_recipe(policy, chosen)
        finally:
            if chosen is not engine:
                chosen.close()
    return Policy.load(policy)


def recover_recipe(recipe: Any, engine: Engine) -> None:
    """Recover the release that a recipe or a private folder belongs to, like `recover`."""
    release = _release_of(recipe)
    if release is None:
        return
    _recover(Target(str(release), "file"), engine)
    if isinstance(engine, TableEngine) and release.parent.resolve() == Path.cwd():
        table = Target(release.name, "table")
        if str(table.path) == release.name:
            _recover(table, engine)


def _release_of(file: Any) -> Path | None:
    """Return the release that a private folder, or a file in one, belongs to; None for other paths."""
    if not isinstance(file, str | Path):
        return None
    folder = Path(file) if str(file).endswith(_PRIVATE) else Path(file).parent
    name = folder.name.removesuffix(_PRIVATE)
    return folder.with_name(name) if name and folder.name.endswith(_PRIVATE) else None


def _recover(target: Target, engine: Engine) -> None:
    output = target.path
    remove_stale(output.absolute().parent, BESIDE_PREFIX)
    marks_left = [mark for mark in marks(output) if kind_of(mark) in _kinds(table=target.kind == "table")]
    if not marks_left and not is_lock_left(output):
        return
    try:
        with exclusive_lock(output):  # wait for a run that is publishing
            outcome = recover_stale(target, engine)
    except OSError as error:
        warnings.warn(_unsettled(target, f"{os.strerror(error.errno or 0)}."), Note, stacklevel=2)
        return
    except ShoalError as error:
        warnings.warn(_unsettled(target, str(error)), Note, stacklevel=2)
        return
    if outcome is not None:
        warnings.warn(_OUTCOMES[outcome].format(repr(target.name)), Note, stacklevel=2)
    elif any(mark.exists() and not os.access(mark, os.R_OK) for mark in marks_left):
        warnings.warn(_OTHERS.format(repr(target.name)), Note, stacklevel=2)


_OUTCOMES = {
    "completed": "A run that released {} was interrupted at its end. It is complete now.",
    "undone": "A run that was to replace {} was interrupted. The release before it is complete again.",
}
_OTHERS = (
    "Another user's run on {} is under way, or was interrupted. If it was, the release may lack its private "
    "folder or its codebook: let that user run shoal verify on it, which completes or undoes the run."
)


def _unsettled(target: Target, why: str) -> str:
    return (
        f"A run on {target.name!r} was interrupted, and what it left cannot be completed or undone: {why} "
        "The release may lack its private folder or its codebook. Run this command again where the folder of "
        "the release can be written."
    )
