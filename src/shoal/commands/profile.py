"""The command that tabulates a lattice for negotiation."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import (
    AsJson,
    Data,
    EngineName,
    Force,
    Limit,
    MemoryLimit,
    Models,
    PolicyFile,
    Reveal,
    SparkMaster,
)
from shoal.commands.plots import prepare_plots, where_drawn
from shoal.commands.reading import read_engine, read_policy
from shoal.commands.studies import show_study
from shoal.display import print_json, say, show_pairs
from shoal.errors import UsageError, interruptible


def profile(
    data: Data,
    policy: PolicyFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the profile goes.")],
    share: Annotated[
        str | None, typer.Option(help="Tabulate the best part of the lattice only, as `10%` or `0.1`.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Tabulate the best nodes first, for so many seconds.")
    ] = None,
    score: Annotated[
        str,
        typer.Option(help="What the best nodes are: `weighted-log`, `sizes`, `importances` or `products`."),
    ] = "weighted-log",
    extend: Annotated[
        bool,
        typer.Option("--extend", help="Go on from the profile at `--output`, which is replaced whole."),
    ] = False,
    study: Annotated[
        bool,
        typer.Option(
            "--study",
            help="Show suppression by height, k and columns, grouping power, and what partial profiles would "
            "answer.",
        ),
    ] = False,
    plots: Annotated[
        Path | None,
        typer.Option(
            help="A folder for the study's plots, PNG and SVG; those of the same names are replaced."
        ),
    ] = None,
    model: Models = None,
    suppression_limit: Limit = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Tabulate what every k and l suppresses at every node, to negotiate from."""
    from shoal.plots import save
    from shoal.profile import Profile
    from shoal.profile import profile as run
    from shoal.profiling.study_plots import study_plots
    from shoal.study import study as study_of

    clock = _Clock()
    with reporting(as_json, reveal):
        if extend and not output.exists():
            message = f"There is no profile {str(output)!r} to extend. Leave out --extend to make one."
            raise UsageError(message)
        wanted = read_policy(policy, model, suppression_limit, None, None)
        _check_output(output, data, policy, wanted, force=force or extend)
        prepare_plots(plots)
        begun = Profile.load(output) if extend else None
        try:
            with interruptible(), progress_bar() as bar:
                found = run(
                    data,
                    wanted,
                    share=share,
                    seconds=seconds,
                    score=score,
                    extend=begun,
                    engine=read_engine(engine, spark_master, memory_limit),
                    memory_limit=memory_limit,
                    progress=clock.around(bar),
                )
        except KeyboardInterrupt:
            held = f"{str(output)!r} is as it was." if extend else "Nothing was written."
            say(f"Stopped before a node was tabulated. {held}", stderr=True)
            raise typer.Exit(130) from None
        found.save(output, force=force or extend)
        told = None if found.stopped or not (study or plots) else study_of(found, score=score)
        drawn = save(study_plots(told), plots) if told and plots else []
    result = _result(found, output, clock.seconds)
    if as_json:
        print_json(
            result | {"plots": [str(path) for path in drawn], "study": told.to_dict() if told else None}
        )
    else:
        where = ("--data", str(data), "--policy", str(policy))
        _show(result, where_drawn(plots, drawn) if drawn else None, where)
        if told and study:
            show_study(told)
    if found.stopped:
        done = f"{len(found.numbers):,} of {clock.total or found.lattice.size:,} nodes"
        kept = f"{done} are tabulated in {str(output)!r}. The same command with --extend goes on."
        say(f"Stopped: {kept}", stderr=True)
        raise typer.Exit(130)


def _check_output(output: Path, data: Path, policy: Path, wanted: Any, *, force: bool) -> None:
    """Refuse to write over what the profile is made from, or, unless that is wanted, over another."""
    from shoal.profiling.file import check_target

    files = {path: f"the hierarchy of {name!r}" for name, path in wanted.files.items()}
    if wanted.population:
        files[wanted.population] = "the population"
    check_target(output, force=force, inputs={data: "the input", policy: "the policy", **files})


def _result(found: Any, output: Path, seconds: dict[str, float]) -> dict[str, Any]:
    """Return what was tabulated, and where it is."""
    return {
        "records": found.records,
        "combinations": found.combinations,
        "columns": dict(zip(found.lattice.columns, found.lattice.heights, strict=True)),
        "sensitive": list(found.sensitive),
        "lattice_size": found.lattice.size,
        "nodes": len(found.numbers),
        "complete": found.complete,
        "stopped": found.stopped,
        "seconds": seconds,
        "bytes": output.stat().st_size,
        "output": str(output),
    }


def _show(result: dict[str, Any], plots: str | None, where: Sequence[str]) -> None:
    """Show what was tabulated, and what to do next."""
    nodes = f"{result['nodes']:,} of {result['lattice_size']:,}"
    if not result["complete"]:
        nodes += f" ({result['nodes'] / result['lattice_size']:.1%}); --extend tabulates more"
    rows = {
        "records": f"{result['records']:,}",
        "combinations": f"{result['combinations']:,}",
        "nodes": nodes,
        "tabulated": ", ".join(["k", *[f"l of {name}" for name in result["sensitive"]]]),
        "seconds": ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in result["seconds"].items()),
        "profile": f"{result['output']} ({_size(result['bytes'])}, private: keep it)",
    }
    if plots:
        rows["plots"] = plots
    show_pairs(rows | {"next": shlex.join(["shoal", "negotiate", result["output"], *where])})


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number / 1e3:,.1f} kB"


class _Clock:
    """How long each phase took, as its progress tells, and how many nodes were wanted."""

    def __init__(self) -> None:
        self.total: int | None = None
        self._phase = ""
        self._spent: dict[str, float] = {}
        self._last = time.perf_counter()

    def around(self, bar: Any) -> Any:
        """Look at the clock whenever progress is told."""

        def tell(phase: str, done: int, total: int | None) -> None:
            self._look()
            self._phase = phase
            self.total = total or self.total if phase == "tabulate" else self.total
            bar(phase, done, total)

        return tell

    def _look(self) -> None:
        now = time.perf_counter()
        if self._phase:
            self._spent[self._phase] = self._spent.get(self._phase, 0.0) + now - self._last
        self._last = now

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by phase, up to now at the first look."""
        if self._phase:
            self._look()
            self._phase = ""
        return dict(self._spent)
