"""Estimates of population uniqueness, against plain loops, a peer's numbers and simulated populations."""

from __future__ import annotations

import csv
import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adult import COLUMNS, folder, needs_adult
from cpu_time import fastest
from example_counts import examples
from shoal.errors import UnknownName, UsageError
from shoal.workflow.risk.uniqueness import (
    LARGEST,
    UNIQUENESS_MODELS,
    Estimate,
    Sample,
    class_sums,
    classes_in_population,
    estimate,
    fit,
    population_of,
    seen_once,
    sum_points,
)

Frequencies = dict[int, int]  # class size -> classes of that size

SKEWED: Frequencies = {1: 120, 2: 41, 3: 17, 4: 9, 5: 5, 8: 3, 13: 2, 40: 1}
LIKE_A_MODEL: Frequencies = {1: 1800, 2: 520, 3: 210, 4: 130, 5: 60, 7: 31, 11: 12, 30: 4, 200: 1}


def asked(frequencies: Frequencies, population: int, model: str = "dankar") -> Estimate:
    sizes = sorted(frequencies)
    return estimate(sizes, [frequencies[size] for size in sizes], population, model)


def sample_of(frequencies: Frequencies, population: int) -> Sample:
    sizes = sorted(frequencies)
    return Sample(np.array(sizes, float), np.array([frequencies[s] for s in sizes], float), population)


def records_of(frequencies: Frequencies) -> int:
    return sum(size * classes for size, classes in frequencies.items())


frequency_tables = st.dictionaries(
    st.one_of(st.integers(1, 6), st.integers(1, 300)), st.integers(1, 400), min_size=1, max_size=9
)
tables_with_uniques = st.builds(lambda ones, table: {**table, 1: ones}, st.integers(1, 400), frequency_tables)


# Zayatz


def naive_zayatz(frequencies: Frequencies, population: int) -> Fraction:
    """Return the probability that a sample unique is one of the population, with whole numbers only."""
    records = records_of(frequencies)
    ways = {
        size: size * math.comb(population - size, records - 1) if size <= population else 0
        for size in frequencies
    }
    return Fraction(frequencies[1] * ways[1], sum(frequencies[size] * ways[size] for size in frequencies))


@given(tables_with_uniques, st.integers(1, 3000))
@settings(max_examples=examples(60), deadline=None)
def test_zayatz_matches_exact_fractions(table: Frequencies, more: int) -> None:
    population = records_of(table) + more
    chance = float(naive_zayatz(table, population))
    found = asked(table, population, "zayatz")
    assert found.in_sample == pytest.approx(table[1] * chance, rel=1e-9)
    assert found.uniques == pytest.approx(table[1] * chance * population / records_of(table), rel=1e-9)


@pytest.mark.parametrize("population", [10**7, 3 * 10**8, 10**12])
def test_classes_with_more_factors_than_are_multiplied_are_right_too(population: int) -> None:
    sizes, records = [1, 2, 65_536, 65_538, 200_000, 600_000], 1_000_000
    found = seen_once(np.array(sizes, float), records, population)
    for size, chance in zip(sizes, found.tolist(), strict=True):
        others = math.fsum(math.log1p(-(records - 1) / (population - 1 - i)) for i in range(size - 1))
        assert chance == pytest.approx(size * records / population * math.exp(others), rel=1e-9, abs=1e-300)


# Pitman


def naive_likelihood(frequencies: Frequencies, alpha: float, theta: float) -> float:
    classes, records = sum(frequencies.values()), records_of(frequencies)
    total = math.fsum(math.log(theta + i * alpha) for i in range(1, classes))
    total -= math.fsum(math.log(theta + i) for i in range(1, records))
    for size, count in frequencies.items():
        total += count * math.fsum(math.log(j - alpha) for j in range(1, size))
    return total


def highest(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the highest point of a hill by thirds."""
    for _ in range(48):
        third = (high - low) / 3
        if function(low + third) < function(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2


def naive_pitman(frequencies: Frequencies) -> tuple[float, float]:
    """Find alpha and theta: the best theta of each alpha, the best alpha of these."""

    def likelihood(alpha: float, above: float) -> float:
        return naive_likelihood(frequencies, alpha, math.exp(above) - alpha)

    def best(alpha: float) -> float:
        return highest(lambda above: likelihood(alpha, above), -8, 14)

    alpha = highest(lambda alpha: likelihood(alpha, best(alpha)), 0, 0.999)
    return alpha, math.exp(best(alpha)) - alpha


def naive_unique(alpha: float, theta: float, records: int) -> float:
    chance = 1.0
    for i in range(1, records):
        chance *= (theta + alpha + i - 1) / (theta + i)
    return chance


FITTED: tuple[Frequencies, ...] = (
    SKEWED,
    {1: 5, 2: 2, 3: 1, 9: 1},
    {1: 90, 2: 3, 3: 1},
    {1: 60, 2: 30, 3: 16, 4: 10, 5: 7, 6: 5, 8: 3, 12: 2},  # alpha = 0 is best
    {1: 3, 2: 1, 150: 2},
)


@pytest.mark.parametrize("table", FITTED)
def test_pitman_is_fitted_where_a_grid_finds_the_greatest_likelihood(table: Frequencies) -> None:
    population = 20 * records_of(table)
    fitted = fit(sample_of(table, population))
    alpha, theta = naive_pitman(table)
    assert (fitted.alpha, fitted.theta) == (pytest.approx(alpha, abs=1e-5), pytest.approx(theta, rel=1e-4))
    best = naive_likelihood(table, fitted.alpha, fitted.theta)
    for elsewhere in np.linspace(0, 0.99, 34).tolist():
        for above in np.linspace(-6, 12, 37).tolist():
            assert naive_likelihood(table, elsewhere, math.exp(above) - elsewhere) <= best
    found = asked(table, population, "pitman")
    whole = naive_unique(fitted.alpha, fitted.theta, population)
    assert found.uniques == pytest.approx(population * whole, rel=1e-9)
    here = naive_unique(fitted.alpha, fitted.theta, records_of(table))
    assert found.in_sample == pytest.approx(table[1] * whole / here, rel=1e-9)


@given(tables_with_uniques)
@settings(max_examples=examples(40), deadline=None)
def test_no_neighbour_of_the_fit_is_likelier(table: Frequencies) -> None:
    if set(table) == {1} or records_of(table) > 5000:
        return
    fitted = fit(sample_of(table, 10**6))
    best = naive_likelihood(table, fitted.alpha, fitted.theta)
    for lower, higher in ((1.001, 1), (0.999, 1), (1, 1.001), (1, 0.999), (1.001, 0.999), (0.999, 1.001)):
        alpha = 1 - fitted.rest * lower
        if alpha >= 0:
            beside = naive_likelihood(table, alpha, fitted.total * higher - alpha)
            assert beside <= best + 1e-9 * abs(best)


def test_pitman_nears_the_formula_of_hoshino_in_a_large_population() -> None:
    fitted = fit(sample_of(LIKE_A_MODEL, 10**6))
    for population, within in ((10**6, 2e-2), (10**9, 2e-5), (10**12, 2e-8)):
        gammas = math.lgamma(fitted.theta + 1) - math.lgamma(fitted.theta + fitted.alpha)
        hoshino = math.exp(gammas) * population**fitted.alpha
        assert asked(LIKE_A_MODEL, population, "pitman").uniques == pytest.approx(hoshino, rel=within)


@pytest.mark.parametrize("rest", [1.0, 0.5, 0.01])
def test_sums_over_the_records_of_a_class_are_right_to_the_last_digits(rest: float) -> None:
    sizes = [1, 2, 32, 33, 34, 35, 60, 5000]
    firsts, seconds = class_sums(np.array(sizes, float), rest)
    for size, first, second in zip(sizes, firsts.tolist(), seconds.tolist(), strict=True):
        steps = [rest + j for j in range(size - 1)]
        assert first == pytest.approx(math.fsum(1 / x for x in steps), rel=1e-13)
        assert second == pytest.approx(math.fsum(x**-2 for x in steps), rel=1e-13)


@pytest.mark.parametrize("count", [0, 1, 64, 65, 66, 81, 128, 129, 1000, 123_457])
def test_sums_over_points_are_sums_over_all(count: int) -> None:
    points, weights = sum_points(count)
    assert weights.sum() == pytest.approx(count)
    functions: tuple[Callable[[float], float], ...] = (
        lambda i: 1 / (i - 0.999), lambda i: math.log(i), lambda i: i / (40 + 0.01 * i), lambda i: i**-2.0,
    )  # fmt: skip
    for function in functions:
        every = math.fsum(map(function, range(1, count + 1)))
        found = math.fsum(w * function(p) for p, w in zip(points.tolist(), weights.tolist(), strict=True))
        assert found == pytest.approx(every, rel=1e-12)


# The slide negative binomial


def naive_shlosser(frequencies: Frequencies, population: int) -> float:
    p = Fraction(records_of(frequencies), population)
    first = sum(i * p**2 * (1 - p**2) ** (i - 1) * f for i, f in frequencies.items())
    second = sum((1 - p) ** i * ((1 + p) ** i - 1) * f for i, f in frequencies.items())
    third = sum((1 - p) ** i * f for i, f in frequencies.items())
    fourth = sum(i * p * (1 - p) ** (i - 1) * f for i, f in frequencies.items())
    return float(sum(frequencies.values()) + frequencies[1] * first / second * (third / fourth) ** 2)


def naive_seen(classes: float, share: float, a: float, b: float, times: int) -> float:
    """Return how many classes are seen so many times, by adding over class sizes of the population."""
    total, chance = 0.0, b**a  # of a class of one
    for size in range(1, 4000):
        total += chance * math.comb(size, times) * share**times * (1 - share) ** (size - times)
        chance *= (a + size - 1) / size * (1 - b)
    return classes * total


def naive_snb(classes: float, share: float, ones: int, twos: int) -> tuple[float, float] | None:
    """Solve both equations by bisection, a within b."""

    def exponent(b: float) -> float:
        low, high = 1e-9, 1e7
        for _ in range(200):
            a = math.sqrt(low * high)
            d = (1 - share) * (1 - b)
            pairs = share * a * (1 - b) * (2 - (1 - a) * d) / (2 * (1 - d) * (1 - d + a * d))
            low, high = (a, high) if pairs < twos / ones else (low, a)
        return low

    def seen(b: float) -> float:
        a, d = exponent(b), (1 - share) * (1 - b)
        return classes * share * (b / (1 - d)) ** a * (1 + a * d / (1 - d))

    low, high = 1e-9, 1 - 1e-6
    if seen(high) < ones:
        return None
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if seen(middle) < ones else (low, middle)
    return exponent(low), low


@pytest.mark.parametrize(
    "table", [SKEWED, LIKE_A_MODEL, {1: 60, 2: 15, 3: 5}, {1: 900, 2: 300, 3: 120, 4: 77}]
)
@pytest.mark.parametrize("times", [2, 4, 9])
def test_snb_solves_its_two_equations(table: Frequencies, times: int) -> None:
    population = times * records_of(table)
    classes = classes_in_population(sample_of(table, population))
    assert classes == pytest.approx(naive_shlosser(table, population), rel=1e-9)
    solution = naive_snb(classes, 1 / times, table[1], table[2])
    found = asked(table, population, "snb")
    if solution is None:
        assert found.uniques is None
        return
    a, b = solution
    assert naive_seen(classes, 1 / times, a, b, 1) == pytest.approx(table[1], rel=1e-6)
    assert naive_seen(classes, 1 / times, a, b, 2) == pytest.approx(table[2], rel=1e-6)
    assert found.uniques == pytest.approx(classes * b**a, rel=1e-6)
    assert found.in_sample == pytest.approx(classes * b**a / times, rel=1e-6)


def test_snb_says_why_it_has_no_solution() -> None:
    found = asked({1: 10, 3: 4}, 100, "snb")
    assert (found.uniques, found.share, found.in_sample) == (None, None, None)
    assert found.note == "SNB has no solution: the sample has no class of two records."
    found = asked({1: 10, 2: 40, 3: 50}, 500, "snb")
    assert found.uniques is None
    assert found.note.startswith("SNB has no solution: no slide negative binomial fits")


# The rule of Dankar et al.


def test_up_to_a_tenth_the_rule_takes_pitman() -> None:
    records = records_of(LIKE_A_MODEL)
    at, beyond = asked(LIKE_A_MODEL, 10 * records), asked(LIKE_A_MODEL, 10 * records - 1)
    assert at.by == "pitman"
    assert at.uniques == asked(LIKE_A_MODEL, 10 * records, "pitman").uniques
    assert beyond.by in ("snb", "zayatz")
    assert at.model == beyond.model == "dankar"


@given(tables_with_uniques, st.floats(0.101, 0.99))
@settings(max_examples=examples(60), deadline=None)
def test_above_a_tenth_the_rule_takes_the_smaller(table: Frequencies, share: float) -> None:
    records = records_of(table)
    population = max(records + 1, int(records / share))
    zayatz, snb = (asked(table, population, model) for model in ("zayatz", "snb"))
    found = asked(table, population)
    if 10 * records <= population:
        return
    assert zayatz.uniques is not None
    if snb.uniques is None:
        assert found.by == "zayatz"
        assert found.note == f"{snb.note} Zayatz's model was taken."
    else:
        assert found.by == ("zayatz" if zayatz.uniques < snb.uniques else "snb")
        assert not found.note
    assert found.uniques == (zayatz if found.by == "zayatz" else snb).uniques


def test_both_sides_of_the_smaller_happen() -> None:
    assert asked(SKEWED, 3 * records_of(SKEWED)).by == "snb"
    heavy = {1: 1200, 2: 210, 3: 90, 4: 55, 5: 35, 6: 25, 7: 20, 8: 16, 9: 12, 10: 10, 15: 20, 40: 10, 100: 8}
    assert asked(heavy, 2 * records_of(heavy)).by == "zayatz"


def test_classes_alike_in_size_put_pitman_at_the_end_of_its_range() -> None:
    alike = {1: 3, 2: 30, 3: 40, 4: 3}
    found = asked(alike, 10_000)
    theta = fit(sample_of(alike, 10_000)).theta
    assert (found.by, found.uniques) == ("pitman", pytest.approx(10_000 * theta / (theta + 9999)))  # Ewens
    assert found.note == (
        "Pitman's likelihood is greatest at alpha = 0, the end of its range: the truth may be lower."
    )


# What holds for every model


@given(frequency_tables, st.sampled_from(UNIQUENESS_MODELS), st.floats(0, 1))
@settings(max_examples=examples(150), deadline=None)
def test_estimates_are_numbers_within_the_population(table: Frequencies, model: str, far: float) -> None:
    records = records_of(table)
    population = min(records + int(10 ** (far * 15)) - 1, LARGEST)
    found = asked(table, population, model)
    assert found == asked(table, population, model)
    if found.uniques is None:
        assert found.note
        assert model == "snb"
        assert found.share is None
        assert found.in_sample is None
        return
    assert found.share is not None
    assert found.in_sample is not None
    assert all(type(number) is float for number in (found.uniques, found.share, found.in_sample))
    assert 0 <= found.uniques <= population * (1 + 1e-9)
    assert found.share == pytest.approx(found.uniques / population)
    assert 0 <= found.share <= 1
    assert 0 <= found.in_sample <= table.get(1, 0) * (1 + 1e-9)


@pytest.mark.parametrize("model", UNIQUENESS_MODELS)
def test_the_edges(model: str) -> None:
    counted = asked({1: 7, 2: 3}, 13, model)  # the sample is the population
    assert (counted.by, counted.uniques, counted.in_sample, counted.share) == ("sample", 7.0, 7.0, 7 / 13)
    for nobody in ({2: 5}, {9: 1}, {2: 1, 5: 10}):
        assert asked(nobody, 10**9, model).uniques == 0
    for records in (1, 2, 1000):  # all are unique: no model can tell otherwise
        for population in (records + 1, 50 * records, LARGEST):
            found = asked({1: records}, population, model)
            assert (found.uniques, found.in_sample) == (pytest.approx(population), pytest.approx(records))
    assert estimate([], [], 0, model).share == 0
    assert estimate([], [], 10, model).uniques == 0


@pytest.mark.parametrize("model", UNIQUENESS_MODELS)
def test_one_person_more_than_the_sample_changes_little(model: str) -> None:
    found = asked(LIKE_A_MODEL, records_of(LIKE_A_MODEL) + 1, model)
    assert found.in_sample == pytest.approx(LIKE_A_MODEL[1], rel=2e-3)


@pytest.mark.parametrize("model", UNIQUENESS_MODELS)
def test_a_million_classes_take_no_time(model: str) -> None:
    sizes, classes = np.unique(
        np.random.default_rng(3).zipf(1.7, 1_000_000).clip(max=2_000_000), return_counts=True
    )
    persons = 15 * int(sizes @ classes)
    assert estimate(sizes, classes, persons, model).uniques
    assert fastest(lambda: estimate(sizes, classes, persons, model), 0.5) < 0.5


def test_a_population_made_by_the_model_is_estimated_well() -> None:
    """Persons join classes by Pitman's scheme; 5% of them are drawn."""
    chance, labels, sizes = random.Random(4), [], [0] * 40_000
    kinds = 0
    while len(labels) < 40_000:
        if chance.random() * (300 + len(labels)) < 300 + 0.5 * kinds:
            joined, kinds = kinds, kinds + 1
        else:
            joined = chance.choice(labels)
            while chance.random() * sizes[joined] < 0.5:  # a class draws by its size less alpha
                joined = chance.choice(labels)
        sizes[joined] += 1
        labels.append(joined)
    truth = sizes.count(1)
    drawn = Counter(Counter(chance.sample(labels, 2000)).values())
    pitman, zayatz = (asked(dict(drawn), 40_000, model).uniques for model in ("pitman", "zayatz"))
    assert pitman is not None
    assert zayatz is not None
    assert abs(pitman - truth) < 0.3 * truth < abs(zayatz - truth)


# A peer's numbers


@needs_adult
@pytest.mark.parametrize(("share", "told"), [(0.1, 0.3207402393466189), (0.2, 0.3577099234829125)])
def test_zayatz_on_adult_is_what_the_tests_of_arx_say(share: float, told: float) -> None:
    """ARX, TestRiskMetrics.testDecisionRule2, nine quasi-identifiers."""
    table = adult_frequencies()
    found = asked(table, population_of(records_of(table), sampling_share=share), "zayatz")
    assert found.share == pytest.approx(told, rel=1e-9)


@needs_adult
@pytest.mark.parametrize(("share", "told"), [(0.1, 0.27684993883653597), (0.01, 0.1446083531167384)])
def test_pitman_on_adult_is_what_the_tests_of_arx_say(share: float, told: float) -> None:
    """ARX, as above; it takes the formula for large populations, which is near the exact one here."""
    table = adult_frequencies()
    population = population_of(records_of(table), sampling_share=share)
    fitted = fit(sample_of(table, population))
    gammas = math.lgamma(fitted.theta + 1) - math.lgamma(fitted.theta + fitted.alpha)
    assert math.exp(gammas) * population ** (fitted.alpha - 1) == pytest.approx(told, rel=1e-9)
    assert asked(table, population).share == pytest.approx(told, rel=4e-3)


def adult_frequencies() -> Frequencies:
    root = folder()
    assert root is not None
    with (root / "adult.csv").open(encoding="utf-8") as file:
        classes = Counter(tuple(row[name] for name in COLUMNS) for row in csv.DictReader(file))
    return dict(Counter(classes.values()))


# Requests that are wrong


def test_the_population_is_given_once() -> None:
    assert population_of(100, population_size=100) == 100
    assert population_of(100, population_size=2500) == 2500
    assert population_of(100, sampling_share=1) == 100
    assert population_of(100, sampling_share=0.3) == 333
    assert population_of(29, sampling_share=0.29) == 100


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Give either population_size or sampling_share, one of the two."),
        (
            {"population_size": 200, "sampling_share": 0.5},
            "Give either population_size or sampling_share, one of the two.",
        ),
        (
            {"population_size": 99},
            "population_size must be at least the sample's 100 records, got 99.",
        ),
        ({"population_size": 100.5}, "population_size must be a whole number, got 100.5."),
        ({"population_size": True}, "population_size must be a whole number, got True."),
        ({"population_size": "many"}, "population_size must be a whole number, got 'many'."),
        ({"population_size": float("nan")}, "population_size must be a whole number, got nan."),
        (
            {"population_size": 10**16},
            "population_size must be at most 1,000,000,000,000,000, got 1e+16.",
        ),
        ({"population_size": float("inf")}, "population_size must be a whole number, got inf."),
        ({"sampling_share": 0}, "sampling_share must be above 0 and at most 1, got 0."),
        ({"sampling_share": 1.01}, "sampling_share must be above 0 and at most 1, got 1.01."),
        ({"sampling_share": float("nan")}, "sampling_share must be above 0 and at most 1, got nan."),
        ({"sampling_share": "5%"}, "sampling_share must be above 0 and at most 1, got '5%'."),
        (
            {"sampling_share": 5e-324},
            "population_size must be at most 1,000,000,000,000,000, got 1e+300.",
        ),
    ],
)
def test_a_wrong_population_is_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        population_of(100, **given)  # type: ignore[arg-type]
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("sizes", "classes", "message"),
    [
        ([1, 2], [3], "Give as many numbers of classes as sizes, got 1 for 2 sizes."),
        ([2, 1], [3, 3], "Class sizes must be whole numbers from 1 up, ascending, each once."),
        ([0, 1], [3, 3], "Class sizes must be whole numbers from 1 up, ascending, each once."),
        ([1, 1.5], [3, 3], "Class sizes must be whole numbers from 1 up, ascending, each once."),
        ([1, 2], [3, -1], "Numbers of classes must be whole and not negative."),
    ],
)
def test_wrong_class_sizes_are_refused(sizes: list[int], classes: list[int], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        estimate(sizes, classes, 100)
    assert str(refused.value) == message


def test_an_unknown_model_and_a_population_below_the_sample_are_refused() -> None:
    with pytest.raises(UnknownName, match=r"Unknown uniqueness model 'pittman'. Did you mean 'pitman'\?"):
        estimate([1], [1], 5, "pittman")
    with pytest.raises(UsageError, match="must be at least the sample's 12 records, got 11"):
        estimate([1, 2], [4, 4], 11)


def test_sizes_without_a_class_do_not_count() -> None:
    assert estimate([1, 2, 3, 900], [60, 15, 5, 0], 3000) == estimate([1, 2, 3], [60, 15, 5], 3000)
