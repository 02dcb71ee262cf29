"""The effect of a release on each column, shown before it is written."""

from __future__ import annotations

from shoal.web.pages import elements
from shoal.web.pages.tab import JobView, TabView
from shoal.web.workspace.preview import ReleasePreview
from shoal.wording import percent, plural


class PreviewCard:
    """A card that runs the search when it is added, and then shows the effect on each column."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        with elements.box("tight", data_part="preview"):
            elements.tag("h3", "What becomes of each column")
            self.body = elements.box("tight")
            self.job_view = JobView(tab, "preview", lambda _: self.draw_or_start())
        self.draw_or_start()

    def draw_or_start(self) -> None:
        """Show the preview, or start its job; a job that just ended may be of earlier settings."""
        preview = self.tab.workspace.preview
        if preview.result is not None:
            self.draw()
        elif self.job_view.job is None:
            self.job_view.start(preview.job())

    def draw(self) -> None:
        preview = self.tab.workspace.preview.result
        self.body.clear()
        if preview is not None:
            with self.body:
                self.show(preview)

    def show(self, preview: ReleasePreview) -> None:
        """Show each column in words, with the share of its information that is retained."""
        names, levels = self.tab.workspace.table.level_names, preview.levels
        rows, lost = [], {}
        for number, (column, retained) in enumerate(preview.retained_by_column.items()):
            becomes = names.name(column, levels[column]) if levels else "its own labels in each class"
            rows.append((column, becomes, percent(retained)))
            if retained <= 0:
                lost[number, 2] = "bad"
        elements.table(("Column", "Becomes", "Retained"), rows, (2,), classes="small", cell_classes=lost)
        share = percent(preview.suppressed / preview.records)
        elements.note(
            f"{percent(preview.retained)} of the information is retained. "
            f"{plural(preview.suppressed, 'record')} suppressed ({share}); the smallest of "
            f"{plural(preview.classes, 'class')} has {plural(preview.smallest_class, 'record')}."
        )
