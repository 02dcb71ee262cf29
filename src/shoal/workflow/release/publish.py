"""Publishing: a release is written next to its target, read back and checked, and only then published.

Each run has a mark: a file `.NAME.<hex>.tmp`, which the run locks until it ends. The names of its temporary
files begin with the name of the mark. A lock on the target ensures that only one run at a time starts or
commits. A commit performs these steps:

1. move the files next to the old release into its private folder, and rename that folder;
2. publish the release by a single rename or link;
3. rename its private folder to its final name; the audit in it contains the SHA-256 of the release;
4. move the files that belong next to the release (codebook, second table) out of the private folder.

So a release is never next to the recipe, codebook or second table of another release. If a run is
interrupted, the next command on the target recovers: see `shoal.workflow.release.recovery`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.core.contracts import Engine
from shoal.core.targets import Target
from shoal.errors import OutputError, ShoalError
from shoal.files.locks import exclusive_lock, lock_mark, new_mark
from shoal.files.outputs import (
    CERTIFICATE,
    POLICY,
    REPORT,
    already_exists,
    appeared_meanwhile,
    cannot_write,
    check_kind,
    check_place,
    folder_missing,
    private_folder,
    sync_folder,
    write_private,
)
from shoal.files.signals import commit
from shoal.workflow.release.recovery import (
    complete_or_undo,
    matches_release,
    pack,
    recover_stage,
    recover_stale,
    remove_temporaries,
    unpack,
)
from shoal.workflow.release.stage import (
    CODEBOOK,
    SENSITIVE,
    Companions,
    Stage,
    check_no_companion,
    codebook_path,
    companions,
    owned_companions,
    read_audit,
    sha256,
    stage_of,
    sync,
)

RECIPE = "recipe.json"
REPLACED = (RECIPE, "audit.json", REPORT, CERTIFICATE, "mapping")  # files of a release, except the policy
WRITTEN_POLICY = "policy_sha256"  # in an audit: the digest of a policy that shoal wrote


def own_files(output: Path) -> list[Path]:
    """Return the paths of the files that a release may have, except the policy and the second table."""
    folder = private_folder(output)
    return [output, codebook_path(output), *(folder / name for name in REPLACED)]


def check_waiting_names(home: Path) -> None:
    """Raise if the user has a file in the private folder with a name that a commit needs."""
    for path in home.glob("*"):
        if path.name == CODEBOOK or path.name.startswith(f"{SENSITIVE}."):
            raise OutputError(
                f"{str(path)!r} was not written by shoal and would be replaced. Move it away first."
            )


def check_private_inputs(home: Path, table: Path | None, files: Mapping[Path, str], *, guessed: bool) -> None:
    """Raise if the private folder to be replaced contains an input, unless that file is kept.

    With `guessed`, the run writes a policy. Then also raise if the user has edited the policy in the folder.
    """
    inside = home.resolve()
    if table is not None and table.resolve().is_relative_to(inside):
        raise OutputError(
            f"{str(table)!r} is the input and lies in the private folder of the output, which would be "
            "replaced. Move it away first."
        )
    for path, what in files.items():
        real = path.resolve()
        if real.is_relative_to(inside) and real.relative_to(inside).parts[:1] in {(n,) for n in REPLACED}:
            raise OutputError(f"{str(path)!r} is {what} and would be replaced. Move it away first.")
    policy = home / POLICY
    if guessed and policy.exists() and not _wrote(policy):
        raise OutputError(
            f"{str(policy)!r} was edited, and a guessed policy would replace it. Use it with --policy, or "
            "move it away."
        )


def carry_over(home: Path, waiting: Path, *, keep_policy: bool) -> None:
    """Link the user's files from a private folder into its replacement.

    A policy that shoal wrote for the old release is not linked unless `keep_policy` is set.
    """
    for path in sorted(home.iterdir()):
        dropped = path.name == POLICY and not keep_policy and _wrote(path)
        if path.name in REPLACED or dropped or os.path.lexists(waiting / path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, waiting / path.name, symlinks=True, copy_function=_link)
        else:
            _link(str(path), str(waiting / path.name))


def _wrote(policy: Path) -> bool:
    """Return whether a policy in a private folder is unchanged since shoal wrote it."""
    try:
        return bool(read_audit(policy.parent)[WRITTEN_POLICY] == sha256(policy))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except (NotImplementedError, OSError):  # a file system without links
        shutil.copy2(source, target, follow_symlinks=False)


_READABLE = 2_000  # the maximum number of hierarchy rows in a recipe that is indented


@dataclass(frozen=True)
class Draft:
    """A release that is not published yet, and its private folder."""

    stage: Stage
    force: bool
    beside: Companions
    keep_policy: bool = False  # this release uses the policy in the old private folder

    @property
    def output(self) -> Path:
        """The path of the release; for a table, the path from which the names of its files are derived."""
        return self.stage.target.path

    @property
    def mark(self) -> Path:
        """The prefix of all temporary files."""
        return self.stage.mark

    @property
    def private(self) -> Path:
        """The private folder before it is published."""
        return Path(f"{self.mark}.private")

    def commit(self, recipe: dict[str, Any], audit: dict[str, Any]) -> Path:
        """Publish the release and its private folder, both or neither; return the path of the recipe."""
        home = private_folder(self.output)
        try:
            waiting = [name for name in self.beside if (self.private / name).exists()]
            known = {
                "release_sha256": self.stage.digest(),
                "beside": {name: sha256(self.private / name) for name in waiting},
            }
            if (self.private / POLICY).exists():
                known[WRITTEN_POLICY] = sha256(self.private / POLICY)
            _dump(self.private / "recipe.json", recipe)
            _dump(self.private / "audit.json", audit | known)
            _sync_all(self.private)
            with exclusive_lock(self.output), commit():
                self._publish(home)
                sync_folder(self.output.parent)
        except OSError as error:
            raise cannot_write(self.output, error) from None
        return home / "recipe.json"

    def discard(self) -> None:
        """Remove the temporary files if the process ends before the commit."""
        remove_temporaries(self.output, self.mark)

    def _publish(self, home: Path) -> None:
        """Run the steps of the module docstring; after an error, `draft` completes or undoes them."""
        if self.force:
            if home.exists():
                carry_over(home, self.private, keep_policy=self.keep_policy)
                pack(home, owned_companions(self.output))
                home.rename(f"{self.mark}.replaced")
        else:
            for path in _parts(self.stage.target, self.beside):
                if os.path.lexists(path):
                    raise appeared_meanwhile(str(path))
        try:
            self.stage.publish(force=self.force)
        except (OSError, ShoalError) as error:
            if not self._is_in_place(error):
                raise
        try:
            self.private.rename(home)
            unpack(home, self.beside)
        except OSError as error:
            self._complete(home, error)

    def _is_in_place(self, error: OSError | ShoalError) -> bool:
        """Return whether the release was published despite an error, for example a lost connection."""
        try:
            return matches_release(self.private, self.stage)
        except ShoalError:
            why = str(error) if isinstance(error, ShoalError) else f"{os.strerror(error.errno or 0)}."
            raise OutputError(
                f"{why} It is not known whether {self.stage.target.name!r} is in place. Run shoal verify on "
                "it, which completes or undoes this."
            ) from None

    def _complete(self, home: Path, error: OSError) -> None:
        """Complete a published release. If that fails, withdraw it, unless it replaced another release."""
        try:
            complete_or_undo(self.stage)
        except (OSError, ShoalError):
            if not self.force and self._undo(home):
                raise error from None
            raise _incomplete(self.stage.target.name, error) from None

    def _undo(self, home: Path) -> bool:
        """Withdraw a new release and its private folder; return whether this succeeded."""
        try:
            if home.exists():
                pack(home, self.beside)
                home.rename(self.private)
            self.stage.undo()
        except (OSError, ShoalError):
            return False
        return True


@contextmanager
def draft(
    target: Target, engine: Engine, *, force: bool, beside: Collection[str] = (), keep_policy: bool = False
) -> Iterator[Draft]:
    """Yield a draft to write to; its temporary files are removed unless it is committed.

    `beside` names the files in the private folder that are to be moved next to the release. With
    `keep_policy`, the policy in the old private folder is kept even if shoal wrote it.
    """
    output = target.path
    if target.kind != "table":
        check_place(output, folder=target.kind == "folder")
    begun = Draft(stage_of(target, new_mark(output), engine), force, companions(output, beside), keep_policy)
    lock, ready = None, False
    try:
        with exclusive_lock(output):
            with suppress(OSError):
                recover_stale(target, engine)
            if not force and begun.stage.exists():
                raise already_exists(target.name)
            _check_free(target, begun.beside, force=force)
            lock = lock_mark(begun.mark, target.kind)
            begun.private.mkdir(mode=0o700)
        ready = True
        yield begun
    except OSError as error:
        if ready and error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG):
            raise  # the error may be about the input
        raise cannot_write(output, error) from None
    except ShoalError:
        if not output.parent.is_dir():  # the error is about a temporary file
            raise folder_missing(output.parent) from None
        raise
    finally:
        with suppress(OSError, ShoalError), exclusive_lock(output):
            if lock is not None:
                os.close(lock)
            recover_stage(begun.stage)


def _parts(target: Target, beside: Companions) -> list[Path]:
    release = [] if target.kind == "table" else [target.path]
    return [*release, private_folder(target.path), *beside.values()]


def _check_free(target: Target, beside: Companions, *, force: bool) -> None:
    if target.kind != "table":
        check_no_companion(target.path)
    for path in _parts(target, beside):
        check_kind(path)
        if path.exists() and not force:
            raise already_exists(str(path))
    home = private_folder(target.path)
    check_waiting_names(home)
    others = home.exists() and not (home / "audit.json").exists() and (home.is_file() or any(home.iterdir()))
    foreign = [home] if others else [path for path in beside.values() if path.is_dir()]
    if foreign:
        raise OutputError(f"{str(foreign[0])!r} was not written by shoal. Move it away first.")
    owned = owned_companions(target.path).values()
    for path in beside.values():
        if path.exists() and path not in owned:
            raise OutputError(
                f"{str(path)!r} is needed for a file of this release, but is not what the replaced release "
                "wrote there. Name another output, or move it away."
            )


def _incomplete(name: str, error: OSError) -> OutputError:
    why = os.strerror(error.errno) if error.errno else "the disk refused"
    return OutputError(
        f"{name!r} was released, but its private folder or its codebook cannot be put in place: {why}. Check "
        "the folder and run shoal verify on it, which completes the release."
    )


def _dump(path: Path, data: dict[str, Any]) -> None:
    # Indented for human readers, unless it is large.
    listed = sum(map(len, data.get("hierarchy_files", {}).values()))
    indent = None if data.get("regions") or listed > _READABLE else 2
    write_private(path, json.dumps(data, ensure_ascii=False, indent=indent))


def _sync_all(folder: Path) -> None:
    """Write the contents of a folder to disk, so that they survive a power cut."""
    for path in folder.rglob("*"):
        if path.is_file():
            sync(path)
        else:
            sync_folder(path)
    sync_folder(folder)
