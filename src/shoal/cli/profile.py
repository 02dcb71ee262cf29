"""The command that tabulates a lattice for negotiation."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.messages import progress_bar, stopped
from shoal.cli.parsing import check_plots, plot_summary, read_changes, read_levels, read_policy
from shoal.document.document import Fact
from shoal.document.terminal import print_json, say, show
from shoal.errors import UsageError, interruptible

_OutputOption = Annotated[Path, typer.Option("--output", "-o", help="The file for the profile.")]
ShareOption = Annotated[
    str | None, typer.Option(help="Tabulate only the best nodes: this share, such as `10%` or `0.1`.")
]
_SecondsOption = Annotated[
    float | None, typer.Option(help="Tabulate the best nodes first, for this many seconds.")
]
ScoreOption = Annotated[
    str,
    typer.Option(help="How nodes are ranked: `weighted-log`, `sizes`, `importances` or `products`."),
]
ByOption = Annotated[
    str,
    typer.Option(
        "--by",
        help="Rank the nodes within each `height` (the share of each is rounded up; with `--seconds` heights "
        "are taken in turn), or over the whole `lattice`.",
    ),
]
ExtendOption = Annotated[
    bool,
    typer.Option("--extend", help="Continue the profile at `--output`, which is replaced."),
]
StudyOption = Annotated[
    bool,
    typer.Option(
        "--study",
        help="Show suppression by height, k and columns, grouping power, and what partial profiles answer, "
        "for each score.",
    ),
]
NodeOption = Annotated[
    str | None,
    typer.Option(
        help="Show the distribution of class sizes (and distinct sensitive values) at this node, such as "
        "`age=1,sex=0`; other columns are at level 0.",
    ),
]
PlotsOption = Annotated[
    Path | None,
    typer.Option(
        help="A folder for the plots of the study, or of the node, PNG and SVG; files of the same names are "
        "replaced."
    ),
]


def profile(
    data: options.Data,
    policy: options.PolicyFile,
    output: _OutputOption,
    reading: options.TableReading,
    display: options.Display,
    share: ShareOption = None,
    seconds: _SecondsOption = None,
    score: ScoreOption = "weighted-log",
    by: ByOption = "height",
    extend: ExtendOption = False,
    study: StudyOption = False,
    node: NodeOption = None,
    plots: PlotsOption = None,
    model: options.Models = None,
    suppression_limit: options.SuppressionLimitOption = None,
    force: options.Force = False,
) -> None:
    """Tabulate how many records each k and l, alone and together, suppresses at every node."""
    from shoal.document.figures import save
    from shoal.workflow.profile.profile import Profile
    from shoal.workflow.profile.profile import profile as run
    from shoal.workflow.profile.study import study as study_of

    clock = _Clock()
    with display.reporting():
        if extend and not output.exists():
            raise UsageError(
                f"There is no profile {str(output)!r} to extend. Leave out --extend to make one."
            )
        loaded_policy = read_policy(policy, read_changes(model, suppression_limit), reading.engine)
        _check_output(output, data, loaded_policy, force=force or extend)
        check_plots(plots)
        levels = None if node is None else read_levels(node)
        earlier_profile = Profile.load(output) if extend else None
        try:
            with interruptible(), progress_bar() as bar:
                table_profile = run(
                    data,
                    loaded_policy,
                    share=share,
                    seconds=seconds,
                    score=score,
                    by=by,
                    extend=earlier_profile,
                    progress=clock.around(bar),
                    **reading.options(),
                )
        except KeyboardInterrupt:
            state = f"{str(output)!r} was not changed." if extend else "Nothing was written."
            raise stopped(
                f"Stopped before any node was tabulated. {state}", as_json=display.as_json
            ) from None
        at_node = None if levels is None else table_profile.distribution(levels)  # before saving
        table_profile.save(output, force=force or extend)
        studied = not table_profile.stopped and (study or (plots and node is None))
        table_study = study_of(table_profile, by=by) if studied else None
        shown = [part.document() for part in (table_study, at_node) if part]
        plot_files = (
            save([figure for part in shown for figure in part.figures], plots) if shown and plots else []
        )
    result = _result(table_profile, output, clock.seconds)
    if display.as_json:
        print_json(
            result
            | {
                "plots": [str(path) for path in plot_files],
                "study": table_study.to_dict() if table_study else None,
                "distribution": at_node.to_dict() if at_node else None,
            }
        )
    else:
        files = ("--data", str(data), "--policy", str(policy))
        _show(table_profile, result, plot_summary(plots, plot_files), files)
        for document in shown if study or at_node else ():
            say("")
            show(document)
    if table_profile.stopped:
        progress = f"{len(table_profile.numbers):,} of {clock.total or table_profile.lattice.size:,} nodes"
        message = f"{progress} are tabulated in {str(output)!r}. The same command with --extend continues."
        say(f"Stopped: {message}", stderr=True)
        raise typer.Exit(130)


def _check_output(output: Path, data: Path, policy: Any, *, force: bool) -> None:
    """Refuse to replace the inputs of the profile or, without `force`, an existing file."""
    from shoal.workflow.profile.file import check_target

    check_target(output, force=force, inputs={data: "the input", **policy.read_files})


def _result(table_profile: Any, output: Path, seconds: dict[str, float]) -> dict[str, Any]:
    """Return a summary of what was tabulated, and where it is stored."""
    return {
        "records": table_profile.records,
        "combinations": table_profile.combinations,
        "columns": dict(zip(table_profile.lattice.columns, table_profile.lattice.heights, strict=True)),
        "sensitive": list(table_profile.sensitive),
        "tabulated": list(table_profile.tabulated),
        "unanswered": list(table_profile.unanswered),
        "lattice_size": table_profile.lattice.size,
        "nodes": len(table_profile.numbers),
        "complete": table_profile.complete,
        "stopped": table_profile.stopped,
        "seconds": seconds,
        "bytes": output.stat().st_size,
        "output": str(output),
    }


def _show(profile: Any, result: dict[str, Any], plots: str | None, files: Sequence[str]) -> None:
    rows = {
        "seconds": ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in result["seconds"].items()),
        "profile": f"{result['output']} ({_size(result['bytes'])}, private: keep it)",
    }
    if not result["complete"]:
        rows["more nodes"] = "--extend tabulates more"
    if plots:
        rows["plots"] = plots
    rows["next"] = shlex.join(["shoal", "negotiate", result["output"], *files])
    document = profile.document()
    facts = [*document.facts, *(Fact(label, label, value) for label, value in rows.items())]
    show(replace(document, facts=facts))


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number / 1e3:,.1f} kB"


class _Clock:
    """Measures the time of each phase from the progress reports, and stores the total number of nodes."""

    def __init__(self) -> None:
        self.total: int | None = None
        self._phase = ""
        self._spent: dict[str, float] = {}
        self._last = time.perf_counter()

    def around(self, bar: Any) -> Any:
        """Return a progress callback that measures time and then calls `bar`."""

        def tell(phase: str, done: int, total: int | None) -> None:
            self._record_time()
            self._phase = phase
            self.total = total or self.total if phase == "tabulate" else self.total
            bar(phase, done, total)

        return tell

    def _record_time(self) -> None:
        now = time.perf_counter()
        if self._phase:
            self._spent[self._phase] = self._spent.get(self._phase, 0.0) + now - self._last
        self._last = now

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each phase. The first access ends the last phase."""
        if self._phase:
            self._record_time()
            self._phase = ""
        return dict(self._spent)
