"""Lists a call of each function of Spark's that DuckDB runs by a rule, next to a built-in of DuckDB's of the same kind.

A call names columns of :data:`COLUMNS`.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "n": "(k * 2654435761 % 2147483647)::INTEGER",
        "few": "(k % 20)::INTEGER",
        "b": "k * 2654435761 % 1000000007",
        "d": "(k * 2654435761 % 1000003) * 0.37::DOUBLE",
        "f": "(k * 2654435761 % 1000003)::FLOAT",
        "u": "(k * 2654435761 % 1000003) / 1000003.0::DOUBLE",
        "x": "((k * 2654435761 % 1000003) * 0.01::DECIMAL(3, 2))::DECIMAL(12, 2)",
        "s": "'Customer ' || k || CASE WHEN k % 10 = 0 THEN ' of the café' ELSE ' of the shop' END",
        "y": "'Customer ' || (k + k % 3) || ' of a shop'",
        "word": "translate(k::VARCHAR, '0123456789', 'abcdlmnrst') || 'ington'",
        "digits": "lpad(k::VARCHAR, 16, '4539')",
        "url": "'https://user@www.shop' || k % 100 || '.example.com:8080/path/' || k || '?q=' || k || '&lang=en#top'",
        "escaped": "'name%20' || k || '+and%C3%A9'",
        "js": """'{"id": ' || k || ', "name": "Customer ' || k || '", "tags": ["a", "b"], "price": 1.5}'""",
        "ja": "'[1, 2, ' || k || ']'",
        "line": "k || ',name,1.5'",
        "pairs": "'a:1,b:2,c:' || k",
        "xml": "'<a><b>' || k || '</b><b>2</b></a>'",
        "b64": "base64(encode('Customer ' || k || ' of the shop'))",
        "b32": "translate(lpad(k::VARCHAR, 16, '0'), '0189', 'ABCD')",
        "hx": "hex('Customer ' || k || ' of the shop')",
        "num": "(1 + k % 9) || ',' || lpad((k // 9 % 1000)::VARCHAR, 3, '0') || '.' || lpad((k // 9000 % 100)::VARCHAR, 2, '0')",
        "money": "((k % 9000 + 1000) + (k // 9000 % 100) * 0.01::DECIMAL(3, 2))::DECIMAL(6, 2)",
        "bin": "encode('Customer ' || k || ' of the shop')",
        "a": "[(k % 97)::INTEGER, CASE WHEN k % 20 = 0 THEN NULL ELSE (k % 89)::INTEGER END, (k % 7)::INTEGER, k::INTEGER, 3]",
        "c": "[(k % 7)::INTEGER, (k % 5)::INTEGER, 3, k::INTEGER]",
        "t": "['Customer', k::VARCHAR, 'of', 'the', 'shop']",
        "m": "MAP(['a', 'b', 'c'], [k::INTEGER, 2, 3])",
        "m2": "MAP(['d', 'e'], [k::INTEGER, 2])",
        "m3": "MAP(['b', 'e'], [k::INTEGER, 2])",
        "rows": "[{'key': 'a', 'value': k::INTEGER}, {'key': 'b', 'value': 2}]",
        "q": "{'id': k::INTEGER, 'name': 'Customer ' || k, 'is_new': k % 2 = 0}",
        "v": "list_transform(range(16), lambda e: ((k * (e + 3)) % 1009)::FLOAT / 1009)",
        "w": "list_transform(range(16), lambda e: ((k * (e + 5)) % 1013)::FLOAT / 1013)",
        "dt": "DATE '1990-01-01' + (k % 20000)::INTEGER",
        "at": "make_timestamptz(946684800000000 + k * 61000001)",
        "ntz": "make_timestamp(946684800000000 + k * 61000001)",
        "later": "make_timestamp(956684800000000 + k * 31000001)",
        "clock": "make_time(k % 24, k // 24 % 60, (k // 1440 % 60)::DOUBLE)",
        "day_text": "strftime(make_timestamp(946684800000000 + k * 61000001), '%Y-%m-%d %H:%M:%S')",
        "clock_text": "strftime(make_timestamp(946684800000000 + k * 61000001), '%H:%M:%S')",
        "wkb": "unhex('01010000000000' || lpad(hex(k), 8, '0') || 'F03F0000' || lpad(hex(k), 8, '0') || 'F03F')",
        "g": "i % 100",
        "small": "i // 200",
    }
)
"""How a column is made: ``k`` is the number that its value hangs on, ``i`` that of the row."""

SKETCHES: Mapping[str, str] = MappingProxyType(
    {
        "hll": "hll_sketch_agg(b)",
        "theta": "theta_sketch_agg(b)",
        "other_theta": "theta_sketch_agg(n)",
        "tuple_double": "tuple_sketch_agg_double(b, CAST(few AS DOUBLE))",
        "other_double": "tuple_sketch_agg_double(n, CAST(few AS DOUBLE))",
        "tuple_integer": "tuple_sketch_agg_integer(b, few)",
        "other_integer": "tuple_sketch_agg_integer(n, few)",
        "kll_bigint": "kll_sketch_agg_bigint(b)",
        "kll_float": "kll_sketch_agg_float(f)",
        "kll_double": "kll_sketch_agg_double(CAST(few AS DOUBLE))",
    }
)
"""The columns of sketches: each is made of the values of 20 rows."""
STATES: Mapping[str, str] = MappingProxyType(
    {"counted": "approx_count_distinct(b) EXPORT_STATE", "ranked": "approx_quantile(d, 0.5) EXPORT_STATE"}
)
"""The sketches of DuckDB's own beside them: the states of its aggregates, which it keeps, combines and reads as values."""
SKETCHED_ROWS = 20

UNMEASURED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("unix_nanos", "timestamp_nanos"), "it is always refused: it takes a setting of Spark's"),
        "randstr": "it is refused over rows",
        **dict.fromkeys(("make_interval", "try_make_interval", "make_ym_interval"), "its result is refused: it has months"),
    }
)
"""The functions with a rule that no call measures, and why."""

_VALUE = "SELECT any_value(value) FROM (SELECT {} AS value FROM {input})"
_GROUPS = "SELECT any_value(value) FROM (SELECT {} AS value FROM {input} GROUP BY g)"
# Sketches of few values are exact, and others refused.
_SMALL_GROUPS = "SELECT any_value(value) FROM (SELECT {} AS value FROM {input} GROUP BY small)"
_OVER = "SELECT any_value(value) FROM (SELECT {} OVER (PARTITION BY g ORDER BY b) AS value FROM {input})"
_CUBE = "SELECT any_value(value) FROM (SELECT {} AS value, count(*) AS many FROM {input} GROUP BY CUBE(g, few))"
_STATES = (
    "SELECT any_value(value) FROM (SELECT {} AS value FROM "
    "(SELECT approx_top_k_accumulate(CAST(log2(1 + i) AS INT)) AS top FROM {input}))"
)
_FIELDS = "SELECT any_value(c0) AS c0, any_value(c1) AS c1 FROM (SELECT {} FROM {input})"
_PARTS = "SELECT count(*) FROM (SELECT {} FROM {input})"
_LATERAL = "SELECT any_value(value) FROM {input}, LATERAL {} AS parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Functions of a kind. ``base``: what DuckDB has built in, in its own words; ``calls``: those of Spark that are measured.

    ``query`` is the query in which a call stands, and ``base_query`` that of the base if it is another one; ``is_of_sketches``: the
    rows are :data:`SKETCHES`. ``why_no_builtin``: why DuckDB has nothing of the kind; then the base is a floor, such as to read the
    bytes, and no bar is claimed.
    """

    name: str
    base: str
    calls: tuple[str, ...]
    query: str = _VALUE
    base_query: str = ""
    is_of_sketches: bool = False
    why_no_builtin: str = ""

    @property
    def has_builtin(self) -> bool:
        return not self.why_no_builtin

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of :data:`COLUMNS` that the calls and their queries name."""
        parts = (self.base, *self.calls, self.query, *((*SKETCHES.values(), *STATES.values()) if self.is_of_sketches else ()))
        words = set(re.findall(r"\w+", " ".join(parts)))
        return tuple(name for name in COLUMNS if name in words)


def called_functions(call: str, functions: Collection[str]) -> frozenset[str]:
    """The functions of some that a call measures: those that stand in it."""
    return frozenset(re.findall(r"\w+(?= *\()", call.lower())).intersection(functions)


def _sketch_calls(kinds: tuple[str, ...], *calls: str) -> tuple[str, ...]:
    return tuple(call.replace("KIND", kind) for kind in kinds for call in calls)


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_NO_NUMBERS = "DuckDB has no sketch that keeps a number with each value"
_KLL = ("bigint", "float", "double")
_TUPLES = ("double", "integer")
_KLL_OF = {"bigint": "b", "float": "f", "double": "d"}
_NATURAL = ("asinh", "atan", "cbrt", "cosh", "cot", "sinh", "tanh", "sin", "cos", "tan", "csc", "sec")

KINDS: tuple[Kind, ...] = (
    Kind(
        name="text to text",
        base="replace(s, 'of', 'at')",
        calls=(
            "btrim(s)",
            "btrim(s, 'C')",
            "left(s, 5)",
            "right(s, 5)",
            "substring(s, 3, 5)",
            "lpad(s, 30, '*')",
            "rpad(s, 30, '*')",
            "overlay(s PLACING 'xyz' FROM 4)",
            "reverse(s)",
            "quote(s)",
            "soundex(word)",
            "substring_index(s, ' ', 2)",
            "substring_index(s, ' ', -2)",
            "elt(2, s, y)",
            "url_encode(s)",
            "collation(s)",
            "space(few)",
            "validate_utf8(s)",
            "try_validate_utf8(s)",
            "make_valid_utf8(s)",
            "format_string('%s of %d', s, few)",
            "printf('%s of %d', s, few)",
        ),
    ),
    # What DuckDB has for it: the same text without a function of its own.
    Kind(
        name="letters for letters",
        base=f"translate(s, '{_LETTERS}', '{'X' * 26}{'x' * 26}{'n' * 10}')",
        calls=("mask(s)",),
    ),
    Kind(
        name="text to number",
        base="length(s)",
        calls=("length(s)", "bit_length(s)", "octet_length(s)", "ascii(s)"),
    ),
    Kind(
        name="place in a text",
        base="instr(s, 'of')",
        calls=(
            "instr(s, 'of')",
            "instr(s, 'o', 3, 2)",
            "locate('of', s)",
            "locate('of', s, 3)",
            "position('of', s)",
            "startswith(s, 'Cust')",
            "endswith(s, 'shop')",
            "contains(s, 'of')",
            "find_in_set('b', line)",
            "is_valid_utf8(bin)",
        ),
    ),
    # DuckDB has no check sum of digits: a list of them is added up.
    Kind(
        name="check sum of digits",
        base=(
            "list_sum(list_transform(string_split(reverse(digits), ''), lambda digit, place: CASE WHEN place % 2 = 1 "
            "THEN digit::INT WHEN digit > '4' THEN digit::INT * 2 - 9 ELSE digit::INT * 2 END)) % 10 = 0"
        ),
        calls=("luhn_check(digits)",),
    ),
    Kind(name="distance of texts", base="levenshtein(s, y)", calls=("levenshtein(s, y)", "levenshtein(s, y, 3)")),
    Kind(
        name="similarity of texts",
        base="jaro_winkler_similarity(s, y)",
        calls=("jaro_winkler_similarity(s, y)",),
    ),
    Kind(
        name="text and bytes",
        base="from_base64(b64)",
        calls=(
            "unbase64(b64)",
            "base64(bin)",
            "to_base32(bin)",
            "from_base32(b32)",
            "hex(bin)",
            "unhex(hx)",
            "encode(s, 'UTF-8')",
            "encode(s, 'UTF-16')",
            "decode(bin, 'UTF-8')",
            "decode(bin, 'ISO-8859-1')",
            "to_binary(hx, 'hex')",
            "to_binary(b64, 'base64')",
            "try_to_binary(hx, 'hex')",
            "try_to_binary(b64, 'base64')",
            "lpad(bin, 40)",
            "rpad(bin, 40)",
            "overlay(bin PLACING X'4142' FROM 4)",
            "reverse(bin)",
            "substring(bin, 3, 5)",
            "to_char(bin, 'utf-8')",
            "make_valid_utf8(bin)",
            "validate_utf8(bin)",
        ),
    ),
    Kind(
        name="checksum",
        base="md5(s)",
        calls=(
            "crc32(bin)",
            "hash(n)",
            "hash(s)",
            "hash(d)",
            "hash(a)",
            "xxhash64(n)",
            "xxhash64(s)",
            "xxhash64(d)",
        ),
    ),
    Kind(
        name="cipher",
        base="md5(s)",
        calls=(
            "aes_encrypt(bin, '0000111122223333')",
            "aes_decrypt(aes_encrypt(bin, '0000111122223333'), '0000111122223333')",
            "try_aes_decrypt(bin, '0000111122223333')",
        ),
        why_no_builtin="DuckDB has no cipher",
    ),
    # By default with SHA-256, of which it takes two.
    Kind(name="checksum with a key", base="sha256(bin)", calls=("hmac('key', bin)", "hmac('key', bin, 'SHA1')")),
    Kind(
        name="regular expression",
        base="regexp_extract(s, '[0-9]+')",
        calls=(
            "regexp_like(s, '[0-9]+ of')",
            "regexp_substr(s, '[0-9]+')",
            "regexp_extract(s, '([0-9]+) of', 1)",
            "regexp_count(s, '[0-9]')",
            "regexp_instr(s, '[0-9]+')",
            "regexp_replace(s, '[0-9]+', '#')",
        ),
    ),
    Kind(
        name="texts of a text",
        base="regexp_split_to_array(s, ' ')",
        calls=(
            "regexp_extract_all(s, '[a-z]+', 0)",
            "split(s, ' ')",
            "split(s, ' ', 2)",
            "str_to_map(pairs, ',', ':')",
        ),
    ),
    Kind(
        name="part of an address",
        base="regexp_extract(url, '^https?://([^/]+)/', 1)",
        calls=("parse_url(url, 'HOST')", "parse_url(url, 'QUERY', 'lang')", "try_parse_url(url, 'PATH')"),
    ),
    Kind(
        name="escapes of an address",
        base="url_decode(escaped)",
        calls=("url_decode(escaped)", "try_url_decode(escaped)"),
    ),
    Kind(
        name="JSON",
        base="json_extract_string(js, '$.name')",
        calls=(
            "json_array_length(ja)",
            "json_object_keys(js)",
            "to_json(q)",
            "to_json(a)",
            "to_csv(q)",
            "to_xml(q)",
            """schema_of_json('[1]')""",
            "schema_of_csv('1,a')",
        ),
    ),
    Kind(
        name="row of a text",
        base="""from_json(js, '{"id": "INTEGER", "name": "VARCHAR", "tags": ["VARCHAR"], "price": "DOUBLE"}')""",
        calls=(
            "from_json(js, 'id INT, name STRING, tags ARRAY<STRING>, price DOUBLE')",
            "from_csv(line, 'id INT, name STRING, p DOUBLE')",
        ),
    ),
    Kind(
        name="variant",
        base="js::JSON::VARIANT",
        calls=(
            "is_variant_null(parse_json(js))",
            "is_variant_null(try_parse_json(js))",
            "variant_get(parse_json(js), '$.id', 'int')",
            "is_variant_null(variant_set(parse_json(js), '$.id', 1))",
            "is_variant_null(variant_insert(parse_json(js), '$.other', 1))",
            "is_variant_null(variant_array_append(parse_json(js), '$.tags', 'c'))",
            "is_variant_null(variant_delete(parse_json(js), '$.id'))",
            "is_variant_null(variant_strip_nulls(parse_json(js)))",
            "is_valid_variant(parse_json(js))",
        ),
    ),
    Kind(name="array as a variant", base="a::VARIANT", calls=("is_variant_null(to_variant_object(a))",)),
    Kind(name="schema of a variant", base="json_structure(js)", calls=("schema_of_variant(parse_json(js))",)),
    Kind(
        name="schema of variants",
        base="json_group_structure(js)",
        calls=("schema_of_variant_agg(parse_json(js))",),
        query=_GROUPS,
    ),
    Kind(
        name="parts of a variant",
        base="unnest(json_extract(js, '$.*')::VARIANT[])",
        calls=("variant_explode(parse_json(js))",),
        query=_LATERAL,
        base_query=_VALUE,
    ),
    Kind(
        name="XML",
        base="md5(xml)",
        why_no_builtin="DuckDB reads no XML",
        calls=(
            "xpath(xml, 'a/b/text()')",
            "xpath_string(xml, 'a/b')",
            "xpath_boolean(xml, 'a/b')",
            "xpath_double(xml, 'a/b')",
            "xpath_float(xml, 'a/b')",
            "xpath_short(xml, 'count(a/b)')",
            "xpath_int(xml, 'a/b')",
            "xpath_long(xml, 'a/b')",
        ),
    ),
    Kind(
        name="number as a text",
        base="format('{:,.2f}', d)",
        calls=(
            "format_number(d, 2)",
            "format_number(x, 1)",
            "format_number(n, 0)",
            "to_char(money, '9,999.99')",
            "to_varchar(money, '9,999.99')",
            "hex(n)",
            "bin(n)",
            "conv(digits, 10, 16)",
            "to_char(at, 'yyyy-MM-dd')",
        ),
    ),
    Kind(
        name="text as a number",
        base="CAST(replace(num, ',', '') AS DECIMAL(6, 2))",
        calls=("to_number(num, '9,999.99')", "try_to_number(num, '9,999.99')"),
    ),
    Kind(
        name="function of a double",
        base="ln(d)",
        calls=(
            *(f"{name}(d)" for name in _NATURAL),
            "acos(u)",
            "acosh(d)",
            "asin(u)",
            "atanh(u)",
            "log1p(d)",
            "rint(d)",
            "width_bucket(d, 0.0D, 300000.0D, 10)",
            "e()",
            "nanvl(d, 1.0D)",
        ),
    ),
    Kind(name="power of e less one", base="exp(u) - 1", calls=("expm1(u)",)),
    Kind(name="long side of a triangle", base="sqrt(d * d + u * u)", calls=("hypot(d, u)",)),
    Kind(
        name="rounded number",
        base="round(d, 2)",
        calls=("bround(d, 2)", "bround(x, 1)", "bround(n, -2)", "ceil(d)", "ceil(x, 1)", "floor(d)", "floor(x, 1)"),
    ),
    Kind(
        name="whole numbers",
        base="n % 1000",
        calls=(
            "factorial(few)",
            "negative(n)",
            "positive(n)",
            "try_add(n, few)",
            "try_subtract(n, few)",
            "try_multiply(b, few)",
            "try_mod(n, few)",
            "try_divide(d, u)",
            "shiftleft(n, 3)",
            "shiftright(n, 3)",
            "shiftrightunsigned(n, 3)",
            "bit_get(n, 3)",
            "bitmap_bucket_number(b)",
            "bitmap_bit_position(b)",
            "nullifzero(n)",
            "zeroifnull(n)",
            "equal_null(n, few)",
            "typeof(n)",
            "assert_true(coalesce(n, 0) >= 0)",
            "IF(n < 0, CAST(raise_error('below') AS INT), n)",
        ),
    ),
    Kind(name="bits of bytes", base="bit_count(bin::BIT)", calls=("bitmap_count(bin)",)),
    Kind(name="constants", base="current_date", calls=("current_timezone()", "localtimestamp()", "current_time()", "localtime()")),
    Kind(name="chance", base="random()", calls=("rand()", "randn()", "uniform(10, 20)")),
    Kind(name="text by chance", base="uuid()::VARCHAR", calls=("uuid()",)),
    Kind(
        name="array to value",
        base="list_position(a, 3)",
        calls=(
            "array_position(a, 3)",
            "array_contains(a, 3)",
            "array_max(a)",
            "array_min(a)",
            "element_at(a, 2)",
            "try_element_at(a, 9)",
            "get(a, 1)",
        ),
    ),
    Kind(name="two arrays to value", base="list_has_any(a, c)", calls=("arrays_overlap(a, c)",)),
    Kind(
        name="array of fewer elements",
        base="list_distinct(a)",
        calls=("array_distinct(a)", "array_compact(a)", "array_remove(a, 3)", "slice(a, 2, 2)"),
    ),
    Kind(
        name="arrays as sets",
        base="list_intersect(a, c)",
        calls=("array_union(a, c)", "array_except(a, c)", "array_intersect(a, c)"),
    ),
    Kind(
        name="array of more elements",
        base="list_concat(a, c)",
        calls=(
            "array_append(a, 4)",
            "array_prepend(a, 4)",
            "array_insert(a, 2, 4)",
            "array_repeat(n, 5)",
            "reverse(a)",
            "sequence(0, few)",
        ),
    ),
    Kind(name="arrays as rows", base="list_zip(a, c)", calls=("arrays_zip(a, c)",)),
    Kind(name="array in another order", base="list_sort(a)", calls=("array_sort(a)", "shuffle(a)")),
    Kind(
        name="array in the order of a lambda",
        base="list_sort(list_transform(c, lambda e: -e))",
        calls=("array_sort(c, (l, r) -> CASE WHEN l > r THEN -1 WHEN l < r THEN 1 ELSE 0 END)",),
    ),
    Kind(
        name="lambda over an array",
        base="list_filter(a, lambda e: e > 3)",
        calls=(
            "transform(a, e -> e + 1)",
            "transform(a, (e, i) -> e + i)",
            "filter(a, e -> e > 3)",
            "filter(a, (e, i) -> i > 1)",
            "exists(a, e -> e = 3)",
            "forall(a, e -> e >= 0)",
            "zip_with(a, c, (l, r) -> l + r)",
        ),
    ),
    Kind(
        name="array reduced by a lambda",
        base="list_reduce(a, lambda l, r: l + r)",
        calls=(
            "aggregate(a, 0, (l, r) -> l + r)",
            "aggregate(a, CAST(0 AS BIGINT), (l, r) -> l + r)",
            "aggregate(a, 0.0D, (l, r) -> l + r, l -> l / 2)",
        ),
    ),
    Kind(
        name="map",
        base="map_concat(m, m2)",
        calls=(
            "map_from_arrays(array('a', 'b'), array(n, few))",
            "map_from_entries(rows)",
            "map_concat(m, m2)",
            "map_entries(m)",
            "transform_keys(m, (k, v) -> upper(k))",
            "transform_values(m, (k, v) -> v + 1)",
            "map_filter(m, (k, v) -> v > 2)",
            "map_zip_with(m, m3, (k, l, r) -> coalesce(l, r))",
        ),
    ),
    Kind(
        name="value of a map",
        base="map_extract_value(m, 'b')",
        calls=("map_contains_key(m, 'b')", "element_at(m, 'b')", "try_element_at(m, 'z')"),
    ),
    Kind(
        name="vectors",
        base="list_inner_product(v, w)",
        calls=(
            "vector_norm(v)",
            "vector_norm(v, 1.0F)",
            "vector_inner_product(v, w)",
            "vector_cosine_similarity(v, w)",
            "vector_l2_distance(v, w)",
        ),
    ),
    Kind(
        name="vector to vector",
        base="list_transform(v, lambda e: e / 2)",
        calls=("vector_normalize(v)",),
    ),
    Kind(
        name="vectors of rows",
        base="list(v)",
        calls=("vector_sum(v)", "vector_avg(v)"),
        query=_GROUPS,
    ),
    Kind(
        name="part of a date",
        base="date_part('quarter', ntz)",
        calls=(
            "date_part('YEAR', ntz)",
            "hour(ntz)",
            "minute(ntz)",
            "second(ntz)",
            "quarter(ntz)",
            "weekday(dt)",
            "unix_date(dt)",
            "unix_seconds(at)",
            "unix_millis(at)",
            "unix_micros(at)",
            "time_to_seconds(clock)",
            "time_to_millis(clock)",
            "time_to_micros(clock)",
            "time_diff('MINUTE', clock, clock)",
            "unix_timestamp(at)",
            "to_unix_timestamp(at)",
        ),
    ),
    # From two timestamps: a part of one is less work.
    Kind(name="time between dates", base="date_sub('month', later, ntz)", calls=("months_between(ntz, later)",)),
    Kind(name="name of a date", base="dayname(dt)", calls=("dayname(dt)", "monthname(dt)")),
    Kind(
        name="date of a date",
        base="date_trunc('month', ntz)",
        calls=(
            "last_day(dt)",
            "next_day(dt, 'MO')",
            "trunc(dt, 'MM')",
            "date_trunc('MONTH', ntz)",
            "date_trunc('HOUR', at)",
            "time_trunc('MINUTE', clock)",
        ),
    ),
    Kind(
        name="array of moments",
        base="generate_series(ntz, ntz + INTERVAL 4 HOUR, INTERVAL 1 HOUR)",
        calls=(
            "sequence(ntz, ntz + INTERVAL 4 HOURS, INTERVAL 1 HOUR)",
            "sequence(at, at + INTERVAL 4 HOURS, INTERVAL 1 HOUR)",
            "sequence(dt, date_add(dt, 4), INTERVAL 1 DAY)",
        ),
    ),
    Kind(
        name="array of moments by clocks",
        base="generate_series(ntz, ntz + INTERVAL 4 MONTH, INTERVAL 1 MONTH)",
        calls=(
            "sequence(ntz, ntz + INTERVAL 4 MONTHS, INTERVAL 1 MONTH)",
            "sequence(at, at + INTERVAL 4 MONTHS, INTERVAL 1 MONTH)",
        ),
    ),
    Kind(
        name="date of another zone",
        base="ntz AT TIME ZONE 'Europe/Brussels' AT TIME ZONE 'America/Los_Angeles'",
        calls=("convert_timezone('Europe/Brussels', 'America/Los_Angeles', ntz)",),
    ),
    Kind(
        name="date of numbers",
        base="make_timestamp(2020, 1 + few % 12, 2, few, few, few::DOUBLE)",
        calls=(
            *(
                f"{prefix}make_timestamp{kind}(2020, 1 + few % 12, 2, few, few, few)"
                for prefix in ("", "try_")
                for kind in ("", "_ltz", "_ntz")
            ),
            "make_dt_interval(few, few, few, few)",
            "make_time(few, few, few)",
            "time_from_seconds(few)",
            "time_from_millis(few)",
            "time_from_micros(few * 1000)",
            "timestamp_seconds(b)",
            "timestamp_millis(b)",
            "timestamp_micros(b)",
        ),
    ),
    Kind(
        name="date as a text",
        base="strftime(ntz, '%Y-%m-%d %H:%M:%S')",
        calls=("from_unixtime(b)", "date_format(ntz, 'yyyy-MM-dd HH:mm')"),
    ),
    Kind(
        name="text as a date",
        base="strptime(day_text, '%Y-%m-%d %H:%M:%S')",
        calls=(
            "to_date(day_text, 'yyyy-MM-dd HH:mm:ss')",
            "to_timestamp(day_text, 'yyyy-MM-dd HH:mm:ss')",
            "to_timestamp_ltz(day_text)",
            "to_timestamp_ntz(day_text, 'yyyy-MM-dd HH:mm:ss')",
            "try_to_timestamp(day_text)",
            "try_to_date(day_text)",
            "try_to_timestamp(day_text, 'yyyy-MM-dd HH:mm:ss')",
            "to_time(clock_text)",
            "try_to_time(clock_text)",
            "to_time(clock_text, 'HH:mm:ss')",
        ),
    ),
    Kind(
        name="bytes of a shape",
        base="st_aswkb(st_geomfromwkb(wkb))",
        calls=(
            "st_srid(st_geomfromwkb(wkb))",
            "st_srid(st_geogfromwkb(wkb))",
            "st_srid(st_setsrid(st_geomfromwkb(wkb), 3857))",
            "st_asbinary(st_geomfromwkb(wkb))",
            "st_asbinary(st_geogfromwkb(wkb), 'XDR')",
        ),
    ),
    Kind(
        name="sum of rows",
        base="sum(d)",
        calls=("try_sum(n)", "try_avg(n)", "mean(d)", "bit_and(n)", "bit_or(n)", "bit_xor(n)", "regr_count(d, u)"),
        query=_GROUPS,
    ),
    Kind(
        name="spread of rows",
        base="stddev_samp(d)",
        calls=("std(d)",),
        query=_GROUPS,
    ),
    Kind(name="skewness of rows", base="skewness(d::DOUBLE)", calls=("skewness(d)",), query=_GROUPS),
    Kind(name="kurtosis of rows", base="kurtosis_pop(d)", calls=("kurtosis(d)",), query=_GROUPS),
    Kind(
        name="regression of rows",
        base="regr_slope(d, u)",
        calls=tuple(f"regr_{name}(d, u)" for name in ("avgx", "avgy", "sxx", "syy", "sxy", "r2", "slope", "intercept")),
        query=_GROUPS,
    ),
    Kind(
        name="rank of rows",
        base="quantile_cont(d, 0.5)",
        calls=(
            "percentile_cont(0.5) WITHIN GROUP (ORDER BY d)",
            "percentile_disc(0.5) WITHIN GROUP (ORDER BY d)",
            "percentile_approx(d, 0.5)",
        ),
        query=_GROUPS,
    ),
    Kind(name="most frequent of rows", base="mode(few)", calls=("mode(few)", "mode(few, true)"), query=_GROUPS),
    Kind(
        name="list of rows",
        base="list_distinct(flatten(list(a)))",
        calls=("collect_union(a)",),
        query=_GROUPS,
    ),
    Kind(name="text of rows", base="string_agg(s, ',')", calls=("listagg(s, ',')",), query=_GROUPS),
    Kind(
        name="bitmap of rows",
        base="bitstring_agg(few, 0, 32767)",
        calls=("bitmap_construct_agg(few)",),
        query=_GROUPS,
    ),
    # DuckDB combines bits of one length alone, which the points have.
    Kind(name="bitmap of bitmaps", base="bit_or(wkb::BIT)", calls=("bitmap_or_agg(wkb)", "bitmap_and_agg(wkb)"), query=_GROUPS),
    Kind(
        name="window",
        base="row_number()",
        calls=("rank()", "dense_rank()", "percent_rank()", "counter_diff(b)"),
        query=_OVER,
    ),
    Kind(name="groups of a cube", base="grouping(g, few)", calls=("grouping_id()",), query=_CUBE),
    Kind(
        name="rows of an array",
        base="unnest(a)",
        calls=(
            "explode_outer(a)",
            "posexplode_outer(a)",
            "inline(rows)",
            "inline_outer(rows)",
            "stack(2, n, b)",
        ),
        query=_PARTS,
    ),
    # Each row gives one, of fields of JSON: the work is to read that, which an array without JSON says nothing of.
    Kind(
        name="fields of JSON",
        base="json_extract_string(js, ['$.id', '$.name'])",
        calls=("json_tuple(js, 'id', 'name')",),
        query=_FIELDS,
        base_query=_VALUE,
    ),
    Kind(
        name="sketch of distinct values",
        base="approx_count_distinct(b) EXPORT_STATE",
        calls=("hll_sketch_agg(b)", "theta_sketch_agg(b)"),
        query=_SMALL_GROUPS,
    ),
    Kind(
        name="sketch of distinct texts",
        base="approx_count_distinct(s) EXPORT_STATE",
        calls=("hll_sketch_agg(s)", "theta_sketch_agg(s)"),
        query=_SMALL_GROUPS,
    ),
    Kind(
        name="sketch of distinct values with numbers",
        base="list(b)",
        why_no_builtin=_NO_NUMBERS,
        calls=_sketch_calls(_TUPLES, "tuple_sketch_agg_KIND(b, CAST(few AS KIND))"),
        query=_SMALL_GROUPS,
    ),
    Kind(
        name="sketch of ranks",
        base="approx_quantile(d, 0.5) EXPORT_STATE",
        calls=tuple(f"kll_sketch_agg_{kind}({column})" for kind, column in _KLL_OF.items()),
        query=_SMALL_GROUPS,
    ),
    Kind(
        name="sketch of the most frequent",
        base="approx_top_k(few, 5)",
        calls=("approx_top_k(few, 5)", "approx_top_k_accumulate(CAST(i DIV 7 % 20 AS INT))"),
        query=_GROUPS,
    ),
    Kind(
        name="count of a sketch",
        base="finalize(counted)",
        calls=("hll_sketch_estimate(hll)", "theta_sketch_estimate(theta)"),
        is_of_sketches=True,
    ),
    Kind(
        name="union of two sketches",
        base="combine(counted, counted)",
        calls=("hll_union(hll, hll)", "theta_union(theta, other_theta)"),
        is_of_sketches=True,
    ),
    Kind(
        name="set of two sketches",
        base="md5(theta)",
        why_no_builtin="DuckDB's sketches of distinct values have a union alone",
        calls=("theta_intersection(theta, other_theta)", "theta_difference(theta, other_theta)"),
        is_of_sketches=True,
    ),
    Kind(
        name="sketches with numbers",
        base="md5(tuple_double)",
        why_no_builtin=_NO_NUMBERS,
        calls=_sketch_calls(
            _TUPLES,
            "tuple_union_KIND(tuple_KIND, other_KIND)",
            "tuple_intersection_KIND(tuple_KIND, other_KIND)",
            "tuple_difference_KIND(tuple_KIND, other_KIND)",
            "tuple_union_theta_KIND(tuple_KIND, theta)",
            "tuple_intersection_theta_KIND(tuple_KIND, theta)",
            "tuple_difference_theta_KIND(tuple_KIND, other_theta)",
            "tuple_sketch_estimate_KIND(tuple_KIND)",
            "tuple_sketch_theta_KIND(tuple_KIND)",
            "tuple_sketch_summary_KIND(tuple_KIND)",
        ),
        is_of_sketches=True,
    ),
    Kind(
        name="union of two sketches of ranks",
        base="combine(ranked, ranked)",
        calls=_sketch_calls(_KLL, "kll_sketch_merge_KIND(kll_KIND, kll_KIND)"),
        is_of_sketches=True,
    ),
    Kind(
        name="rank of a sketch",
        base="finalize(ranked)",
        calls=(
            *_sketch_calls(_KLL, "kll_sketch_get_n_KIND(kll_KIND)", "kll_sketch_get_quantile_KIND(kll_KIND, 0.5D)"),
            "kll_sketch_get_rank_bigint(kll_bigint, 5L)",
            "kll_sketch_get_rank_float(kll_float, 5.0F)",
            "kll_sketch_get_rank_double(kll_double, 5.0D)",
        ),
        is_of_sketches=True,
    ),
    Kind(
        name="text of a sketch",
        base="md5(kll_bigint)",
        why_no_builtin="DuckDB describes none of its sketches",
        calls=_sketch_calls(_KLL, "kll_sketch_to_string_KIND(kll_KIND)"),
        is_of_sketches=True,
    ),
    Kind(
        name="sketch of sketches",
        base="combine_aggr(counted)",
        calls=("hll_union_agg(hll)", "theta_union_agg(theta)"),
        query=_SMALL_GROUPS,
        is_of_sketches=True,
    ),
    Kind(
        name="sketch of sketches of ranks",
        base="combine_aggr(ranked)",
        calls=_sketch_calls(_KLL, "kll_merge_agg_KIND(kll_KIND)"),
        query=_SMALL_GROUPS,
        is_of_sketches=True,
    ),
    Kind(
        name="set of sketches",
        base="list(md5(theta))",
        why_no_builtin="DuckDB's sketches of distinct values have a union alone, and no numbers",
        calls=(
            "theta_intersection_agg(theta)",
            *_sketch_calls(_TUPLES, "tuple_union_agg_KIND(tuple_KIND)", "tuple_intersection_agg_KIND(tuple_KIND)"),
        ),
        query=_SMALL_GROUPS,
        is_of_sketches=True,
    ),
    Kind(
        name="states of the most frequent",
        base="approx_top_k(few, 5)",
        calls=("approx_top_k_combine(top, 10000)", "approx_top_k_estimate(top, 5)"),
        query=_STATES,
        base_query=_GROUPS,
    ),
)
