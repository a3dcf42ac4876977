"""Generates calls of the functions that DuckDB runs, with arguments at the edges of their types.

    calls of rows      f(a, b) over a table of all pairs of edges, and a few with written arguments, as engines read those otherwise
    aggregates         over groups of rows: plain ones, NULLs only, none, infinities and NaN, the ends of a type

A query whose rows include one that is an error says nothing about the others: whoever records splits it (``Edge.rows``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

# Of a type, its values as texts; None is NULL.
_VALUES: dict[str, tuple[str | None, ...]] = {
    "INT": (None, "0", "1", "-1", "7", "-3", "2147483647", "-2147483648"),
    "BIGINT": (None, "0", "7", "-3", "9223372036854775807", "-9223372036854775808"),
    "TINYINT": (None, "0", "127", "-128"),
    "SMALLINT": (None, "-1", "32767"),
    "DOUBLE": (None, "0.0", "-0.0", "1.0", "-1.0", "0.5", "-2.5", "1e300", "NaN", "Infinity", "-Infinity"),
    "FLOAT": (None, "-0.0", "0.1", "NaN", "-Infinity"),
    "DECIMAL(10, 2)": (None, "0", "1.25", "-1.25", "99999999.99"),
    "DECIMAL(38, 18)": (None, "-0.000000000000000001", "99999999999999999999.999999999999999999"),
    "BOOLEAN": (None, "true", "false"),
    "STRING": (None, "", "a", "Spark SQL", "späť ß", "\U0001f600x", " x ", "12", "a.b..c"),
    "DATE": (None, "1970-01-01", "2024-02-29", "1969-12-31", "9999-12-31", "0001-01-01", "2024-01-31", "2023-12-31"),
    "TIMESTAMP": (None, "1970-01-01 00:00:00", "2024-02-29 23:59:59.999999", "1969-12-31 23:59:59.5", "2024-11-03 05:30:00"),
}
# What cannot be cast from a text: as it is written.
_WRITTEN = {
    "NUMBERS": ("CAST(NULL AS ARRAY<INT>)", "CAST(array() AS ARRAY<INT>)", "array(1, CAST(NULL AS INT), 3)", "array(3, 1, 2, 3)"),
    "WORDS": ("CAST(NULL AS ARRAY<STRING>)", "CAST(array() AS ARRAY<STRING>)", "array('b', CAST(NULL AS STRING), 'ä')"),
    "NESTED": ("array(array(1, 2), array(3))", "array(array(1), CAST(NULL AS ARRAY<INT>))", "CAST(array() AS ARRAY<ARRAY<INT>>)"),
    "MAP": ("map('a', 1, 'b', CAST(NULL AS INT))", "CAST(map() AS MAP<STRING, INT>)", "CAST(NULL AS MAP<STRING, INT>)"),
    "SMALL": ("0", "1", "-1", "2", "5", "CAST(NULL AS INT)"),
    "SHORT": ("'ab'", "''", "'a'", "'ß'", "'.'", "CAST(NULL AS STRING)"),
    "JSON": (
        """'{"a": 1, "b": {"c": [1, 2.50, null]}, "d": null, "e": "x\\\\u00e9", "f": true, "g": 1e2}'""", "'[1, {\"a\": 2}]'",
        "'{}'", "'nothing'", "''", "'{\"a\": 1'", "'1'", "'{\"a b\": 3, \"a:b\": 4}'", "CAST(NULL AS STRING)",
    ),
    "NUMBERED": ("'12'", "' 12 '", "'-0'", "'+7'", "'1e3'", "'1.5'", "'x'", "''", "'NaN'", "'99999999999'", "CAST(NULL AS STRING)"),
    "DATED": ("'2024-02-29'", "'2024-2-9'", "'2024-02-30'", "'0001-01-01'", "''", "'2024-02-29 12:30:00'", "CAST(NULL AS STRING)"),
    "ENDS": ("CAST(NULL AS BIGINT)", "9223372036854775807", "-9223372036854775808"),
    "POSITIVE": ("1", "2", "3"),
}  # fmt: skip
_MOST_ROWS = 64
# Pairs of all values, and calls whose arguments are written, of one function.
_MOST_WRITTEN = 5


@dataclass(frozen=True)
class Edge:
    """Calls of one function. ``rows``: the arguments of each, as a table's rows."""

    function: str
    expression: str
    rows: tuple[tuple[str, ...], ...]

    def query(self, rows: Sequence[tuple[str, ...]]) -> str:
        """The calls over a table of some of the rows."""
        names = "abc"[: len(rows[0])]
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"SELECT {self.expression.format(*names)} AS r FROM VALUES {values} AS t ({', '.join(names)})"

    def written(self) -> Iterator[str]:
        """A few calls with their arguments in the text."""
        for row in self.rows[1 :: max(len(self.rows) // _MOST_WRITTEN, 1)]:
            yield f"SELECT {self.expression.format(*row)} AS r"


def edges(calls: str | None = None, written: Mapping[str, Sequence[str]] | None = None) -> Iterator[Edge]:
    """The calls of all functions whose result depends on one row. ``calls``, ``written``: others, and values that they name."""
    for function, expression, kinds in _signatures(_CALLS if calls is None else calls):
        rows = list(product(*(_values(kind, written) for kind in kinds)))
        yield Edge(function, expression, tuple(rows[:: -(-len(rows) // _MOST_ROWS)]))


def aggregates(calls: str | None = None) -> Iterator[tuple[str, str]]:
    """Functions, and queries that aggregate groups of rows. ``calls``: others."""
    for function, expression, kinds in _signatures(_AGGREGATES if calls is None else calls):
        for kind in kinds:
            values = _values(kind)
            for group in _groups(values):
                rows = ", ".join(f"({value}, {place})" for place, value in enumerate(group or values[:1]))
                where = "" if group else " WHERE false"
                yield function, f"SELECT {expression.format('a', 'b')} AS r FROM VALUES {rows} AS t (a, b){where}"


def _signatures(lines: str) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Of each line the function, an expression with places for arguments, and what they are."""
    for line in lines.strip().splitlines():
        expression, _, kinds = line.strip().partition(" | ")
        label, colon, behind = expression.partition(": ")
        function, expression = (label, behind) if colon else (expression.partition("(")[0], expression)
        yield function, expression, [part.strip() for part in kinds.split(";")]


def _groups(values: Sequence[str]) -> Iterator[Sequence[str]]:
    null, *others = values
    return iter(([*others[:3], others[0]], others[:1], others[:1] * 2, [null, null], [], others[-2:], others, values))


def _values(kind: str, written: Mapping[str, Sequence[str]] | None = None) -> Sequence[str]:
    if written is not None and kind in written:
        return written[kind]
    if kind in _WRITTEN:
        return _WRITTEN[kind]
    return [f"CAST(NULL AS {kind})" if value is None else f"CAST('{value}' AS {kind})" for value in _VALUES[kind]]


_CALLS = """
abs({0}) | INT
abs({0}) | BIGINT
abs({0}) | TINYINT
abs({0}) | DOUBLE
abs({0}) | DECIMAL(10, 2)
add_months({0}, {1}) | DATE; SMALL
add_months({0}, {1}) | DATED; SMALL
aggregate({0}, 0, (acc, x) -> acc + x) | NUMBERS
any_value: nvl2({0}, {1}, {1}) | INT; STRING
array({0}, {1}) | INT; INT
array({0}, {1}) | INT; DOUBLE
array_contains({0}, {1}) | NUMBERS; SMALL
array_contains({0}, {1}) | WORDS; SHORT
array_join({0}, {1}) | WORDS; SHORT
array_join({0}, ',', {1}) | WORDS; SHORT
array_size({0}) | NUMBERS
array_sort({0}) | NUMBERS
array_sort({0}) | WORDS
ascii({0}) | STRING
atan2({0}, {1}) | DOUBLE; DOUBLE
bigint({0}) | NUMBERED
bigint({0}) | DOUBLE
binary({0}) | STRING
bit_count({0}) | INT
bit_count({0}) | BIGINT
bit_count({0}) | TINYINT
bit_count({0}) | BOOLEAN
boolean({0}) | INT
boolean({0}) | STRING
cardinality({0}) | NUMBERS
cardinality({0}) | MAP
ceil({0}) | DOUBLE
ceil({0}) | DECIMAL(10, 2)
ceil({0}) | DECIMAL(38, 18)
ceil({0}) | BIGINT
ceiling({0}) | FLOAT
char({0}) | BIGINT
char_length({0}) | STRING
chr({0}) | INT
coalesce({0}, {1}) | INT; BIGINT
coalesce({0}, {1}) | DOUBLE; INT
coalesce({0}, {1}) | STRING; STRING
concat({0}, {1}) | STRING; STRING
concat({0}, {1}) | STRING; INT
concat({0}, {1}) | NUMBERS; NUMBERS
concat_ws({0}, {1}, 'z') | SHORT; STRING
concat_ws(',', {0}, {1}) | WORDS; STRING
contains({0}, {1}) | STRING; SHORT
cos({0}) | DOUBLE
count_if: if({0}, 1, 2) | BOOLEAN
date({0}) | DATED
date({0}) | TIMESTAMP
date_add({0}, {1}) | DATE; SMALL
date_add({0}, {1}) | DATED; SMALL
date_add({0}, {1}) | TIMESTAMP; SMALL
date_diff({0}, {1}) | DATE; DATE
datediff({0}, {1}) | DATED; DATE
datediff(MONTH, {0}, {1}) | DATE; DATE
datediff(YEAR, {0}, {1}) | TIMESTAMP; TIMESTAMP
date_format({0}, 'yyyy-MM-dd') | DATE
date_format({0}, 'yyyy/MM/dd HH:mm:ss') | TIMESTAMP
date_format({0}, 'EEE d MMM yy') | DATE
date_format({0}, 'yyyy') | DATED
date_from_unix_date({0}) | SMALL
date_sub({0}, {1}) | DATE; SMALL
date_trunc('month', {0}) | TIMESTAMP
date_trunc('week', {0}) | DATE
date_trunc('quarter', {0}) | TIMESTAMP
date_trunc('hour', {0}) | DATED
dateadd({0}, {1}) | DATE; SMALL
dateadd(MONTH, {1}, {0}) | DATE; SMALL
day({0}) | DATE
day({0}) | DATED
day({0}) | TIMESTAMP
dayname({0}) | DATE
dayofmonth({0}) | DATE
dayofweek({0}) | DATE
dayofweek({0}) | DATED
dayofyear({0}) | DATE
decode({0}, 1, 'one', 7, 'seven', 'other') | INT
decode({0}, 'a', 1, NULL, 2) | STRING
degrees({0}) | DOUBLE
double({0}) | NUMBERED
double({0}) | DECIMAL(38, 18)
element_at({0}, 1) | NUMBERS
element_at({0}, -1) | NUMBERS
element_at({0}, 'a') | MAP
endswith({0}, {1}) | STRING; SHORT
exp({0}) | DOUBLE
explode({0}) | NUMBERS
extract(YEAR FROM {0}) | DATE
extract(WEEK FROM {0}) | DATE
extract(DOW FROM {0}) | DATE
extract(HOUR FROM {0}) | TIMESTAMP
extract(MINUTE FROM {0}) | TIMESTAMP
filter({0}, x -> x > 1) | NUMBERS
flatten({0}) | NESTED
float({0}) | NUMBERED
float({0}) | DOUBLE
floor({0}) | DOUBLE
floor({0}) | DECIMAL(10, 2)
floor({0}) | BIGINT
from_utc_timestamp({0}, 'Asia/Seoul') | TIMESTAMP
from_utc_timestamp({0}, 'America/New_York') | TIMESTAMP
from_utc_timestamp({0}, 'GMT+1') | TIMESTAMP
from_utc_timestamp({0}, 'Europe/Rome') | DATED
from_utc_timestamp({0}, 'UTC') | DATE
get_json_object({0}, '$.a') | JSON
get_json_object({0}, '$.b') | JSON
get_json_object({0}, '$.b.c[1]') | JSON
get_json_object({0}, '$.b.c[2]') | JSON
get_json_object({0}, '$.d') | JSON
get_json_object({0}, '$.e') | JSON
get_json_object({0}, '$.f') | JSON
get_json_object({0}, '$.g') | JSON
get_json_object({0}, '$[1].a') | JSON
get_json_object({0}, '$[*].a') | JSON
get_json_object({0}, '$.*') | JSON
get_json_object({0}, '$..a') | JSON
get_json_object({0}, 'a') | JSON
get_json_object({0}, '$.a:b') | JSON
get_json_object({0}, '$.a b') | JSON
get_json_object({0}, '$') | JSON
get_json_object({0}, '') | JSON
greatest({0}, {1}) | INT; INT
greatest({0}, {1}) | DOUBLE; DOUBLE
greatest({0}, {1}) | INT; DOUBLE
greatest({0}, {1}) | STRING; STRING
greatest({0}, {1}) | DATE; DATE
hex({0}) | INT
hex({0}) | BIGINT
hex({0}) | STRING
hour({0}) | TIMESTAMP
hour({0}) | DATED
if({0}, {1}, 1.5D) | BOOLEAN; INT
ifnull({0}, {1}) | INT; BIGINT
ilike({0}, {1}) | STRING; SHORT
initcap({0}) | STRING
instr({0}, {1}) | STRING; SHORT
int({0}) | NUMBERED
int({0}) | DOUBLE
int({0}) | BIGINT
int({0}) | BOOLEAN
int({0}) | DECIMAL(10, 2)
isnan({0}) | DOUBLE
isnan({0}) | INT
isnotnull({0}) | STRING
isnull({0}) | STRING
last_day({0}) | DATE
last_day({0}) | DATED
lcase({0}) | STRING
least({0}, {1}) | INT; INT
least({0}, {1}) | DOUBLE; DOUBLE
least({0}, {1}) | DECIMAL(10, 2); INT
left({0}, {1}) | STRING; SMALL
len({0}) | STRING
length({0}) | STRING
levenshtein({0}, {1}) | STRING; SHORT
like({0}, 'a%') | STRING
like: {0} LIKE {1} | STRING; SHORT
ln({0}) | DOUBLE
locate({1}, {0}) | STRING; SHORT
locate('a', {0}, {1}) | STRING; SMALL
log({0}) | DOUBLE
log({0}, {1}) | DOUBLE; DOUBLE
log10({0}) | DOUBLE
log2({0}) | DOUBLE
lower({0}) | STRING
lpad({0}, {1}, {2}) | STRING; SMALL; SHORT
lpad({0}, 4) | STRING
ltrim({0}) | STRING
make_date({0}, 2, {1}) | POSITIVE; SMALL
map('k', {0}) | INT
map({0}, 1) | STRING
map_keys({0}) | MAP
map_values({0}) | MAP
md5({0}) | STRING
minute({0}) | TIMESTAMP
mod({0}, {1}) | INT; INT
mod({0}, {1}) | BIGINT; INT
mod({0}, {1}) | DOUBLE; DOUBLE
mod({0}, {1}) | DECIMAL(10, 2); INT
month({0}) | DATE
month({0}) | DATED
monthname({0}) | DATE
months_between({0}, {1}) | DATE; DATE
months_between({0}, {1}) | TIMESTAMP; DATE
named_struct('x', {0}, 'y', {1}) | INT; STRING
next_day({0}, 'TU') | DATE
next_day({0}, 'x') | DATE
next_day({0}, 'monday') | DATED
nullif({0}, {1}) | INT; INT
nullif({0}, {1}) | DOUBLE; DOUBLE
nullif({0}, {1}) | STRING; SHORT
nvl({0}, {1}) | INT; DOUBLE
nvl2({0}, {1}, 0) | STRING; INT
overlay({0} PLACING 'X' FROM {1}) | STRING; SMALL
overlay({0} PLACING 'XYZ' FROM 2 FOR {1}) | STRING; SMALL
pmod({0}, {1}) | INT; INT
pmod({0}, {1}) | BIGINT; BIGINT
pmod({0}, {1}) | DOUBLE; DOUBLE
pmod({0}, {1}) | DECIMAL(10, 2); DECIMAL(10, 2)
pmod({0}, {1}) | TINYINT; TINYINT
position({1}, {0}) | STRING; SHORT
position({1} IN {0}) | STRING; SHORT
pow({0}, {1}) | DOUBLE; DOUBLE
power({0}, {1}) | INT; SMALL
quarter({0}) | DATE
radians({0}) | DOUBLE
reduce({0}, 1, (acc, x) -> acc * x) | NUMBERS
regexp_extract({0}, '(a)|(b)', {1}) | STRING; POSITIVE
regexp_extract({0}, '(a)|(b)', 2) | STRING
regexp_extract({0}, '(a)', 1) | STRING
regexp_extract({0}, 'a.b', 0) | STRING
regexp_extract({0}, '(a)(x)?', 2) | STRING
regexp_extract({0}, 'a', 1) | STRING
regexp_like({0}, '^a') | STRING
regexp_like({0}, '\\w') | STRING
regexp_replace({0}, 'a', 'b') | STRING
regexp_replace({0}, '', '-') | STRING
regexp_replace({0}, '(.)', '$1$1') | STRING
repeat({0}, {1}) | STRING; SMALL
replace({0}, 'a', 'b') | STRING
replace({0}, {1}) | STRING; SHORT
replace({0}, {1}, 'z') | STRING; SHORT
reverse({0}) | STRING
reverse({0}) | NUMBERS
right({0}, {1}) | STRING; SMALL
rlike({0}, 'S.*k') | STRING
round({0}) | DOUBLE
round({0}, 1) | DOUBLE
round({0}, -1) | DOUBLE
round({0}) | DECIMAL(10, 2)
round({0}, 1) | DECIMAL(10, 2)
round({0}, -1) | DECIMAL(10, 2)
round({0}, -1) | INT
round({0}, 1) | INT
round({0}, -1) | BIGINT
round({0}, 1) | FLOAT
rpad({0}, {1}, {2}) | STRING; SMALL; SHORT
rpad({0}, 4) | STRING
rtrim({0}) | STRING
second({0}) | TIMESTAMP
sequence({0}, {1}) | POSITIVE; POSITIVE
sequence(1, 3) | POSITIVE
sha({0}) | STRING
sha1({0}) | STRING
sha2({0}, 256) | STRING
sha2({0}, 0) | STRING
sha2({0}, 224) | STRING
shiftleft({0}, {1}) | INT; SMALL
shiftleft({0}, {1}) | BIGINT; SMALL
shiftright({0}, {1}) | INT; SMALL
shiftright({0}, {1}) | BIGINT; SMALL
sign({0}) | DOUBLE
sign({0}) | INT
sign({0}) | DECIMAL(10, 2)
signum({0}) | BIGINT
sin({0}) | DOUBLE
size({0}) | NUMBERS
size({0}) | MAP
slice({0}, 1, 2) | NUMBERS
slice({0}, 2, 0) | NUMBERS
slice({0}, {1}, 1) | NUMBERS; SMALL
smallint({0}) | INT
sort_array({0}) | NUMBERS
sort_array({0}, false) | NUMBERS
sort_array({0}) | WORDS
split({0}, 'a') | STRING
split({0}, '') | STRING
split({0}, '[.]') | STRING
split_part({0}, {1}, 1) | STRING; SHORT
split_part({0}, '.', {1}) | STRING; SMALL
sqrt({0}) | DOUBLE
sqrt({0}) | INT
startswith({0}, {1}) | STRING; SHORT
string({0}) | INT
string({0}) | DOUBLE
string({0}) | DECIMAL(10, 2)
string({0}) | DATE
string({0}) | TIMESTAMP
string({0}) | BOOLEAN
struct({0}, {1}) | INT; STRING
substr({0}, {1}) | STRING; SMALL
substring({0}, {1}, {2}) | STRING; SMALL; SMALL
tan({0}) | DOUBLE
timestamp({0}) | DATED
timestamp({0}) | DATE
timestampdiff(HOUR, {0}, {1}) | TIMESTAMP; TIMESTAMP
timestampdiff(MONTH, {0}, {1}) | TIMESTAMP; TIMESTAMP
tinyint({0}) | INT
tinyint({0}) | NUMBERED
to_date({0}) | DATED
to_date({0}, 'yyyy-MM-dd') | DATED
to_json(named_struct('x', {0}, 'y', {1})) | INT; STRING
to_json(named_struct('x', {0})) | DOUBLE
to_timestamp({0}) | DATED
to_timestamp({0}, 'yyyy-MM-dd') | DATED
to_unix_timestamp({0}) | TIMESTAMP
to_utc_timestamp({0}, 'Asia/Seoul') | TIMESTAMP
to_utc_timestamp({0}, 'America/New_York') | TIMESTAMP
to_utc_timestamp({0}, '+01:00') | TIMESTAMP
to_utc_timestamp({0}, 'Europe/Rome') | DATED
transform({0}, x -> x + 1) | NUMBERS
transform({0}, x -> upper(x)) | WORDS
translate({0}, 'aS', 'b') | STRING
translate({0}, {1}, 'xyz') | STRING; SHORT
trim({0}) | STRING
trim(BOTH 'a' FROM {0}) | STRING
trim(LEADING {1} FROM {0}) | STRING; SHORT
trunc({0}, 'MM') | DATE
trunc({0}, 'week') | DATE
trunc({0}, 'year') | DATED
trunc({0}, 'x') | DATE
try_cast({0} AS INT) | NUMBERED
try_cast({0} AS DOUBLE) | NUMBERED
try_cast({0} AS DATE) | DATED
try_cast({0} AS DECIMAL(5, 2)) | NUMBERED
try_cast({0} AS DECIMAL(1, 1)) | BOOLEAN
try_cast({0} AS DECIMAL(3, 1)) | DOUBLE
try_cast({0} AS TINYINT) | INT
try_cast({0} AS INT) | DOUBLE
try_cast({0} AS BOOLEAN) | STRING
try_cast({0} AS TIMESTAMP) | DATED
cast: CAST({0} AS DECIMAL(1, 1)) | BOOLEAN
cast: CAST({0} AS DECIMAL(5, 2)) | DECIMAL(38, 18)
cast: CAST({0} AS BIGINT) | TIMESTAMP
cast: CAST({0} AS TIMESTAMP) | BIGINT
cast: CAST({0} AS BOOLEAN) | DOUBLE
try_element_at({0}, 1) | NUMBERS
try_element_at({0}, 'a') | MAP
ucase({0}) | STRING
unhex({0}) | NUMBERED
unix_date({0}) | DATE
unix_timestamp({0}) | TIMESTAMP
unix_timestamp({0}) | DATED
upper({0}) | STRING
weekday({0}) | DATE
weekofyear({0}) | DATE
year({0}) | DATE
year({0}) | DATED
-: -{0} | INT
-: -({0}) | BIGINT
-: -{0} | DOUBLE
+: {0} + {1} | INT; INT
+: {0} + {1} | TINYINT; TINYINT
+: {0} + {1} | DOUBLE; FLOAT
-: {0} - {1} | BIGINT; BIGINT
*: {0} * {1} | INT; INT
*: {0} * {1} | DECIMAL(10, 2); DECIMAL(38, 18)
/: {0} / {1} | INT; INT
/: {0} / {1} | DOUBLE; DOUBLE
/: {0} / {1} | DECIMAL(10, 2); INT
%: {0} % {1} | INT; INT
%: {0} % {1} | DOUBLE; DOUBLE
div: {0} DIV {1} | INT; INT
div: {0} DIV {1} | BIGINT; BIGINT
&: {0} & {1} | INT; INT
^: {0} ^ {1} | INT; BIGINT
~: ~{0} | INT
=: {0} = {1} | DOUBLE; DOUBLE
<: {0} < {1} | DOUBLE; DOUBLE
<=>: {0} <=> {1} | INT; INT
between: {0} BETWEEN -1 AND 7 | INT
in: {0} IN (1, 7, NULL) | INT
||: {0} || {1} | STRING; SHORT
not: NOT {0} | BOOLEAN
and: {0} AND {1} | BOOLEAN; BOOLEAN
or: {0} OR {1} | BOOLEAN; BOOLEAN
case: CASE {0} WHEN 1 THEN 'x' WHEN NULL THEN 'y' END | INT
exists: EXISTS (SELECT {0}) | INT
"""
_AGGREGATES = """
any(a) | BOOLEAN
any_value(a) | INT; STRING
approx_count_distinct(a) | INT; STRING
array_agg(a) | INT; STRING
avg(a) | INT; ENDS; DOUBLE; FLOAT; DECIMAL(10, 2); DECIMAL(38, 18); TINYINT
bool_and(a) | BOOLEAN
bool_or(a) | BOOLEAN
collect_list(a) | INT; STRING; DOUBLE
collect_set(a) | INT; STRING; BOOLEAN
size(collect_list(a)) | INT
size(collect_set(a)) | STRING
corr(a, b) | INT; DOUBLE; DECIMAL(10, 2)
corr(a, a) | DOUBLE
count(a) | INT; DOUBLE
count(DISTINCT a) | INT; DOUBLE; STRING
count_if(a > 0) | INT; DOUBLE
covar_pop(a, b) | INT; DOUBLE
covar_samp(a, b) | INT; DOUBLE
every(a) | BOOLEAN
first(a) | INT
first_value(a) | STRING
last(a) | INT
last_value(a) | STRING
max(a) | INT; BIGINT; DOUBLE; FLOAT; STRING; DATE; TIMESTAMP; BOOLEAN; DECIMAL(38, 18)
max_by(a, b) | INT; STRING
max_by(a, b) | DOUBLE
median(a) | INT; DOUBLE; DECIMAL(10, 2)
min(a) | INT; BIGINT; DOUBLE; FLOAT; STRING; DATE; TIMESTAMP; BOOLEAN
min_by(a, b) | INT; DOUBLE; STRING
percentile(a, 0.5) | INT; DOUBLE
percentile(a, 0) | INT
some(a) | BOOLEAN
stddev(a) | INT; DOUBLE; BIGINT
stddev_pop(a) | INT; DOUBLE
stddev_samp(a) | INT; DECIMAL(10, 2)
sum(a) | INT; BIGINT; DOUBLE; FLOAT; DECIMAL(10, 2); DECIMAL(38, 18); TINYINT
sum(DISTINCT a) | INT; DOUBLE
var_pop(a) | INT; DOUBLE
var_samp(a) | INT; DOUBLE
variance(a) | INT; DOUBLE
"""
