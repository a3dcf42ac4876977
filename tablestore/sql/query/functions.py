"""Finds where a query calls functions, and knows those that Spark has.

    SELECT lake.shop.net(price) FROM orders          SELECT __tablestore_function_0_net(price) FROM orders
           -------------

A walk over the tokens: a name with a parenthesis behind it, unless it is a word of SQL's, or names columns.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.query.tablereferences import CALLS
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Edit, Path, Span, apply_edits
from tablestore.sql.sqldialect import SqlDialect
from tablestore.types.typestring import quote_identifier

FUNCTION_PREFIX = "__tablestore_function_"
_CALL = "_tablestore_call"
# Each word is looked at once, however long: none is begun in its middle, or given up sign by sign.
_CALLED = re.compile(r"(?<![\w.`$])([\w.`$]++)\s*+\(")
_PREFIX, _COUNTED = re.compile(rf"{FUNCTION_PREFIX}\d+[at]?_"), re.compile(r":_\d+\b")
_PREFIX_OF_CALL = re.compile(rf"{_PREFIX.pattern}(?=\w*[`\"]?\s*\()")
# With a parenthesis behind them they call nothing; as the name of a function they stand between backticks.
_WORDS = frozenset({
    "ALL", "AND", "ANY", "AS", "BETWEEN", "BY", "CASE", "CAST", "CUBE", "DISTINCT", "ELSE", "EXCEPT", "EXISTS", "EXTRACT",
    "FILTER", "FROM", "GROUP", "HAVING", "IDENTIFIER", "IN", "INTERSECT", "INTERVAL", "IS", "JOIN", "LATERAL", "LIKE",
    "LIMIT", "NOT", "ON", "OR", "ORDER", "OVER", "PARTITION", "RECURSIVE", "ROLLUP", "SELECT", "SETS", "SOME", "TABLE",
    "THEN", "UNION", "USING", "VALUES", "WHEN", "WHERE", "WITH", "WITHIN",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFunction:
    """A function whose body is an expression over its parameters, in Spark's words; types are SQL text.

        net(price, 2)    get(transform(array(named_struct('x', CAST((price) AS INT), 'y', CAST((2) AS INT))),
                             _tablestore_call -> CAST((_tablestore_call.x / _tablestore_call.y) AS INT)), 0)

    So each argument is computed once, whatever the body does with it, and stays where it is in the text.
    """

    name: str
    parameters: tuple[str, ...]
    types: tuple[str, ...]
    returns: str
    body: str

    @property
    def computed(self) -> str:
        """The body over the values of a call."""
        known = {name.casefold(): name for name in self.parameters}
        tokens, edits = Tokens(self.body), []
        for at, behind in _names(tokens):
            name = known.get(tokens.name(at).casefold())
            if name is not None and tokens.key(behind) != "(":
                edits.append(Edit(span=tokens[at].span, text=f"{_CALL}.{quote_identifier(name)}"))
        return f"CAST(({apply_edits(self.body, edits, str)}) AS {self.returns})"

    def edits(self, tokens: Tokens, at: int, opening: int) -> Iterator[Edit]:
        """The edits that write the function in the place of a call whose name begins ``at`` and whose parenthesis is ``opening``.

        Raises InvalidInputError for another number of arguments, UnsupportedError for words other than Spark's.
        """
        if tokens.dialect is not SqlDialect.SPARK:
            raise UnsupportedError(
                f"function {self.name} is an expression in Spark's words, and this query is in those of {tokens.dialect}: write "
                "the query in Spark's words",
                kind="function",
            )
        closing, commas = tokens.close(opening), list(self._commas(tokens, opening))
        arguments = 0 if closing == opening + 1 else len(commas) + 1
        if arguments != len(self.parameters) or closing >= len(tokens):
            raise InvalidInputError(
                f"function {self.name} takes {len(self.parameters)} argument(s) ({', '.join(self.parameters) or 'none'}), found "
                f"{arguments}",
                kind="function",
            )
        if not self.parameters:
            yield Edit(span=Span(tokens[at].start, tokens[closing].end), text=self.computed)
            return
        names = [f"'{name.replace(chr(39), chr(39) * 2)}'" for name in self.parameters]
        yield Edit(span=Span(tokens[at].start, tokens[opening].end), text=f"get(transform(array(named_struct({names[0]}, CAST((")
        for place, comma in enumerate(commas):
            yield Edit(span=tokens[comma].span, text=f") AS {self.types[place]}), {names[place + 1]}, CAST((")
        yield Edit(span=tokens[closing].span, text=f") AS {self.types[-1]}))), {_CALL} -> {self.computed}), 0)")

    @staticmethod
    def _commas(tokens: Tokens, opening: int) -> Iterator[int]:
        at, closing = opening + 1, tokens.close(opening)
        while at < closing:
            if tokens.key(at) == "(":
                at = tokens.close(at)
            elif tokens.key(at) == ",":
                yield at
            at += 1


Called = str | SqlFunction
"""The name by which an engine calls a function, or a function that is written into the query."""


def function_edits(tokens: Tokens, resolve: Callable[[Path], Called | None]) -> Iterator[Edit]:
    """The edits that put what ``resolve`` gives in the places of functions; None leaves a name as it is. By their place."""
    return iter(sorted(_function_edits(tokens, resolve), key=lambda edit: edit.span))


def _function_edits(tokens: Tokens, resolve: Callable[[Path], Called | None]) -> Iterator[Edit]:
    for at, behind in _names(tokens):
        if tokens.key(behind) == "(" and not _is_word(tokens, at, behind) and not _names_columns(tokens, at, behind):
            span = Span(tokens[at].start, tokens[behind - 1].end)
            name = resolve(Path(tuple(tokens.name(i) for i in range(at, behind, 2)), span))
            if isinstance(name, SqlFunction):
                yield from name.edits(tokens, at, behind)
            elif name is not None:
                if tokens.dialect is not SqlDialect.SPARK and kind_of_name(name) != "scalar":
                    raise UnsupportedError(
                        f"the function {without_prefix(name)} is one of groups, or gives rows, and called in Spark's words alone, "
                        f"not in those of {tokens.dialect}",
                        kind="function",
                    )
                yield Edit(span=span, text=name)


def engine_name(number: int, name: str, kind: str) -> str:
    """The name by which an engine calls a function of the user's; ``kind``: scalar, aggregate or table, which a name tells."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)[:60]
    return f"{FUNCTION_PREFIX}{number}{'' if kind == 'scalar' else kind[0]}_{word}".lower()


def kind_of_name(name: str) -> str | None:
    """``scalar``, ``aggregate`` or ``table`` for the engine's name of a function of the user's; None for any other name."""
    match = _PREFIX.match(name.lower())
    return None if match is None else {"a": "aggregate", "t": "table"}.get(match[0][-2], "scalar")


def may_call_others(text: str) -> bool:
    """True if a text may call functions that are none of Spark's. Quick, and true too often, of quoted texts as well."""
    for call in _CALLED.finditer(text):
        name = call[1]
        if not (is_spark_function(name) or name.upper() in _WORDS or name.lower() in CALLS):
            return True
    return False


def is_spark_function(name: str) -> bool:
    """True if Spark has a function of this name."""
    return name.lower() in SPARK_FUNCTIONS or name.lower() in _OF_THE_GRAMMAR


def as_written(text: str) -> str:
    """A part of a bound query with functions of the user's under their own names, and question marks that were counted."""
    return _COUNTED.sub("?", with_own_calls(text))


def with_own_calls(text: str) -> str:
    """A text with calls of the user's functions under their own names; other names in it may look like those of functions."""
    return _PREFIX_OF_CALL.sub("", text)


def without_prefix(text: str) -> str:
    """A text with functions of the user's under their own names."""
    return _PREFIX.sub("", text)


def _names(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """The names of a text, of one part or several: where each begins, and the place behind it."""
    at = 0
    while at < len(tokens):
        if not tokens.is_name(at):
            at += 1
            continue
        behind = tokens.after_chain(at)
        yield at, behind
        at = behind


def _is_word(tokens: Tokens, at: int, behind: int) -> bool:
    return behind == at + 1 and (tokens.key(at) in _WORDS or tokens.key(at).lower() in CALLS)


def _names_columns(tokens: Tokens, at: int, behind: int) -> bool:
    """True if a name stands before a list of columns: ``… AS t (a, b)`` and ``WITH t (a, b) AS (…)``."""
    end = tokens.after_group(behind)
    return tokens.key(at - 1) == "AS" or (tokens.key(end) == "AS" and tokens.key(end + 1) == "(")


_SPARKS = """
    abs acos acosh add_months aes_decrypt aes_encrypt aggregate and any any_value approx_count_distinct approx_percentile
    approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate array array_agg array_append
    array_compact array_contains array_distinct array_except array_insert array_intersect array_join array_max array_min
    array_position array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii
    asin asinh assert_true atan atan2 atanh avg base64 between bigint bin binary bit_and bit_count bit_get bit_length bit_or
    bit_xor bitmap_and_agg bitmap_bit_position bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg bool_and
    bool_or boolean bround btrim cardinality case cast cbrt ceil ceiling char char_length character_length chr coalesce
    collate collation collations collect_list collect_set collect_union concat concat_ws contains conv convert_timezone corr
    cos cosh cot count count_if count_min_sketch counter_diff covar_pop covar_samp crc32 csc cume_dist curdate
    current_catalog current_database current_date current_path current_schema current_time current_timestamp
    current_timezone current_user date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees dense_rank div double e
    element_at elt encode endswith equal_null every exists exp explode explode_outer expm1 extract factorial filter
    find_in_set first first_value flatten float floor forall format_number format_string from_avro from_base32 from_csv
    from_json from_protobuf from_unixtime from_utc_timestamp from_xml get get_json_object getbit greatest grouping
    grouping_id hash hex histogram_numeric hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg hmac hour hypot if
    ifnull ilike in initcap inline inline_outer input_file_block_length input_file_block_start input_file_name instr int
    is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull jaro_winkler_similarity java_method
    json_array_length json_object_keys json_tuple kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint kll_sketch_get_n_double
    kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
    kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint
    kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
    kll_sketch_to_string_float kurtosis lag last last_day last_value lcase lead least left len length levenshtein like
    listagg ln localtime localtimestamp locate log log10 log1p log2 lower lpad ltrim luhn_check make_date make_dt_interval
    make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval map
    map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with
    mask max max_by md5 mean measure median min min_by minute mod mode monotonically_increasing_id month monthname
    months_between named_struct nanvl negative next_day not now nth_value ntile nullif nullifzero nvl nvl2 octet_length or
    overlay parse_json parse_url percent_rank percentile percentile_approx percentile_cont percentile_disc pi pmod
    posexplode posexplode_outer position positive pow power printf python_worker_logs quarter quote radians raise_error rand
    randn random randstr range rank reduce reflect regexp regexp_count regexp_extract regexp_extract_all regexp_instr
    regexp_like regexp_replace regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy repeat replace reverse right rint rlike round row_number rpad rtrim schema_of_avro schema_of_csv
    schema_of_json schema_of_variant schema_of_variant_agg schema_of_xml sec second sentences sequence session_user
    session_window sha sha1 sha2 shiftleft shiftright shiftrightunsigned shuffle sign signum sin sinh size skewness slice
    smallint some sort_array soundex space spark_partition_id split split_part sql_keywords sqrt st_asbinary st_geogfromwkb
    st_geomfromwkb st_setsrid st_srid stack startswith std stddev stddev_pop stddev_samp str_to_map string string_agg struct
    substr substring substring_index sum tan tanh theta_difference theta_intersection theta_intersection_agg
    theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg time time_bucket time_diff time_from_micros
    time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp timestamp_micros
    timestamp_millis timestamp_nanos timestamp_seconds tinyint to_avro to_base32 to_binary to_char to_csv to_date to_json
    to_number to_protobuf to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp
    to_varchar to_variant_object to_xml transform transform_keys transform_values translate trim trunc try_add
    try_aes_decrypt try_avg try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url try_reflect try_subtract try_sum try_to_binary
    try_to_date try_to_number try_to_time try_to_timestamp try_url_decode try_validate_utf8 try_variant_array_append
    try_variant_get try_variant_insert try_variant_set tuple_difference_double tuple_difference_integer
    tuple_difference_theta_double tuple_difference_theta_integer tuple_intersection_agg_double
    tuple_intersection_agg_integer tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
    tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_sketch_estimate_double
    tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double
    tuple_sketch_theta_integer tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
    tuple_union_theta_double tuple_union_theta_integer typeof ucase unbase64 unhex uniform unix_date unix_micros unix_millis
    unix_nanos unix_seconds unix_timestamp upper url_decode url_encode user uuid validate_utf8 var_pop var_samp variance
    variant_array_append variant_delete variant_explode variant_explode_outer variant_get variant_insert variant_set
    variant_strip_nulls vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm
    vector_normalize vector_sum version weekday weekofyear when width_bucket window window_time xpath xpath_boolean
    xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string xxhash64 year zeroifnull zip_with
"""
SPARK_FUNCTIONS = frozenset(_SPARKS.split())
"""The functions that Spark 4.3 lists by SHOW FUNCTIONS, but for operators. A test on Spark compares."""
_OF_THE_GRAMMAR = frozenset(("all", "identifier", "timestampadd", "timestampdiff", "try_cast"))
