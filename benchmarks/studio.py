"""How fast does the studio respond, with a browser, with ten clients, and with large and wide tables?

Everything runs on this machine: the studio, started by its command, and Chromium. Writes the figures in
docs/studio.md. `--part NAME` runs one part and prints it.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import os
import random
import re
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from setting import adult, machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
browser: Any = importlib.import_module("browser")

PAGE = Path(__file__).resolve().parents[1] / "docs" / "studio.md"
BEGIN, END = "<!-- figures of the studio -->\n", "<!-- end of figures -->\n"
MOVES = 20  # of a dial in the browser
CLIENTS, REQUESTS = 10, 60  # clients, and requests of each
WORKSPACES, WORKSPACE_BYTES = 30, 20_000_000


@dataclass(frozen=True)
class Figure:
    """A measured value, and the target that it must stay below."""

    what: str
    value: float
    target: float
    unit: str

    @property
    def row(self) -> str:
        """The figure as a row of the page."""
        met = "yes" if self.value < self.target else "no"
        return f"| {self.what} | {self.value:,.3g} {self.unit} | {self.target:,.3g} {self.unit} | {met} |"


class Client:
    """A client of the studio's API with one workspace."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.workspace = http.post("/api/workspaces").json()["workspace"]

    def call(self, method: str, path: str, **options: Any) -> Any:
        """Send a request about the workspace, and return the response."""
        answer = self.http.request(method, f"/api/workspaces/{self.workspace}/{path}", **options)
        answer.raise_for_status()
        return answer.json()

    def work(self, path: str, each: Callable[[dict[str, Any]], object] = lambda _: None, **body: Any) -> None:
        """Run a job to its end; call `each` repeatedly with its state."""
        self.wait(self.call("POST", path, json=body), each)

    def wait(self, job: dict[str, Any], each: Callable[[dict[str, Any]], object] = lambda _: None) -> None:
        """Wait for the end of a job; call `each` repeatedly with its state."""
        while job["status"] in ("waiting", "running"):
            job = self.call("GET", f"jobs/{job['id']}", params={"wait": 0.2})
            each(job)
        if job["status"] != "done":
            raise SystemExit(f"A job failed: {job['error']}")

    def open(self, table: str, columns: Sequence[str]) -> None:
        """Open a table of the folder, and make some columns its only quasi-identifiers."""
        self.work("table", source="file", name=table)
        for row in self.call("GET", "columns"):
            role = "quasi-identifier" if row["column"] in columns else "other"
            self.call("PUT", "role", json={"column": row["column"], "role": role})


@contextmanager
def studio(folder: Path, *options: str) -> Iterator[tuple[str, Callable[[], Client]]]:
    """Start the studio; yield its one-time address, and a function that creates clients."""
    password = "measuring only"
    with browser.studio("--folder", str(folder), *options, password=password) as started:
        address = started().partition("/?")[0].rstrip("/")
        with httpx.Client(base_url=address, trust_env=False) as first:
            bearer = first.post("/api/session", json={"password": password}).json()["bearer"]
        clients: list[httpx.Client] = []

        def client() -> Client:
            headers = {"authorization": f"Bearer {bearer}"}
            clients.append(httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=600))
            return Client(clients[-1])

        try:
            yield address, client
        finally:
            for open_client in clients:
                open_client.close()


def signed_in(chromium: Any, address: str) -> Any:
    """Open a page of the studio, signed in."""
    page = browser.new_page(chromium, viewport={"width": 1440, "height": 900})
    page.goto(address)
    page.get_by_label("Password").fill("measuring only")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Choose a table").wait_for()
    return page


NINE = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
    "salary-class",
)  # fmt: skip
# Moves the dial, and measures the time until the answer and the last chart have changed.
_MOVE = """async ([k]) => {
  const answer = document.querySelector('.answer');
  const charts = document.querySelector('.charts');
  const begin = performance.now();
  let answered = 0, drawn = 0;
  const first = new MutationObserver(() => { answered ||= performance.now() - begin; });
  const last = new MutationObserver(() => { drawn = performance.now() - begin; });
  const watch = {childList: true, subtree: true, characterData: true, attributes: true};
  first.observe(answer, watch); last.observe(charts, watch);
  const input = document.querySelector('input[aria-label="At least k, slider"]');
  input.value = k;
  input.dispatchEvent(new Event('input', {bubbles: true}));
  const quiet = () => drawn && performance.now() - begin - drawn > 1000;
  while (!quiet() && performance.now() - begin < 20000) await new Promise((done) => setTimeout(done, 50));
  first.disconnect(); last.disconnect();
  return [answered, drawn];
}"""


def dials() -> list[Figure]:
    """Turn the dial for k on Adult with nine uploaded hierarchies."""
    files = sorted((adult() / "hierarchies-arx").glob("*.csv"))
    with studio(adult()) as (address, _), browser.chromium() as chromium:
        page = signed_in(chromium, address)
        page.get_by_role("combobox", name="File").select_option("adult.csv")
        page.get_by_role("button", name="Open", exact=True).click()
        page.get_by_role("radiogroup", name="Role of age").wait_for()
        for name in (*NINE, "hours-per-week"):
            role = "quasi-identifier" if name in NINE else "other"
            if browser.role_of(page, name) != role:
                browser.choose_role(page, name, role)
                page.wait_for_timeout(300)
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Upload hierarchies").click()
        chooser.value.set_files(files)
        page.get_by_title(re.compile("^Undo: (hierarchy of|several)")).wait_for()
        page.locator("nav button", has_text="Negotiate").click()
        page.locator("[data-answer]").wait_for()
        page.wait_for_timeout(3000)
        chance = random.Random(1)
        times = np.array([page.evaluate(_MOVE, [k]) for k in chance.sample(range(2, 100), MOVES)])
    print(times.round())
    assert (times > 0).all()
    answered, redrawn = np.percentile(times, 95, axis=0) / 1000
    return [
        Figure("A dial moves on Adult: the answer, p95", 1000 * answered, 100, "ms"),
        Figure("A dial moves on Adult: the last chart, p95", 1000 * redrawn, 500, "ms"),
    ]


def large_table(path: Path, records: int) -> Path:
    """Write a table of six quasi-identifiers."""
    chance = np.random.default_rng(1)
    columns = {
        "age": chance.integers(18, 90, records),
        "sex": chance.integers(0, 2, records),
        "region": chance.integers(0, 40, records),
        "income": chance.integers(0, 60, records),
        "household": chance.integers(1, 7, records),
        "occupation": chance.integers(0, 25, records),
    }
    import pyarrow as pa
    import pyarrow.csv

    pyarrow.csv.write_csv(pa.table(columns), path)
    return path


SIX = ("age", "sex", "region", "income", "household", "occupation")


def million() -> list[Figure]:
    """Tabulate a million rows, and record the progress."""
    with tempfile.TemporaryDirectory() as folder:
        large_table(Path(folder) / "million.csv", 1_000_000)
        with studio(Path(folder)) as (_, client):
            started = client()
            started.open("million.csv", SIX)
            reports: list[tuple[Any, Any]] = []
            process = studio_process()
            begin, before = time.perf_counter(), processor_seconds(process)
            started.work("profile", lambda job: reports.append((job["phase"], job["done"])))
            seconds, processor = time.perf_counter() - begin, processor_seconds(process) - before
    print(f"steps of the progress seen: {len(set(reports))}")
    return [
        Figure("A million rows are tabulated", seconds, 20, "s"),
        Figure("The same: processor time of the studio", processor, 20, "s"),
    ]


def answers(clients: Sequence[Client], requests: int) -> list[float]:
    """Let all clients turn their dials at the same time; return the seconds of each answer."""
    times: list[float] = []

    def turn(number: int, turning: Client) -> None:
        chance = random.Random(number)
        for _ in range(requests):
            begin = time.perf_counter()
            turning.call("POST", "negotiation", json={"k": chance.randint(2, 100)})
            times.append(time.perf_counter() - begin)
            time.sleep(0.1)  # a person turns a dial about ten times a second

    threads = [threading.Thread(target=turn, args=pair) for pair in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def ten_clients() -> list[Figure]:
    """Measure ten clients that turn dials, alone and while another user tabulates 1.5 million rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "adult.csv").write_bytes((adult() / "adult.csv").read_bytes())
        large_table(folder / "large.csv", 1_500_000)
        with studio(folder) as (_, client):
            clients = [client() for _ in range(CLIENTS)]
            for started in clients:
                started.open("adult.csv", NINE)
                started.work("profile")
            undisturbed = answers(clients, REQUESTS)
            other = client()
            other.open("large.csv", SIX)
            job = other.call("POST", "profile", json={})
            concurrent: list[float] = []
            while True:
                concurrent += answers(clients, 10)
                state = other.call("GET", f"jobs/{job['id']}")
                if state["status"] not in ("waiting", "running"):
                    break
    print(f"{len(concurrent)} answers while the other user tabulated")
    return [
        Figure(
            "Ten clients turn dials: an answer, p99", 1000 * float(np.percentile(undisturbed, 99)), 200, "ms"
        ),
        Figure(
            "The same while another user tabulates 1.5 million rows, p99",
            1000 * float(np.percentile(concurrent, 99)),
            200,
            "ms",
        ),
    ]


_ROLE = """async ([column, role]) => {
  const begin = performance.now();
  const row = document.querySelector(`tr[data-column="${column}"]`);
  let changed = 0;
  const watch = new MutationObserver(() => { changed = performance.now() - begin; });
  watch.observe(document.querySelector('.main') ?? document.body,
    {childList: true, subtree: true, characterData: true, attributes: true});
  row.querySelector(`input[value="${role}"]`).click();
  const quiet = () => changed && performance.now() - begin - changed > 1000;
  while (!quiet() && performance.now() - begin < 20000) await new Promise((done) => setTimeout(done, 50));
  watch.disconnect();
  return changed;
}"""


def wide() -> list[Figure]:
    """Change roles in a table of 300 columns; measure the time until the page no longer changes."""
    with tempfile.TemporaryDirectory() as folder:
        chance = random.Random(1)
        with (Path(folder) / "wide.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(f"c{number}" for number in range(300))
            writer.writerows([chance.randrange(9) for _ in range(300)] for _ in range(500))
        with studio(Path(folder)) as (address, _), browser.chromium() as chromium:
            page = signed_in(chromium, address)
            page.get_by_role("combobox", name="File").select_option("wide.csv")
            page.get_by_role("button", name="Open", exact=True).click()
            page.get_by_role("radiogroup", name="Role of c0", exact=True).wait_for()
            page.get_by_label(re.compile("^Role of all")).select_option("other")
            page.wait_for_timeout(3000)
            times = [
                page.evaluate(_ROLE, [f"c{10 * number}", role])
                for number in range(10)
                for role in ("sensitive", "quasi-identifier")
            ]
    assert all(times)
    return [Figure("A role changes among 300 columns, p95", float(np.percentile(times, 95)), 300, "ms")]


def studio_process() -> int:
    """Return the process of the studio that this benchmark started."""
    process_ids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    (process,) = [entry for entry in process_ids if _parent(entry) == os.getpid() and _is_studio(entry)]
    return process


def processor_seconds(process: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(process: int) -> int:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def workspaces() -> list[Figure]:
    """Open and delete 30 workspaces with an uploaded table of 20 MB each."""
    with tempfile.TemporaryDirectory() as name:
        table = large_table(Path(name) / "table.csv", WORKSPACE_BYTES // 15)
        content = table.read_bytes()[:WORKSPACE_BYTES].rpartition(b"\n")[0] + b"\n"
        before_temporary = set(os.listdir(tempfile.gettempdir()))
        with studio(Path(name)) as (_, client):
            process = studio_process()
            first = upload(client(), content)  # warms imports and compiled kernels
            first.http.delete(f"/api/workspaces/{first.workspace}")
            before = memory_of(process)
            for _ in range(WORKSPACES):
                uploading = upload(client(), content)
                uploading.http.delete(f"/api/workspaces/{uploading.workspace}")
            time.sleep(2)
            after = memory_of(process)
            private = [
                path
                for entry in set(os.listdir(tempfile.gettempdir())) - before_temporary
                if entry.startswith("shoal-studio-")
                for path in (Path(tempfile.gettempdir()) / entry).rglob("*")
                if path.is_file()
            ]
    return [
        Figure("30 workspaces of 20 MB opened and deleted: memory left", (after - before) / 1e6, 200, "MB"),
        Figure("The same: files left", len(private), 1, "files"),
    ]


def upload(uploading: Client, content: bytes) -> Client:
    """Upload a table, and tabulate two of its columns."""
    job = uploading.call("POST", "upload", content=content, headers={"x-file-name": "table.csv"})
    uploading.wait(job)
    uploading.work("diagnosis", columns=["age", "sex"])
    return uploading


def _parent(process: int) -> int | None:
    try:
        return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return None


def _is_studio(process: int) -> bool:
    return b"studio" in Path(f"/proc/{process}/cmdline").read_bytes()


PARTS = {"dials": dials, "million": million, "clients": ten_clients, "wide": wide, "workspaces": workspaces}


def section_of(rows: Sequence[str]) -> str:
    """Return the section with the figures."""
    today = datetime.now(UTC).date().isoformat()
    text = (
        f"Measured by `python benchmarks/studio.py` on {today}: {machine()}. The studio, the clients and "
        f"Chromium share the machine, whose load average was {os.getloadavg()[1]:.0f} at the end."
    )
    lines = [*textwrap.wrap(text, 120), "", "| what | measured | target | met |", "|---|--:|--:|---|", *rows]
    return "\n".join(["", *lines, "", ""])


def write_section(rows: Sequence[str]) -> None:
    """Replace the section with the figures in the page."""
    before, after = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + section_of(rows) + END + after.partition(END)[2], encoding="utf-8")


def main() -> None:
    """Measure one part, or all parts, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--rows", type=Path, help="keep the rows of parts here, and write figures from them")
    options = parser.parse_args()
    stored: dict[str, list[str]] = {}
    if options.rows and options.rows.exists():
        stored = json.loads(options.rows.read_text(encoding="utf-8"))
    for name in [options.part] if options.part else PARTS:
        stored[name] = [figure.row for figure in PARTS[name]()]
        print("\n".join(stored[name]), flush=True)
        if options.rows:
            options.rows.write_text(json.dumps(stored), encoding="utf-8")
    if not options.part or options.rows:
        write_section([row for name in PARTS for row in stored.get(name, [])])


if __name__ == "__main__":
    main()
