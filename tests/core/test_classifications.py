"""Countries, states of the United States and codes of diseases, by public classifications."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pyarrow as pa
import pytest
import yaml

import shoal
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builders import parse
from shoal.core.hierarchy.classifications import _areas, _categories
from shoal.errors import HierarchyError, UnknownName


def labels(spec: object, *texts: str) -> list[list[str]]:
    bound = parse("c", spec).bind(Domain("c", texts, texts))
    return [[bound.labels[level][group] for group in bound.groups(level)] for level in range(1, bound.height)]


def test_countries_are_codes_or_names() -> None:
    spec = {"countries": ["subregion", "region"]}
    assert labels(spec, "DE", "DEU", "Germany", "germany ", "GERMANY") == [
        ["Western Europe"] * 5,
        ["Europe"] * 5,
    ]
    assert labels(spec, "NO", "Vietnam", "Viet Nam", "Türkiye", "USA", "UK")[1] == [
        "Europe", "Asia", "Asia", "Asia", "Americas", "Europe",
    ]  # fmt: skip


def test_states_are_postal_codes_or_names() -> None:
    spec = {"us_states": ["division", "region"]}
    assert labels(spec, "NY", "new york", "CA", "DC") == [
        ["Middle Atlantic", "Middle Atlantic", "Pacific", "South Atlantic"],
        ["Northeast", "Northeast", "West", "South"],
    ]


def test_codes_of_diseases_climb_to_category_block_and_chapter() -> None:
    spec = {"icd_10": ["category", "block", "chapter"]}
    assert labels(spec, "E11.65", "E1165", "C50", "A00.-", "Y09") == [
        ["E11", "E11", "C50", "A00", "Y09"],
        ["E10-E14", "E10-E14", "C50", "A00-A09", "X85-Y09"],
        [
            "IV Endocrine, nutritional and metabolic diseases",
            "IV Endocrine, nutritional and metabolic diseases",
            "II Neoplasms",
            "I Infectious and parasitic diseases",
            "XX External causes",
        ],
    ]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"countries": ["region"]}, "Atlantis"),
        ({"countries": ["region"]}, "no"),
        ({"us_states": ["region"]}, "Ontario"),
        ({"icd_10": ["chapter"]}, "A10"),
        ({"icd_10": ["chapter"]}, "250.01"),
    ],
)
def test_a_value_that_is_not_in_the_table_is_refused(spec: dict[str, list[str]], text: str) -> None:
    with pytest.raises(HierarchyError, match=f"1 value is not in the classification {next(iter(spec))}"):
        labels(spec, text)
    assert labels(spec | {"uncovered": "other"}, text) == [["other"]]


def test_units_are_named_from_finer_to_coarser() -> None:
    with pytest.raises(HierarchyError, match="A subregion is not made of whole regions"):
        labels({"countries": ["region", "subregion"]}, "DE")
    with pytest.raises(UnknownName, match=r"'continent'.*Available: subregion, region"):
        labels({"countries": ["continent"]}, "DE")


def test_the_tables_are_complete_and_without_contradictions() -> None:
    text = (files("shoal") / "data" / "countries.yaml").read_text("utf-8")
    entries = [e for groups in yaml.safe_load(text).values() for group in groups.values() for e in group]
    for length, known in ((2, 249), (3, 249)):
        codes = [
            code for entry in entries for code in re.findall(r"\b[A-Z]+\b", entry[:7]) if len(code) == length
        ]
        assert len(codes) == len(set(codes)) == known
    assert len({code for code in _areas("us-states") if len(code) == 2}) == 50 + 1 + 5
    names = {name for name in _areas("us-states") if len(name) > 3}
    assert len(names) >= 56
    chapters = list(dict.fromkeys(groups[1] for groups in _categories().values()))
    assert len(chapters) == 22
    categories = list(_categories())
    assert len(categories) == len(set(categories))
    blocks = yaml.safe_load((files("shoal") / "data" / "icd-10.yaml").read_text("utf-8"))
    size = sum(_size(block) for inside in blocks.values() for block in inside)
    assert size == len(categories)  # no two blocks share a category


def _size(block: str) -> int:
    first, last = ((ord(end[0]) - 65) * 100 + int(end[1:]) for end in (block[:3], block[-3:]))
    return last - first + 1


def test_a_release_by_regions_is_verified_and_attacked() -> None:
    lands = ["DE", "FR", "AT", "JP", "CN", "KR", "US", "CA"] * 25
    table = pa.table({"land": lands, "illness": ["flu", "cold"] * 100})
    policy = {
        "columns": {
            "land": {"role": "quasi-identifier", "hierarchy": {"countries": ["subregion", "region"]}},
            "illness": {"role": "sensitive"},
        },
        "models": [{"k-anonymity": {"k": 30}}],
        "suppression_limit": 0,
    }
    release = shoal.anonymize(table, policy)
    assert release.levels == {"land": 1}
    assert release.verification.verified
    attack = shoal.attack(release.table, table, ["land"], policy=policy)
    assert not any("could not be read" in note for note in attack.notes)
    assert json.loads(json.dumps(attack.to_dict()))
