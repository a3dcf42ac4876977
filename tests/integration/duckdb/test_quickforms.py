"""What DuckDB computes itself is what the Arrow functions compute, at the borders between both: each row, and many at random."""

import random
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.functions import momentfunctions, numberformats, textdistances, textvalues, urlvalues, vectorfunctions

_QUERIES = ("", "?", "?lang=en", "?a=1&lang=en&lang=nl", "?xlang=3", "?a=lang=4", "?lang=", "?lang=a/b", "?lang", "?a?lang=7")
_FRAGMENTS = ("", "#f", "#a&lang=5", "#?lang=6", "#lang=7")
_VECTORS = (
    [1.0, 2.0, -0.5],
    [0.0, 0.0, 0.0],
    [-0.0, 3e38, 3e38],
    [1e-40, 0.0, 1.0],
    [float("nan"), 1.0, 0.0],
    [1.0, None, 0.0],
    None,
)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        yield env


def _values(env: ts.TableEnvironment, expression: str, rows: str) -> list[Any]:
    values: list[Any] = env.execute_sql(f"SELECT {expression} AS y FROM VALUES {rows}").to_arrow()["y"].to_pylist()
    return values


def _text(chance: random.Random) -> str | None:
    if chance.random() < 0.05:
        return None
    letters = chance.choice(["ab", "abcdefgh", "aé\0", "日本😀é"])
    return "".join(chance.choice(letters) for _ in range(chance.choice([0, 1, 2, 3, 8, 9, 16, 17, 25, 33, 64, 65])))


def test_texts_are_as_far_from_each_other_as_one_by_one() -> None:
    chance = random.Random(5)
    left = [_text(chance) for _ in range(150)]
    others = [
        one[: chance.randrange(len(one) + 1)] + chance.choice(["", "a"]) if one and chance.random() < 0.4 else _text(chance)
        for one in left
    ]
    columns = pa.array(["é", *left], pa.string())[1:], pa.array(others, pa.string())
    pairs = [None if None in pair else pair for pair in zip(left, others, strict=True)]
    assert textdistances.levenshtein(*columns).to_pylist() == [pair and textvalues.levenshtein(*pair) for pair in pairs]
    similarities = textdistances.jaro_winkler(*columns, beyond=textvalues.jaro_winkler)
    assert similarities.to_pylist() == [pair and textvalues.jaro_winkler(*pair) for pair in pairs]


@pytest.mark.parametrize("key", ["lang", "a"])
def test_keys_of_addresses(key: str, env: ts.TableEnvironment) -> None:
    urls = [f"http://a.com{path}{query}{rest}" for path in ("", "/lang=8") for query in _QUERIES for rest in _FRAGMENTS]
    rows = ", ".join(f"('{url}')" for url in urls)
    expected = [urlvalues.try_parse_url_key(url, "QUERY", key) for url in urls]
    assert _values(env, f"try_parse_url(x, 'QUERY', '{key}')", f"{rows} AS t (x)") == expected


@pytest.mark.parametrize("places", [0, 1, 2, 5])
def test_decimals_and_doubles_are_rounded_to_even(places: int, env: ts.TableEnvironment) -> None:
    chance = random.Random(places)
    numbers = [
        Decimal(one).scaleb(-3) for one in (0, -1, -499, -500, 500, 1500, 10**17 - 1, *(chance.randrange(10**8) for _ in range(40)))
    ]
    rows = ", ".join(f"(CAST('{number}' AS DECIMAL(18, 3)))" for number in numbers)
    expected = [numberformats._format_decimal(str(number), places) for number in numbers]
    assert _values(env, f"format_number(x, {places})", f"{rows} AS t (x)") == expected
    doubles = [0.5, -0.5, 2.5, 0.125, 2.675, 1.005, -0.001, 1e9, 123456789.125, *(chance.randrange(10**7) / 200 for _ in range(40))]
    rows = ", ".join(f"(DOUBLE('{number!r}'))" for number in doubles)
    unit = Decimal(1).scaleb(-places)
    assert _values(env, f"bround(x, {places})", f"{rows} AS t (x)") == [
        float(Decimal(repr(number)).quantize(unit, ROUND_HALF_EVEN)) for number in doubles
    ]


def test_moments_of_parts_at_the_ends_of_their_ranges(env: ts.TableEnvironment) -> None:
    parts = [(h, mi, s) for h in (0, 23, 24) for mi in (0, 59, 60) for s in ("0", "59.999999", "60", "60.000001")]
    rows = ", ".join(f"({h}, {mi}, {s}BD)" for h, mi, s in parts)
    shown = _values(env, "CAST(try_make_timestamp(2020, 2, 29, h, mi, s) AS STRING)", f"{rows} AS t (h, mi, s)")
    expected = [
        None if h > 23 or mi > 59 or Decimal(s) > 60 else int(h) * 3600 * 10**6 + mi * 60 * 10**6 + int(Decimal(s) * 10**6)
        for h, mi, s in parts
    ]
    assert [one is None for one in shown] == [one is None for one in expected]
    micros = _values(env, "unix_micros(try_make_timestamp(1970, 1, 1, h, mi, s))", f"{rows} AS t (h, mi, s)")
    assert micros == expected


@pytest.mark.parametrize("name", ["vector_inner_product", "vector_cosine_similarity", "vector_l2_distance"])
def test_pairs_of_vectors(name: str, env: ts.TableEnvironment) -> None:
    chance = random.Random(3)
    vectors = [*_VECTORS, *([np.float32(chance.gauss(0, 1)).item() for _ in range(3)] for _ in range(5))]
    rows = ", ".join(f"({_written(vector)})" for vector in vectors)
    query = (
        f"SELECT v, w, {name}(v, w) AS y FROM VALUES {rows} AS t (v) CROSS JOIN (SELECT v AS w FROM VALUES {rows} AS t (v)) AS u"
    )
    result = env.execute_sql(query).to_arrow().combine_chunks()
    function = next(one for one in vectorfunctions._PAIRS if one.name == name)
    left, right, computed = (result[column].combine_chunks() for column in ("v", "w", "y"))
    assert computed.to_pandas().equals(function.call(left, right).to_pandas())
    with pytest.raises(InvalidInputError, match="same dimension"):
        env.execute_sql(f"SELECT {name}(array(1.0F), array(1.0F, 2.0F)) AS y").to_arrow()


_ODD_VECTORS = (
    [],
    [0.0] * 4,
    [-0.0] * 4,
    [1.0, 0.0, 0.0, 0.0],
    [0.0, 2.0, 0.0, 0.0],
    [1e-23, -1e-23, 3e-24, 1e-45],
    [-1e-23, 1e-23, -3e-24, 1e-45],
    [3e38, 3e38, -3e38, 1.0],
    [-3e38, -3e38, 3e38, 1.0],
    [16777216.0, 1.0, 0.0, 0.0],
    [16777216.0, 1.0, 1e-20, 0.0],
    [1e10, 1e10, 1.0, -1e10],
    [float("inf"), 1.0, -1.0, 0.0],
    [float("-inf"), 1.0, 0.0, 0.0],
    [float("nan"), 1.0, -1.0, 0.0],
    [1.0, None, -1.0, 0.0],
    None,
)


def test_products_are_the_same_of_zeros_and_of_vectors_that_cancel_each_other(env: ts.TableEnvironment) -> None:
    chance = random.Random(6)
    vectors = [*_ODD_VECTORS, *([np.float32(chance.gauss(0, 1)).item() for _ in range(4)] for _ in range(8))]
    rows = ", ".join(f"({_written(vector)})" for vector in vectors)
    same = "v IS NULL OR w IS NULL OR size(v) = size(w)"
    query = f"SELECT v, w, vector_inner_product(v, w) AS y FROM VALUES {rows} AS t (v) JOIN VALUES {rows} AS u (w) ON {same}"
    result = env.execute_sql(query).to_arrow().combine_chunks()
    left, right, computed = (result[column].combine_chunks() for column in ("v", "w", "y"))
    assert len(computed) > 400
    assert _bits(computed) == _bits(vectorfunctions._PAIRS[0].call(left, right))


@pytest.mark.parametrize("size", [4, 8, 17])
@pytest.mark.parametrize("degree", ["1.0F", "2.0F", "float('inf')"])
def test_norms_of_a_degree_that_is_written_are_added_one_by_one(degree: str, size: int, env: ts.TableEnvironment) -> None:
    chance = random.Random(size)
    vectors = [one and one * (size // 4) for one in _ODD_VECTORS]
    vectors += [[np.float32(chance.gauss(0, 1)).item() for _ in range(size)] for _ in range(60)]
    columns = pa.array(vectors, pa.list_(pa.float32()))
    rows = ", ".join(f"({_written(vector)}, {degree})" for vector in vectors)
    query = f"SELECT v, vector_norm(v, {degree}) AS n, vector_normalize(v, {degree}) AS u FROM VALUES {rows} AS t (v, d)"
    result = env.execute_sql(query).to_arrow().combine_chunks()
    norms = [_norm_one_by_one(vector, degree) for vector in vectors]
    assert _bits(result["n"].combine_chunks()) == _bits(pa.array(norms, pa.float64()).cast(pa.float32(), safe=False))
    for vector, norm, unit in zip(columns.to_pylist(), norms, result["u"].to_pylist(), strict=True):
        if norm is None or (norm == 0 and vector):
            assert unit is None
        else:
            with np.errstate(all="ignore"):
                parts = [np.float32(np.float64(number) / np.float64(norm)).item() for number in vector]
            assert _bits(pa.array(unit, pa.float32())) == _bits(pa.array(parts, pa.float32()))


def _norm_one_by_one(vector: "list[float | None] | None", degree: str) -> float | None:
    if vector is None or None in vector:
        return None
    numbers = [float(np.float32(number)) for number in vector if number is not None]
    if "inf" in degree:
        return float(np.max(np.abs(numbers), initial=0.0))
    terms = [abs(number) if degree == "1.0F" else number * number for number in numbers]
    whole, total = len(terms) - len(terms) % 8, 0.0
    for first in range(0, whole, 8):
        eight = terms[first]
        for term in terms[first + 1 : first + 8]:
            eight += term
        total += eight
    for term in terms[whole:]:
        total += term
    return total if degree == "1.0F" else float(np.sqrt(total))


def _bits(column: pa.Array) -> list[str | None]:
    """Floats with their signs, also of zeros; one NaN is like another."""
    return [None if one is None else repr(one) for one in column.to_pylist()]


_DAYS = {
    "2024-02-29": "2024-02-29", "2024-02-29 12:00": "2024-02-29", "2024-02-29Tx": "2024-02-29", "2024-02-29x": None,
    "2024-02-29\t": "2024-02-29", " 2024-2-9 ": "2024-02-09", "2023-02-29": None, "0001-01-01": "0001-01-01",
    "2024-02": "2024-02-01", "infinity": None, "-infinity": None, "epoch": None, "2024-02-2": "2024-02-02",
    "2024-02-2 1": "2024-02-02", "2024/02/09": None, "12345-06-7": "+12345-06-07", "-0044-03-15": "-0044-03-15",
    "2024-02-29\u0301": None, "": None,
}  # fmt: skip
"""Texts, and their days as Spark writes them."""


@pytest.mark.parametrize("operand", ["x", "concat(x, '')"])
def test_days_that_are_written_as_usual_are_those_of_their_form(operand: str, env: ts.TableEnvironment) -> None:
    rows = ", ".join(f"({text!r})" for text in _DAYS)
    values = _values(env, f"CAST(try_to_date({operand}) AS STRING)", f"{rows}, (NULL) AS t (x)")
    assert values == [*_DAYS.values(), None]


def test_places_are_counted_in_long_arrays_as_in_short_ones(env: ts.TableEnvironment) -> None:
    lengths = (0, 1, 2, 15, 16, 17, 40)
    rows = ", ".join(f"({length}, {_written([0.5] * length)})" for length in lengths)
    result = env.execute_sql(f"SELECT n, posexplode_outer(v) FROM VALUES {rows}, (-1, NULL) AS t (n, v)").to_arrow()
    places = [(length, place) for length in lengths for place in (range(length) if length else [None])]
    assert list(zip(result["n"].to_pylist(), result["pos"].to_pylist(), strict=True)) == [*places, (-1, None)]


def test_numbers_by_chance_are_of_the_normal_distribution(env: ts.TableEnvironment) -> None:
    numbers: Any = env.execute_sql("SELECT randn() AS y FROM range(40000)").to_arrow()["y"].to_numpy()
    # Each bound is more than eight times the deviation of what it bounds.
    assert abs(numbers.mean()) < 0.04
    assert abs(numbers.var() - 1) < 0.06
    assert [abs((np.abs(numbers) < bound).mean() - share) < 0.02 for bound, share in ((1, 0.6827), (2, 0.9545))] == [True, True]


def _written(vector: "list[float | None] | None") -> str:
    if vector is None:
        return "CAST(NULL AS ARRAY<FLOAT>)"
    return f"array({', '.join('CAST(NULL AS FLOAT)' if one is None else f'''FLOAT('{one!r}')''' for one in vector)})"


@pytest.mark.parametrize("pattern", ["a", "[0-9]+", "a+b", "(b)c", "x|yz", "^a", "[^a]", ".b", "bé"])
def test_matches_are_counted_and_placed_as_one_by_one(pattern: str, env: ts.TableEnvironment) -> None:
    texts = ["", "a", "aaa", "ab", "caab", "é日a", "12", "x12y3", "zyzx", "bcbc", "bbcb", "cbéb", "aXa", None]
    rows = ", ".join(f"({'NULL' if one is None else repr(one)})" for one in texts)
    counts = [None if one is None else len(re.findall(pattern, one)) for one in texts]
    matches = [None if one is None else re.search(pattern, one) for one in texts]
    places = [None if one is None else match.start() + 1 if match else 0 for one, match in zip(texts, matches, strict=True)]
    assert _values(env, f"regexp_count(x, '{pattern}')", f"{rows} AS t (x)") == counts
    assert _values(env, f"regexp_instr(x, '{pattern}')", f"{rows} AS t (x)") == places


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        ("yyyy-MM-dd HH:mm:ss", "{0.year:04}-{0:%m-%d %H:%M:%S}"),
        ("dd/MM/yyyy", "{0:%d/%m}/{0.year:04}"),
        ("HH:mm:ss.SSS", "{0:%H:%M:%S}.000"),
    ],
)
def test_seconds_are_written_on_both_sides_of_the_usual_years(pattern: str, written: str, env: ts.TableEnvironment) -> None:
    first, last = momentfunctions._USUAL_SECONDS
    seconds = [first - 86_400, first - 1, first, 0, -1, 1, 951_782_400, last, last + 1, last + 86_399, None]
    rows = ", ".join(f"({'NULL' if one is None else one})" for one in seconds)
    texts = [None if one is None else written.format(datetime(1970, 1, 1) + timedelta(seconds=one)) for one in seconds]
    assert _values(env, f"from_unixtime(CAST(x AS BIGINT), '{pattern}')", f"{rows} AS t (x)") == texts


def test_vectors_of_groups_are_added_in_order() -> None:
    chance = random.Random(4)
    groups = [
        [
            [np.float32(chance.uniform(-5, 5)).item() for _ in range(size)] if chance.random() < 0.9 else None
            for _ in range(chance.randrange(9))
        ]
        for size in (0, 1, 3, 3, 16, 3)
    ]
    column = pa.array([None, [[1.0, None]], *groups], pa.list_(pa.list_(pa.float32())))
    total, average = (function.call(column).to_pylist() for function in vectorfunctions._SUMS)
    for place, group in enumerate(groups, 2):
        vectors = [np.array(one, np.float32) for one in group if one is not None]
        sums, means = (vectors[0], vectors[0]) if vectors else (None, None)
        for count, vector in enumerate(vectors[1:], 2):
            sums, means = sums + vector, means + (vector - means) * (np.float32(1) / np.float32(count))
        assert total[place] == (None if sums is None else sums.tolist())
        assert average[place] == (None if means is None else means.tolist())
    assert total[:2] == average[:2] == [None, None]


@pytest.mark.parametrize(
    ("comparison", "values"),
    [
        ("CASE WHEN l > r THEN -1 WHEN l < r THEN 1 ELSE 0 END", [3, 2, 1]),
        ("CASE WHEN r <= l THEN CASE WHEN l = r THEN 0 ELSE 7 END ELSE -3 END", [1, 2, 3]),
        ("IF(l = r, 0, IF(r < l, -1, 1))", [3, 2, 1]),
        ("CASE WHEN l % 2 < r % 2 THEN -1 WHEN l % 2 > r % 2 THEN 1 ELSE 0 END", [2, 1, 3]),
    ],
)
def test_an_order_that_a_lambda_writes(comparison: str, values: list[int], env: ts.TableEnvironment) -> None:
    assert _values(env, f"array_sort(a, (l, r) -> {comparison})", "(array(1, 3, 2)) AS t (a)") == [values]
