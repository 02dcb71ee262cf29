"""Apply a recipe to the open table, and check a release that was written elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.web.pages import elements
from shoal.web.pages.tab import JobView, TabView, receive_file
from shoal.web.workspace.files import UPLOAD_ENDINGS
from shoal.web.workspace.uploads import apply_recipe, check_release, receive_recipe


class UploadsCard:
    """Two uploads, with the progress of their jobs, and the verdict on a checked file."""

    def __init__(self, tab: TabView, form: Callable[[], str]) -> None:
        self.tab, self.form = tab, form
        self.name = tab.state.workspace
        limit, endings = tab.workspaces.upload_limit, ",".join(UPLOAD_ENDINGS)
        with elements.details("Apply a recipe, or check a release", "card", "stack", data_part="uploads"):
            elements.note(
                "A recipe recodes the open table like an earlier one, and replaces the release here. A "
                "release from elsewhere is checked against the models of this policy, and is not kept."
            )
            with elements.box("line"):
                elements.upload_button("Apply a recipe", self.receive_recipe, limit, "small", accept=".json")
                elements.upload_button(
                    "Check a release", self.receive_release, limit, "small", accept=endings
                )
            self.error = elements.error_line()
            self.apply_job = JobView(tab, "release", lambda _: tab.refresh())
            self.check_job = JobView(tab, "check", lambda _: self.draw())
            self.result = elements.box("tight")
        self.draw()

    def show_error(self, text: str | None) -> None:
        elements.set_error(self.error, text)

    async def receive_recipe(self, event: Any) -> None:
        workspaces, name, form = self.tab.workspaces, self.name, self.form()
        upload = await receive_file(self.show_error, lambda: receive_recipe(workspaces, name), event)
        if upload is not None:
            path = upload.path
            self.apply_job.start(lambda progress: apply_recipe(workspaces, name, path, form, progress))

    async def receive_release(self, event: Any) -> None:
        workspaces, name = self.tab.workspaces, self.name
        upload = await receive_file(
            self.show_error, lambda: workspaces.receive_upload(name, event.file.name), event
        )
        if upload is not None:
            self.check_job.start(lambda progress: check_release(workspaces, name, upload, progress))

    def draw(self) -> None:
        check = self.tab.workspace.check
        self.result.clear()
        if check.result is None:
            return
        with self.result:
            verdict = check.result.document().verdict
            if verdict is not None:
                elements.message(f"{check.name}: {verdict.text}", verdict.tone)
            rows = [(model.label, model.outcome) for model in check.result.models]
            elements.table(["Model", "Outcome"], rows)
