"""Uploads that are used once: a recipe to apply and a release to check. Both are untrusted."""

from __future__ import annotations

import secrets
from pathlib import Path

from shoal.core.progress import Progress
from shoal.files.limits import limited
from shoal.web.errors import Refused
from shoal.web.workspace.files import Upload
from shoal.web.workspace.workspaces import Workspaces, shown_as
from shoal.workflow.release.recipe import Recipe

MAX_RECIPE_BYTES = 64 << 20


def receive_recipe(workspaces: Workspaces, name: str) -> Upload:
    """Prepare to receive a recipe."""
    path = workspaces.get(name).folder / f"upload-{secrets.token_hex(6)}.json"
    return Upload(path, "recipe.json", min(MAX_RECIPE_BYTES, workspaces.upload_limit))


def read_recipe(path: Path) -> Recipe:
    """Read an uploaded recipe, and remove its file. Reject a recipe that names a population file."""
    try:
        with shown_as(path, "recipe.json"):
            recipe = Recipe.load(path)
    finally:
        path.unlink(missing_ok=True)
    if recipe.policy.population is not None:
        raise Refused(
            "The recipe names a file with a population, which the studio does not open. Use shoal apply.",
            "file",
        )
    return recipe


def apply_recipe(
    workspaces: Workspaces, name: str, path: Path, form: str, progress: Progress | None = None
) -> None:
    """Apply a recipe that was received to the table of a workspace."""
    recipe = read_recipe(path)
    workspace = workspaces.get(name)
    missing = set(workspace.table.loaded.names) ^ set(recipe.policy.columns)
    if missing:
        raise Refused("The recipe is for a table with other columns than the open one.", "file")
    workspace.release.apply(recipe, form, progress=progress)


def check_release(
    workspaces: Workspaces, name: str, upload: Upload, progress: Progress | None = None
) -> None:
    """Check a release that was received, within the limits of uploads."""
    with shown_as(upload.path, upload.name), limited(workspaces.limits):
        workspaces.get(name).check.run(upload.path, upload.name, progress=progress)
