"""How accurate are the estimates of population uniqueness, and where does each model fail?

Populations with a known number of uniques are simulated, and samples of 1% to 50% are drawn without
replacement. Each model only gets the class sizes of the sample. Writes the tables of docs/uniqueness.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from setting import machine, write_page

from shoal.core.arrays import IntArray
from shoal.workflow.risk.uniqueness import UNIQUENESS_MODELS, Estimate, estimate

PERSONS = 200_000
SHARES = (0.01, 0.05, 0.1, 0.3, 0.5)
SAMPLES = 10
SEED = 12
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def main() -> None:
    """Measure, print the tables, and write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--persons", type=int, default=PERSONS)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[1] / "docs")
    arguments = parser.parse_args()
    text = "\n".join(_tables(arguments.persons, arguments.samples))
    page = arguments.docs / "uniqueness.md"
    before, _, after_figures = page.read_text(encoding="utf-8").partition(BEGIN)
    after = after_figures.partition(END)[2]
    write_page(page, f"{before}{BEGIN}\n{text}\n{END}{after}")
    print(text)


def _tables(persons: int, samples: int) -> Iterator[str]:
    yield (
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}; `python benchmarks/uniqueness.py`, {persons:,} persons, "
        f"{samples} samples for each line. Errors are means of |estimate - truth| / truth over the samples, "
        "with + where the estimates are too high on average and - where too low; a number in brackets is "
        "the number of samples for which the model had a solution, if not for all."
    )
    yield ""
    yield "| population | uniques | sampled | pitman | snb | zayatz | dankar | taken by the rule |"
    yield "|---|--:|--:|--:|--:|--:|--:|---|"
    random = np.random.default_rng(SEED)
    errors: dict[tuple[float, str], list[float]] = {}
    for name, people in POPULATIONS.items():
        labels = people(persons, random)
        truth = int((np.bincount(labels) == 1).sum())
        for share in SHARES:
            estimates = [_estimates(labels, share, random) for _ in range(samples)]
            cells = []
            for model in UNIQUENESS_MODELS:
                solved = [by_model[model].uniques for by_model in estimates]
                off = [uniques / truth - 1 for uniques in solved if uniques is not None]
                errors.setdefault((share, model), []).extend(map(abs, off))
                cells.append(_cell(off, samples))
            rule, pitman, snb, zayatz = cells
            models = sorted({by_model["dankar"].by for by_model in estimates})
            yield (
                f"| {name} | {truth:,} ({truth / persons:.1%}) | {share:.0%} | {pitman} | {snb} | {zayatz} | "
                f"{rule} | {', '.join(models)} |"
            )
    yield ""
    yield "Over all populations, the mean and the greatest error of samples that had a solution:"
    yield ""
    yield "| sampled | pitman | snb | zayatz | dankar |"
    yield "|--:|--:|--:|--:|--:|"
    for share in SHARES:
        of = {model: errors[share, model] for model in UNIQUENESS_MODELS}
        shown = (f"{np.mean(of[m]):.0%} ({max(of[m]):.0%})" for m in ("pitman", "snb", "zayatz", "dankar"))
        yield f"| {share:.0%} | {' | '.join(shown)} |"
    yield ""
    yield f"A million classes of {len(_million()[0]):,} different sizes, all four: {_seconds():.3f} s."


def _cell(errors: list[float], samples: int) -> str:
    """Format the mean absolute error, and whether estimates are too high or too low."""
    if not errors:
        return "none"
    some = f" ({len(errors)})" if len(errors) < samples else ""
    return f"{np.copysign(np.abs(errors).mean(), np.mean(errors)):+.0%}{some}"


def _estimates(labels: IntArray, share: float, random: np.random.Generator) -> dict[str, Estimate]:
    sampled = random.choice(labels, round(share * len(labels)), replace=False, shuffle=False)
    counts = np.bincount(sampled)
    sizes, classes = np.unique(counts[counts > 0], return_counts=True)
    return {model: estimate(sizes, classes, len(labels), model) for model in UNIQUENESS_MODELS}


def _million() -> tuple[IntArray, IntArray]:
    random = np.random.default_rng(SEED)
    return np.unique(random.zipf(1.8, 1_000_000).clip(max=1_000_000), return_counts=True)


def _seconds() -> float:
    sizes, classes = _million()
    start = time.perf_counter()
    for model in UNIQUENESS_MODELS:
        estimate(sizes, classes, 20 * int(sizes @ classes), model)
    return time.perf_counter() - start


def _restaurant(persons: int, random: np.random.Generator, alpha: float, theta: float) -> IntArray:
    """Assign persons to classes by Pitman's sampling scheme: a new class, or that of an earlier person."""
    labels: list[int] = []
    sizes: list[int] = []
    draws = iter(random.random(20 * persons).tolist())
    while len(labels) < persons:
        at = next(draws) * (theta + len(labels))
        if at < theta + alpha * len(sizes):
            labels.append(len(sizes))
            sizes.append(1)
            continue
        while True:
            joined = labels[int(next(draws) * len(labels))]
            if next(draws) * sizes[joined] >= alpha:
                break
        sizes[joined] += 1
        labels.append(joined)
    return np.array(labels)


def _weighted(weights: Callable[[np.random.Generator], object]) -> Callable[..., IntArray]:
    def people(persons: int, random: np.random.Generator) -> IntArray:
        chance = np.asarray(weights(random), dtype=np.float64)
        return random.choice(len(chance), persons, p=chance / chance.sum())

    return people


def _registry(persons: int, random: np.random.Generator) -> IntArray:
    """Generate persons with six columns, some of which depend on others."""
    age = random.binomial(100, random.beta(2, 2.5, persons))
    sex = random.integers(0, 2, persons)
    region = (random.zipf(1.5, persons) - 1) % 300
    status = (age > random.normal(30, 8, persons)).astype(np.int64) + (random.random(persons) < 0.2)
    school = np.clip(random.normal(8 + region % 3, 3, persons), 0, 15).astype(np.int64)
    origin = (random.zipf(2.2, persons) - 1) % 40
    key = ((((age * 2 + sex) * 300 + region) * 3 + status) * 16 + school) * 40 + origin
    labels: IntArray = np.unique(key, return_inverse=True)[1]
    return labels


POPULATIONS: dict[str, Callable[[int, np.random.Generator], IntArray]] = {
    "Pitman, alpha 0.6, theta 500": lambda persons, random: _restaurant(persons, random, 0.6, 500),
    "Pitman, alpha 0.2, theta 5000": lambda persons, random: _restaurant(persons, random, 0.2, 5000),
    "Zipf, rank^-1.1, 300,000 kinds": _weighted(lambda _: np.arange(1.0, 300_001) ** -1.1),
    "lognormal, sigma 2, 100,000 kinds": _weighted(lambda random: random.lognormal(0, 2, 100_000)),
    "gamma, shape 0.5, 50,000 kinds": _weighted(lambda random: random.gamma(0.5, 1, 50_000)),
    "registry of six columns": _registry,
}

if __name__ == "__main__":
    main()
