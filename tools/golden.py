"""Run every command on the bundled sample and on Adult, and record or compare the JSON results.

    python tools/golden.py record FOLDER     before a change
    python tools/golden.py compare FOLDER    after it: exit code 1 and the first differences

Times, paths, digests and sentences are left out, so that changed wording is not a difference. The rows of a
release are compared by a digest of its sorted lines. SHOAL_DATA names the folder with `adult/adult.csv`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))
SAMPLE = ROOT / "src" / "shoal" / "data"
UNCOMPARED = {
    "seconds",
    "output",
    "recipe",
    "codebook",
    "report",
    "notes",
    "message",
    "advice",
    "plots",
    "reasons",
}
ALGORITHMS = (
    "auto",
    "contour",
    "ola",
    "samarati",
    "incognito",
    "datafly",
    "exhaustive",
    "all-minimal",
    "tds",
    "bottom-up",
    "mondrian",
    "mondrian:relaxed=true",
    "greedy-cuts",
    "mu-argus",
    "anatomy",
    "auto:refine=true",
    "auto:cells=true",
)
METRICS = (
    "discernibility",
    "discernibility-star",
    "coverage",
    "coverage:aggregate=geometric",
    "precision",
    "height",
    "class-size",
    "non-uniform-entropy",
)
MODELS = (
    "k-anonymity:k=10",
    "distinct-l-diversity:l=3",
    "entropy-l-diversity:l=2",
    "recursive-cl-diversity:c=3,l=2",
    "t-closeness:t=0.3",
    "alpha-k-anonymity:alpha=0.5,k=5",
    "average-risk:risk=0.01",
    "sample-uniqueness:share=0.01",
    "basic-beta-likeness:beta=2",
    "enhanced-beta-likeness:beta=2",
    "delta-disclosure:delta=2",
)


def cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield a name and the arguments of each command."""
    sample, policy = str(SAMPLE / "admissions.csv"), str(SAMPLE / "policy.yaml")
    yield from _of_table("sample", sample, policy, folder)
    yield "list", ["list"]
    yield "policy-schema", ["policy-schema"]
    yield "init sample", ["init", sample]
    yield "hierarchy", ["hierarchy", "check", sample, "--policy", policy]
    if (DATA / "adult" / "adult.csv").exists():
        adult = str(DATA / "adult" / "adult.csv")
        yield "init adult", ["init", adult]
        yield from _of_table("adult", adult, str(_adult_policy(folder)), folder)


def _adult_policy(folder: Path) -> Path:
    names = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
    columns: dict[str, Any] = {
        name: {
            "role": "quasi-identifier",
            "hierarchy": {"csv": str(DATA / "adult" / "hierarchies-arx" / f"{name}.csv")},
        }
        for name in names
    }
    columns |= {"salary-class": {"role": "sensitive"}, "hours-per-week": {"role": "other"}}
    written = {
        "columns": columns,
        "models": [{"k-anonymity": {"k": 5}}],
        "suppression_limit": "5%",
        "label": "salary-class",
    }
    path = folder / "adult.yaml"
    path.write_text(yaml.safe_dump(written))
    return path


def _of_table(name: str, data: str, policy: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    with_policy = [data, "--policy", policy]
    choices = (
        [["--algorithm", algorithm] for algorithm in ALGORITHMS]
        + [["--metric", metric] for metric in METRICS]
        + [["--model", "k-anonymity:k=5", "--model", model] for model in MODELS]
        + [["--suppression-limit", limit] for limit in ("0", "1%", "100")]
        + [["--algorithm", name, "--metric", "discernibility"] for name in ("greedy-cuts", "k-optimize")]
        + [["--algorithm", "anatomy", "--model", "distinct-l-diversity:l=2"]]
    )
    for number, choice in enumerate(choices):
        output = str(folder / f"{name}-{number}.csv")
        title = " ".join(argument for argument in choice if not argument.startswith("--"))
        yield (
            f"{name} anonymize {title}",
            ["anonymize", *with_policy, *choice, "--output", output, "--seconds", "60"],
        )
    first = str(folder / f"{name}-0.csv")
    recipe = f"{first}.private/recipe.json"
    yield f"{name} verify", ["verify", first, "--policy", policy, "--recipe", recipe, "--reference", data]
    yield f"{name} apply", ["apply", recipe, data, "--output", str(folder / f"{name}-applied.csv")]
    yield f"{name} measure", ["measure", *with_policy]
    yield f"{name} risk", ["risk", *with_policy]
    yield f"{name} risk release", ["risk", *with_policy, "--release", first]
    yield f"{name} utility", ["utility", *with_policy, "--release", first]
    yield f"{name} attack", ["attack", first, "--known", data, "--recipe", recipe, "--on", "age,sex"]
    yield (
        f"{name} compare",
        ["compare", *with_policy, "--k", "3,5", "--output", str(folder / f"{name}-compared.json")],
    )
    profile = str(folder / f"{name}.profile")
    yield f"{name} profile", ["profile", *with_policy, "--output", profile]
    for request in (["--k", "10", "--suppression-limit", "100"], ["--k", "50", "--suppression-limit", "0"]):
        yield f"{name} negotiate {request[1]}", ["negotiate", profile, *request]
    for question in range(1, 13):
        for options in ([], ["--k", "3"], ["--suppression-limit", "0.1"]):
            command = ["diagnose", data, "--question", str(question), *options, "--seconds", "60"]
            yield f"{name} diagnose {question} {' '.join(options[1:])}", command


def comparable(value: Any) -> Any:
    """Remove what may differ between two runs, and sentences."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in UNCOMPARED}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return "..." if isinstance(value, str) and (" " in value or "/" in value) else value


def run(folder: Path) -> dict[str, Any]:
    """Run every case, and return the comparable results."""
    results = {}
    for name, arguments in cases(folder):
        command = [sys.executable, "-m", "shoal", *arguments, "--json"]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            result: Any = comparable(json.loads(process.stdout))
        except ValueError:
            result = {"error": "no JSON"}
        output = arguments[arguments.index("--output") + 1] if "--output" in arguments else ""
        if output.endswith(".csv") and Path(output).exists():
            lines = sorted(Path(output).read_bytes().splitlines())
            result["digest"] = hashlib.sha256(b"\n".join(lines)).hexdigest()
        results[name] = {"exit": process.returncode, "result": result}
        sys.stderr.write(f"{name}: exit {process.returncode}\n")
    return results


def differences(before: Any, after: Any, where: str) -> Iterator[str]:
    """Yield the differences between two results, with their paths."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}, key=str):
            yield from differences(before.get(key, "absent"), after.get(key, "absent"), f"{where} > {key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{where} > {number}")
    elif before != after:
        yield f"{where}: {str(before)[:80]} -> {str(after)[:80]}"


def main() -> int:
    """Record or compare; return the exit code."""
    task, folder_path = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        results = run(Path(folder))
    results_file = folder_path / "golden.json"
    if task == "record":
        folder_path.mkdir(parents=True, exist_ok=True)
        results_file.write_text(json.dumps(results, indent=1, sort_keys=True))
        return 0
    found_differences = list(
        differences(json.loads(results_file.read_text()), json.loads(json.dumps(results)), "results")
    )
    sys.stdout.write("\n".join(found_differences[:60] or ["no differences"]) + "\n")
    return 1 if found_differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
