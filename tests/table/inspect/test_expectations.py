"""Expectations: rules of a file and constraints, compared with the rows of a table."""

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.table.inspect.expectationrules import parse_rules
from tablestore.table.inspect.expectations import Expectation, check_expectations

NAN = float("nan")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("item", pa.string()),
        ("cost", pa.decimal128(38, 2)),
        ("at", pa.timestamp("us")),
        ("customer", pa.int32()),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "price": 1.0, "item": "pen", "cost": Decimal("1.00"), "at": dt.datetime(2024, 1, 1), "customer": 1},
    {"id": 2, "price": NAN, "item": "pen", "cost": Decimal("9.50"), "at": dt.datetime(2024, 1, 2), "customer": 7},
    {"id": 3, "price": None, "item": "B1", "cost": None, "at": None, "customer": None},
    {"id": 4, "price": -0.0, "item": None, "cost": Decimal("-1.00"), "at": dt.datetime(2023, 1, 1), "customer": 2},
    {"id": 4, "price": 0.0, "item": "ink\n", "cost": Decimal("2.00"), "at": dt.datetime(2025, 1, 1), "customer": 7},
]


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    opened = ts.open_catalog(tmp_path / "wh")
    opened.create_database("d")
    table = opened.create_table("d.t", SCHEMA)
    for row in ROWS:
        table.append(pa.Table.from_pylist([row], SCHEMA))
    customers = opened.create_table("d.customers", "key BIGINT, name STRING", "key")
    customers.upsert([{"key": 1, "name": "a"}, {"key": 2, "name": "b"}])
    return opened


def check(catalog: ts.Catalog, rules: str, **options: Any) -> list[Expectation]:
    def opened(name: str) -> Any:
        return catalog.table(name).context

    return check_expectations(opened("d.t"), parse_rules(rules, "rules.toml"), opened, **options)


@pytest.mark.parametrize(
    ("rule", "rows", "violations", "samples"),
    [
        ('not_null = ["price"]', 5, 1, [{"price": None}]),
        ('not_null = "id"', 5, 0, []),
        ('unique = ["id"]', 5, 1, [{"id": 4, "rows": 2}]),
        ('unique = "item"', 4, 1, [{"item": "pen", "rows": 2}]),
        ('unique = ["id", "item"]', 4, 0, []),
        ('unique = ["id", "price"]', 4, 1, [{"id": 4, "price": 0.0, "rows": 2}]),
        ('range = "price"\nmin = 0\nmax = 0.5', 5, 2, None),
        ('range = "price"\nmin = 0.5', 5, 2, [{"price": -0.0}, {"price": 0.0}]),
        ('range = "cost"\nmin = 0\nmax = 9.49', 5, 2, [{"cost": Decimal("9.50")}, {"cost": Decimal("-1.00")}]),
        ('range = "at"\nmin = 2024-01-01T00:00:00', 5, 1, [{"at": dt.datetime(2023, 1, 1)}]),
        ("regex = \"item\"\npattern = '[a-z]+'", 5, 2, [{"item": "B1"}, {"item": "ink\n"}]),
        ('values = "item"\naccepted = ["pen", "B1"]', 5, 1, [{"item": "ink\n"}]),
        ('foreign_key = "customer"\nreferences = "d.customers"\ncolumns = "key"', 4, 2, [{"customer": 7}, {"customer": 7}]),
        ('condition = "price * 2 < 1"', 5, 2, None),
        ('condition = "cost > 0"\nwhere = "id > 1"', 4, 1, [{"cost": Decimal("-1.00")}]),
        ('unique = "id"\nwhere = "item IS NOT NULL"', 4, 0, []),
    ],
)
def test_a_rule_counts_the_rows_that_violate_it_and_shows_some(
    rule: str, rows: int, violations: int, samples: list[dict[str, Any]] | None, catalog: ts.Catalog
) -> None:
    (result,) = check(catalog, f"[[rule]]\n{rule}")
    assert (result.rows, result.violations, result.holds) == (rows, violations, not violations)
    assert samples is None or sorted(map(str, result.samples)) == sorted(map(str, samples))
    if "unique" not in rule:
        assert len(result.samples) == min(violations, 5)


def test_constraints_of_the_table_are_expectations_too(catalog: ts.Catalog) -> None:
    catalog.table("d.t").alter([ts.AddCheck("known", "id > 0"), ts.AddCheck("cheap", "cost < 100")])
    results = check(catalog, '[[rule]]\nnot_null = ["id"]')
    assert [(one.kind, one.name, one.holds) for one in results] == [
        ("constraint", "cheap", True),
        ("constraint", "known", True),
        ("not_null", "not_null(id)", True),
    ]


@pytest.mark.parametrize("keys_at_once", [1, 7, 1000])
def test_keys_that_are_shared_out_give_the_same_counts(keys_at_once: int, tmp_path: Path) -> None:
    catalog = ts.open_catalog(tmp_path / "many")
    catalog.create_database("d")
    rng = random.Random(7)
    schema = pa.schema([("a", pa.string()), ("b", pa.int16())])
    rows = [{"a": rng.choice(["x", "y", None]), "b": rng.choice([None, *range(9)])} for _ in range(60)]
    table = catalog.create_table("d.t", schema)
    for place in range(0, len(rows), 20):
        table.append(pa.Table.from_pylist(rows[place : place + 20], schema))
    known = [("x", 1), ("y", 2), ("x", 8)]
    catalog.create_table("d.known", "a VARCHAR(9), b BIGINT").append([{"a": a, "b": b} for a, b in known])
    rules = '[[rule]]\nunique = ["a", "b"]\n[[rule]]\nforeign_key = ["a", "b"]\nreferences = "d.known"'
    unique, foreign = check(catalog, rules, keys_at_once=keys_at_once, samples=1000)
    keys = [(row["a"], row["b"]) for row in rows if None not in row.values()]
    several = {key: count for key, count in Counter(keys).items() if count > 1}
    assert (unique.rows, unique.violations) == (len(keys), sum(several.values()) - len(several))
    assert {(one["a"], one["b"]): one["rows"] for one in unique.samples} == several
    orphans = Counter(key for key in keys if key not in known)
    assert (foreign.rows, foreign.violations) == (len(keys), sum(orphans.values()))
    assert Counter((one["a"], one["b"]) for one in foreign.samples) == orphans


def test_an_empty_table_and_one_without_keys_to_reference_are_compared(tmp_path: Path) -> None:
    catalog = ts.open_catalog(tmp_path / "empty")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id INT")
    catalog.create_table("d.other", "id INT")
    rules = '[[rule]]\nunique = "id"\n[[rule]]\nforeign_key = "id"\nreferences = "d.other"\n[[rule]]\nnot_null = "id"'
    assert [(one.rows, one.violations) for one in check(catalog, rules)] == [(0, 0)] * 3
    table.append([{"id": 1}, {"id": 2}])
    assert [(one.rows, one.violations) for one in check(catalog, rules)] == [(2, 0), (2, 2), (2, 0)]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("", "at least one [[rule]]"),
        ("[[rule]", "expected TOML"),
        ("[[rules]]\nunique = 'a'", "did you mean 'rule'"),
        ("[[rule]]\nuniqe = 'a'", "expected exactly one of not_null, unique"),
        ("[[rule]]\nunique = 'a'\nnot_null = 'a'", "expected exactly one of"),
        ("[[rule]]\nrange = 'a'", "takes min, max or both"),
        ("[[rule]]\nrange = 'a'\nmaximum = 3", "did you mean 'max'"),
        ("[[rule]]\nrange = ['a', 'b']\nmin = 3", "takes one column"),
        ("[[rule]]\nregex = 'a'", "takes the text pattern"),
        ("[[rule]]\nvalues = 'a'\naccepted = []", "takes the list accepted"),
        ("[[rule]]\nforeign_key = 'a'", "takes references"),
        ("[[rule]]\nforeign_key = 'a'\nreferences = 't'\ncolumns = ['b', 'c']", "names 1 column(s), and 2"),
        ("[[rule]]\nnot_null = ['a', 'b']\nname = 'x'", "expected one column of not_null"),
        ("[[rule]]\nunique = 7", "expected the name of a column"),
        ("[[rule]]\nunique = ['a', 'a']", "stands there twice"),
        ("[[rule]]\ncondition = ''", "expected a text as condition"),
        ("[[rule]]\nunique = 'a'\n[[rule]]\nunique = 'a'", "two rules are called 'unique(a)'"),
    ],
)
def test_a_file_that_is_none_says_what_is_wrong_and_where(rules: str, words: str) -> None:
    with pytest.raises(ts.InvalidInputError) as error:
        parse_rules(rules, "rules.toml")
    assert error.value.kind == "rules"
    assert str(error.value).startswith("rules.toml")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("unique = 'nope'", "'nope', which does not exist"),
        ("not_null = 'nope'", "'nope', which does not exist"),
        ("regex = 'id'\npattern = '1'", "takes a column of texts"),
        ("regex = 'item'\npattern = '('", "expected a pattern of RE2"),
        ("range = 'id'\nmin = 'x'", "'id'"),
        ("condition = 'rand() > price'", "RAND"),
        ("condition = '10 % customer > 20 OR 1 / (id - 4) > 0'", "cannot be computed"),
        ("foreign_key = 'item'\nreferences = 'd.customers'\ncolumns = 'key'", "columns of like types"),
        ("foreign_key = 'customer'\nreferences = 'd.customers'", "'customer', which does not exist"),
    ],
)
def test_a_rule_that_does_not_suit_the_table_is_named(rule: str, words: str, catalog: ts.Catalog) -> None:
    with pytest.raises(ts.InvalidInputError) as error:
        check(catalog, f"[[rule]]\n{rule}")
    assert error.value.kind == "rules"
    assert "the rule '" in str(error.value)
    assert words in str(error.value)


def test_the_rules_in_the_documents_are_rules(project: Path) -> None:
    text = (project / "docs/guides/constraints.md").read_text(encoding="utf-8")
    rules = parse_rules(text.partition("```toml\n")[2].partition("```")[0], "the document")
    assert {rule.kind for rule in rules} == {"not_null", "unique", "range", "regex", "values", "foreign_key", "condition"}
