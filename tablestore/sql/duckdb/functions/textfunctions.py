"""Writes functions of texts and bytes with Spark's meaning, in DuckDB's words where it has them, else by :mod:`textvalues`.

Calls that sqlglot has a node for (UPPER, INITCAP, LIKE) are in :mod:`tablestore.sql.duckdb.functions.textnodes`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.signatures import ResultOf, Types, always
from tablestore.sql.binding.sqltypes import BIGINT, BINARY, BOOLEAN, DOUBLE, INT, STRING, VOID, SqlType, Type
from tablestore.sql.duckdb.calls import failing, refused_where
from tablestore.sql.duckdb.functions import bytecolumns, textdistances, textnodes, textvalues
from tablestore.sql.duckdb.functions.argumenttypes import binary, integer, text, written_text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import MANY, FunctionRule, RuleCall, from_text
from tablestore.sql.duckdb.functions.valuefunctions import by_value, over_texts


def _between_alike(name: str, of: SqlType, result: SqlType, call: Callable[[Any, str], Any]) -> ArrowFunction:
    """A function between texts and bytes by a character set, of which UTF-8 changes no byte, and others none of ASCII."""
    function = by_value(name, (of, STRING), result, call)

    def over(values: pa.Array, charsets: pa.Array) -> pa.Array:
        names = charsets.unique().to_pylist()
        if result == BINARY and len(names) == 1 and names[0] is not None and bytecolumns.is_utf16(names[0]):
            return bytecolumns.encode_utf16(values, names[0])
        if len(names) == 1 and names[0] is not None and names[0].upper() in ("UTF-8", "US-ASCII", "ISO-8859-1"):
            try:
                texts = values.cast(pa.string())
            except pa.ArrowInvalid:
                return function.call(values, charsets)
            if names[0].upper() == "UTF-8" or pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
                return texts.cast(pa.binary()) if result == BINARY else texts
        return function.call(values, charsets)

    return replace(function, call=over)


# What a digit adds to a check sum by Luhn, at an even and at an odd place from the end.
_TERMS = np.zeros((2, 256), np.int8)
_TERMS[:, ord("0") : ord("9") + 1] = (range(10), (0, 2, 4, 6, 8, 1, 3, 5, 7, 9))


def _luhn_checked(texts: pa.Array) -> pa.Array:
    """Checks the sums of digits by Luhn of all texts at once. The empty text has none."""
    filled = texts.fill_null("")
    offsets = np.frombuffer(filled.buffers()[1], np.int32, len(filled) + 1, filled.offset * 4)
    data = np.frombuffer(filled.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    are_odd = (np.repeat((offsets[1:] - 1).astype(np.uint8) & 1, np.diff(offsets)) ^ (np.arange(len(data)) & 1)).astype(np.bool_)
    terms = np.where(are_odd, _TERMS[1][data], _TERMS[0][data])
    are_digits = (data >= ord("0")) & (data <= ord("9"))
    sums, digits = (np.diff(np.concatenate(([0], np.cumsum(part, dtype=np.int64)))[offsets]) for part in (terms, are_digits))
    right = (digits == np.diff(offsets)) & (sums % 10 == 0) & (digits > 0)
    return pa.array(right, pa.bool_(), mask=np.asarray(texts.is_null()))


def _by_letters(function: ArrowFunction) -> ArrowFunction:
    """A function of a text whose other arguments say what each letter becomes: texts of ASCII are translated all at once."""

    def over(texts: pa.Array, *masks: pa.Array) -> pa.Array:
        are_ascii = pc.string_is_ascii(texts)
        are_one = all(len(mask.unique()) == 1 for mask in masks)
        letters = [mask[0].as_py() for mask in masks] if are_one else []
        if not letters or not all(one is None or one.isascii() for one in letters):
            return function.call(texts, *masks)
        plain = pc.if_else(are_ascii, texts, "")
        table = "".join(textvalues.mask(chr(code), *letters) or "" for code in range(128)).encode()
        _, offsets, data = plain.buffers()
        translated = pa.py_buffer((data or pa.py_buffer(b"")).to_pybytes().translate(table.ljust(256, b"?")))
        masked = pa.StringArray.from_buffers(len(plain), offsets, translated, offset=plain.offset)
        others = pc.invert(are_ascii).fill_null(False)
        if pc.any(others, min_count=0).as_py():
            beyond = bytecolumns.with_other_characters(texts.filter(others), textvalues.MaskOfLetters(*letters))
            masked = pc.replace_with_mask(masked, others, beyond)
        return pc.if_else(texts.is_valid(), masked, pa.scalar(None, pa.string()))

    return replace(function, call=over)


_SOUNDEX = ArrowFunction(name="soundex", arguments=(STRING,), result=STRING, call=bytecolumns.soundex)
_LEVENSHTEIN = ArrowFunction(name="levenshtein", arguments=(STRING, STRING), result=INT, call=textdistances.levenshtein)
_JARO_WINKLER = ArrowFunction(
    name="jaro_winkler_similarity",
    arguments=(STRING, STRING),
    result=DOUBLE,
    call=partial(textdistances.jaro_winkler, beyond=textvalues.jaro_winkler),
)
_LUHN_CHECK = ArrowFunction(name="luhn_check", arguments=(STRING,), result=BOOLEAN, call=_luhn_checked)
_MASK = _by_letters(by_value("mask", (STRING,) * 5, STRING, textvalues.mask, takes_nulls=True))
_SUBSTRING_INDEX = by_value("substring_index", (STRING, STRING, INT), STRING, textvalues.substring_index)
_INSTR = by_value("instr", (STRING, STRING, INT, INT), INT, textvalues.instr)
_UNBASE64 = by_value("unbase64", (STRING,), BINARY, textvalues.unbase64)
_TO_BASE32 = ArrowFunction(name="to_base32", arguments=(BINARY,), result=STRING, call=bytecolumns.to_base32)
_EACH_OF_BASE32 = by_value("from_base32", (STRING,), BINARY, textvalues.from_base32)
_FROM_BASE32 = replace(_EACH_OF_BASE32, call=partial(bytecolumns.from_base32, beyond=_EACH_OF_BASE32))
_ENCODE = _between_alike("encode", STRING, BINARY, textvalues.encode)
_ENCODE_UTF16 = {
    charset: ArrowFunction(
        name=f"encode_{charset.replace('-', '').lower()}",
        arguments=(STRING,),
        result=BINARY,
        call=partial(bytecolumns.encode_utf16, charset=charset),
    )
    for charset in bytecolumns.UTF16_CHARSETS
}
_DECODE = _between_alike("decode", BINARY, STRING, textvalues.decode)
_IS_UTF8 = over_texts(by_value("is_valid_utf8", (BINARY,), BOOLEAN, textvalues.is_utf8), lambda texts: pc.equal(texts, texts))
_UTF8 = over_texts(by_value("validate_utf8", (BINARY,), STRING, textvalues.utf8), lambda texts: texts)
_UTF8_OR_NONE = over_texts(by_value("try_validate_utf8", (BINARY,), STRING, textvalues.utf8_or_none), lambda texts: texts)
_MADE_UTF8 = over_texts(by_value("make_valid_utf8", (BINARY,), STRING, textvalues.made_utf8), lambda texts: texts)
_BETWEEN = by_value("bytes_between", (BINARY, INT, INT), BINARY, textvalues.bytes_between)
_PADDED_LEFT = by_value("padded_left", (BINARY, INT, BINARY), BINARY, textvalues.padded_left)
_PADDED_RIGHT = by_value("padded_right", (BINARY, INT, BINARY), BINARY, textvalues.padded_right)
# DuckDB leaves an accent behind the letter that it stands on.
_REVERSED_TEXT = """CASE WHEN STRLEN($0) = LENGTH($0) THEN REVERSE($0)
    ELSE ARRAY_TO_STRING(LIST_REVERSE(STRING_SPLIT($0, '')), '') END"""
_REVERSED = ArrowFunction(name="reversed_bytes", arguments=(BINARY,), result=BINARY, call=pc.binary_reverse)
_STRICT_BASE64 = by_value("strict_base64", (STRING,), BINARY, textvalues.strict_base64)
_HEXADECIMAL = by_value("hexadecimal", (STRING,), BINARY, textvalues.hexadecimal)

_MOST_INT = 2**31 - 1
_LEAST = "CASE WHEN $1 < 0 THEN 0 ELSE $1 END"
_IS_ASCII = "STRLEN($0) = LENGTH($0) AND STRLEN($1) = LENGTH($1)"
_OVERLAY = """SUBSTRING($0, 1, CASE WHEN $2 < 1 THEN 0 ELSE $2 - 1 END) || $1 || CASE
    WHEN {length} IS NULL THEN NULL
    WHEN $2 + {length} > 0 THEN SUBSTRING($0, $2 + {length})
    WHEN $2 + {length} = 0 THEN $0
    ELSE SUBSTRING($0, GREATEST(LENGTH($0) + $2 + {length} + 1, 1))
END"""
_MASKS = ("X", "x", "n", None)
_LONGEST_PADDED = 1_000_000
_MOST_NESTED = 3
# The bytes of $0 from the place $1 on, $2 of them at most.
_BEGIN = "CASE WHEN $1 > 0 THEN $1 - 1 WHEN $1 < 0 THEN OCTET_LENGTH($0) + $1 ELSE 0 END"
_FROM = f"LEAST(GREATEST({_BEGIN}, 0), OCTET_LENGTH($0))"
_TO = f"LEAST(GREATEST({_BEGIN} + $2, 0), OCTET_LENGTH($0))"
_PART_OF_BYTES = f"""CASE WHEN $0 IS NULL OR $1 IS NULL OR $2 IS NULL THEN NULL WHEN $2 <= 0 THEN CAST('' AS BLOB)
    ELSE ARRAY_SLICE($0, {_FROM} + 1, {_TO}) END"""
_OVERLAID_BYTES = f"""{_PART_OF_BYTES.replace("$2", "($2 - 1)").replace("$1", "1")} || $1 || {
    _PART_OF_BYTES.replace("$2", str(_MOST_INT)).replace("$1", "($2 + CASE WHEN $3 < 0 THEN OCTET_LENGTH($1) ELSE $3 END)")
}"""
_ROOM = "GREATEST($1 - OCTET_LENGTH($0), 0)"
_FILLING = f"ARRAY_SLICE(REPEAT($2, ({_ROOM} + OCTET_LENGTH($2) - 1) // OCTET_LENGTH($2)), 1, {_ROOM})"


def bytes_or_text(types: Types, values: Sequence[exp.Expr]) -> Type:
    """BINARY for bytes, and else STRING."""
    return None if types[0] is None else BINARY if types[0] == BINARY else STRING


def _padded_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    """BINARY for bytes that bytes are padded with, and else STRING."""
    return STRING if len(types) > 2 and types[2] not in (None, BINARY) else bytes_or_text(types, values)


def _elt_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    if None in types:
        return None
    return BINARY if set(types[1:]) == {BINARY} else STRING


def _first_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    return types[0] if types[0] is not None and types[0].name == "array" else bytes_or_text(types, values)


def _as_int(value: exp.Expr) -> exp.Expr:
    return exp.cast(value, "INT")


def _trimmed(call: RuleCall) -> exp.Expr:
    if len(call.values) == 1:
        return call.text("TRIM($0, ' ')", text(call, 0))
    return call.text("TRIM($0, $1)", text(call, 0), text(call, 1))


def _length(template: str) -> Callable[[RuleCall], exp.Expr]:
    """Writes a length. ``template``: of bytes."""

    def write(call: RuleCall) -> exp.Expr:
        return _as_int(call.text(template, binary(call, 0) if call.types[0] == BINARY else exp.Encode(this=text(call, 0))))

    return write


def _characters(call: RuleCall) -> exp.Expr:
    return _as_int(
        call.text("OCTET_LENGTH($0)", call.value(0)) if call.types[0] == BINARY else call.text("LENGTH($0)", text(call, 0))
    )


def _ascii(call: RuleCall) -> exp.Expr:
    value = _MADE_UTF8.of(call.value(0)) if call.types[0] == BINARY else text(call, 0)
    return _as_int(call.text("CASE WHEN $0 = '' THEN 0 ELSE ORD($0) END", value))


def _base64(call: RuleCall) -> exp.Expr:
    return call.text("TO_BASE64($0)", binary(call, 0))


def _hex(call: RuleCall) -> exp.Expr:
    kind = call.types[0]
    if kind is None:
        return call.text("HEX($0)")
    if kind.is_number:
        return call.text("CASE WHEN $0 = 0 THEN '0' ELSE LTRIM(TO_HEX($0), '0') END", integer(call, 0, BIGINT))
    if kind not in (STRING, BINARY, VOID):
        raise call.mismatch(0, "a number, a text or bytes")
    return call.text("HEX($0)", binary(call, 0))


def _space(call: RuleCall) -> exp.Expr:
    return call.text("REPEAT(' ', CASE WHEN $0 < 0 THEN 0 ELSE $0 END)", integer(call, 0))


def _distance(call: RuleCall) -> exp.Expr:
    values = text(call, 0), text(call, 1)
    beyond = f"{_LEVENSHTEIN.engine_name}($0, $1)"
    distance = call.text(
        f"""CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL WHEN {_IS_ASCII} THEN CAST(LEVENSHTEIN($0, $1) AS INT)
        ELSE {beyond} END""",
        *values,
    )
    if len(call.values) == 2:
        return distance
    limited = call.text(
        "CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL WHEN $0 <= $1 THEN $0 ELSE CAST(-1 AS INT) END", distance, integer(call, 2)
    )
    # Spark has it for 0 in rows, and for NULL in what is written.
    is_open = call.text("$0 IS NOT NULL AND $1 IS NOT NULL AND $2 IS NULL")
    return refused_where(is_open, "levenshtein with a threshold that is NULL", limited)


def _elt(call: RuleCall) -> exp.Expr:
    place = integer(call, 0)
    as_value = binary if call.result == BINARY else text
    values = [as_value(call, at) for at in range(1, len(call.values))]
    branches = [
        exp.If(this=exp.EQ(this=place.copy(), expression=exp.Literal.number(at)), true=value) for at, value in enumerate(values, 1)
    ]
    is_outside = call.text(f"NOT $0 BETWEEN 1 AND {len(values)}", place)
    return failing(is_outside, f"the function `elt`: expected a place from 1 to {len(values)}", exp.Case(ifs=branches))


def _find_in_set(call: RuleCall) -> exp.Expr:
    place = """CASE
        WHEN $0 IS NULL OR $1 IS NULL THEN NULL
        WHEN CONTAINS($0, ',') THEN 0
        ELSE COALESCE(LIST_POSITION(STRING_SPLIT($1, ','), $0), 0)
    END"""
    return _as_int(call.text(place, text(call, 0), text(call, 1)))


def _quoted(call: RuleCall) -> exp.Expr:
    return call.text("CHR(39) || REPLACE($0, CHR(39), CHR(92) || CHR(39)) || CHR(39)", text(call, 0))


def _masked(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if kind not in (STRING, VOID):
        raise call.mismatch(0, "a text")
    masks: list[exp.Expr] = []
    for place, mask in enumerate(_MASKS, 1):
        if place >= len(call.values):
            masks.append(exp.null() if mask is None else exp.Literal.string(mask))
            continue
        value = call.values[place]
        if not isinstance(value, exp.Null) and len(written_text(call, place, "a character")) != 1:
            raise call.mismatch(place, "one character")
        masks.append(value.copy())
    return _MASK.of(*(exp.cast(one, "TEXT") for one in (text(call, 0), *masks)))


def _part(call: RuleCall) -> exp.Expr:
    """Writes ``substring``, ``left`` and their like: those of bytes here."""
    if call.types[0] != BINARY:
        return textnodes.substring(call.node) if isinstance(call.node, exp.Substring) else _end(call)
    if call.name == "left":
        return _bytes_between(call.value(0), exp.Literal.number(1), integer(call, 1, BIGINT))
    if call.name == "right":
        raise call.refusal("of bytes")
    length = integer(call, 2) if len(call.values) > 2 else exp.cast(exp.Literal.number(_MOST_INT), "INT")
    first, count = call.values[1], call.values[2] if len(call.values) > 2 else exp.Literal.number(_MOST_INT)
    if all(
        isinstance(one, exp.Literal) and not one.is_string and re.fullmatch("[1-9][0-9]{0,9}", one.name) for one in (first, count)
    ):
        return call.text(f"ARRAY_SLICE($0, {first.name}, {int(first.name) + int(count.name) - 1})", call.value(0))
    return _bytes_between(call.value(0), integer(call, 1), length)


def _bytes_between(data: exp.Expr, start: exp.Expr, length: exp.Expr) -> exp.Expr:
    return from_text(_PART_OF_BYTES, data, exp.cast(start, "BIGINT"), exp.cast(length, "BIGINT"))


def _end(call: RuleCall) -> exp.Expr:
    return call.text(f"{call.name.upper()}($0, {_LEAST})", text(call, 0), integer(call, 1))


def _padded(call: RuleCall) -> exp.Expr:
    function, is_left = call.name.upper(), call.name == "lpad"
    if call.types[0] == BINARY and (len(call.types) < 3 or call.types[2] in (None, BINARY)):
        padding = binary(call, 2) if len(call.values) > 2 else call.text("CAST('\\x00' AS BLOB)")
        beyond = (_PADDED_LEFT if is_left else _PADDED_RIGHT).engine_name
        if len(call.values) < 3 and isinstance(call.values[1], exp.Literal) and re.fullmatch("[0-9]{1,4}", call.values[1].name):
            length = call.values[1].name
            zeros = f"ARRAY_SLICE(REPEAT(CAST('\\x00' AS BLOB), {length}), 1, GREATEST({length} - OCTET_LENGTH($0), 0))"
            cut = f"ARRAY_SLICE($0, 1, {length})"
            return call.text(f"{zeros} || {cut}" if is_left else f"{cut} || {zeros}", call.value(0))
        kept = "ARRAY_SLICE($0, 1, $1)"
        padded = f"{_FILLING} || {kept}" if is_left else f"{kept} || {_FILLING}"
        template = f"""CASE WHEN $1 BETWEEN 0 AND {_LONGEST_PADDED} AND OCTET_LENGTH($2) > 0
            THEN {padded} ELSE {beyond}($0, $1, $2) END"""
        return call.text(template, call.value(0), integer(call, 1), padding)
    padding = text(call, 2) if len(call.values) > 2 else exp.Literal.string(" ")
    if isinstance(padding, exp.Literal) and padding.name:
        return call.text(f"{function}($0, {_LEAST}, $2)", text(call, 0), integer(call, 1), padding)
    chosen = f"""CASE
        WHEN $2 IS NULL THEN NULL
        WHEN $2 = '' THEN LEFT($0, {_LEAST})
        ELSE {function}($0, {_LEAST}, CASE WHEN $2 = '' THEN ' ' ELSE $2 END)
    END"""
    return call.text(chosen, text(call, 0), integer(call, 1), padding)


def _overlaid(call: RuleCall) -> exp.Expr:
    length = integer(call, 3) if len(call.values) > 3 else exp.cast(exp.Literal.number(-1), "INT")
    if call.types[0] == BINARY:
        place = call.values[2]
        if len(call.values) < 4 and isinstance(place, exp.Literal) and re.fullmatch("[1-9][0-9]{0,8}", place.name):
            template = f"ARRAY_SLICE($0, 1, {int(place.name) - 1}) || $1 || ARRAY_SLICE($0, {place.name} + $2, {_MOST_INT})"
            return call.text(template, call.value(0), binary(call, 1), from_text("OCTET_LENGTH($0)", binary(call, 1)))
        return call.text(_OVERLAID_BYTES, call.value(0), binary(call, 1), integer(call, 2, BIGINT), length)
    if len(call.values) < 4:
        template = _OVERLAY.format(length="LENGTH($1)")
    else:
        template = _OVERLAY.format(length="(CASE WHEN $3 < 0 THEN LENGTH($1) ELSE $3 END)")
    return call.text(template, text(call, 0), text(call, 1), integer(call, 2), length)


def _reversed(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if kind.name == "array":
        return call.text("LIST_REVERSE($0)")
    return _REVERSED.of(call.value(0)) if kind == BINARY else call.text(_REVERSED_TEXT, text(call, 0))


def _compared(call: RuleCall) -> exp.Expr:
    """Writes ``startswith``, ``endswith`` and ``contains``: bytes by their hexadecimal digits, two for each."""
    if BINARY not in call.types:
        function = {"startswith": "STARTS_WITH", "endswith": "ENDS_WITH", "contains": "CONTAINS"}[call.name]
        return call.text(f"{function}($0, $1)", text(call, 0), text(call, 1))
    values = binary(call, 0), binary(call, 1)
    if call.name == "startswith":
        return call.text("STARTS_WITH(HEX($0), HEX($1))", *values)
    if call.name == "endswith":
        return call.text("ENDS_WITH(HEX($0), HEX($1))", *values)
    spaced = r"REGEXP_REPLACE(HEX({}), '..', '.\0', 'g')"
    return call.text(f"CONTAINS({spaced.format('$0')}, {spaced.format('$1')})", *values)


def _instr(call: RuleCall) -> exp.Expr:
    values = text(call, 0), text(call, 1)
    if len(call.values) == 2:
        return _as_int(call.text("INSTR($0, $1)", *values))
    occurrence = integer(call, 3) if len(call.values) > 3 else exp.cast(exp.Literal.number(1), "INT")
    start, number = call.values[2], call.values[3] if len(call.values) > 3 else exp.Literal.number(1)
    are_written = all(isinstance(one, exp.Literal) and not one.is_string and one.name.isdecimal() for one in (start, number))
    if are_written and 0 < int(start.name) < _MOST_INT and 0 < int(number.name) <= _MOST_NESTED:
        return _as_int(_nested_instr(values, int(start.name), int(number.name)))
    return _INSTR.of(*values, integer(call, 2), occurrence)


def _nested_instr(values: tuple[exp.Expr, exp.Expr], start: int, occurrence: int) -> exp.Expr:
    """The place of an occurrence: each is looked for behind the beginning of the one before."""
    if isinstance(values[1], exp.Literal) and values[1].name:
        # Behind the beginning of what is not there, it is not there either.
        rest: exp.Expr = from_text(f"SUBSTRING($0, {start})", values[0])
        places = [exp.Anonymous(this="INSTR", expressions=[rest, values[1]])]
        for _ in range(occurrence - 1):
            rest = from_text("SUBSTRING($0, $1 + 1)", rest.copy(), places[-1].copy())
            places.append(exp.Anonymous(this="INSTR", expressions=[rest, values[1].copy()]))
        total = " + ".join(f"({one.sql('duckdb')})" for one in places)
        return from_text(f"({start - 1} + {total}) * CAST(({places[-1].sql('duckdb')}) > 0 AS INT)")
    place: exp.Expr = exp.Literal.number(start - 1)
    for _ in range(occurrence):
        step = """CASE WHEN $2 < 0 OR INSTR(SUBSTRING($0, $2 + 1), $1) = 0 THEN -1
            ELSE $2 + INSTR(SUBSTRING($0, $2 + 1), $1) END"""
        place = from_text(step, *values, place)
    return from_text("CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL WHEN $1 = '' THEN 1 ELSE GREATEST($2, 0) END", *values, place)


def _located(call: RuleCall) -> exp.Expr:
    values = text(call, 0), text(call, 1)
    if len(call.values) == 2:
        return _as_int(call.text("INSTR($0, $1)", *values))
    start = integer(call, 2)
    place = """CASE
        WHEN $2 IS NULL THEN 0
        WHEN $0 IS NULL OR $1 IS NULL THEN NULL
        WHEN $2 < 1 THEN 0
        WHEN $1 = '' THEN 1
        WHEN INSTR(SUBSTRING($0, $2), $1) = 0 THEN 0
        ELSE INSTR(SUBSTRING($0, $2), $1) + $2 - 1
    END"""
    return _as_int(call.text(place, *values, start))


def _decoded_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    if len(types) == 2:
        return STRING
    # Its value where nothing matches is a NULL of a text.
    return common([*types[2::2], types[-1] if len(types) % 2 == 0 else STRING])


def _decoded(call: RuleCall) -> exp.Expr:
    """Writes ``decode``: of bytes in a character set, or of a value among others, of which NULL is one."""
    if len(call.values) == 2:
        return _DECODE.of(binary(call, 0), text(call, 1))
    kind = call.type(0)
    pairs = range(1, len(call.values) - 1, 2)
    if any(call.type(at) not in (kind, VOID) for at in pairs) and kind != VOID:
        raise call.refusal("of a value among others of other types")
    result = call.result
    if result is None or not result.is_known:
        raise call.refusal("of values of types that are not known")
    branches = []
    for at in pairs:
        if VOID in (kind, call.type(at)):
            both = (kind, call.type(at)) == (VOID, VOID)
            condition = exp.true() if both else call.text("$0 IS NULL", call.value(0 if kind != VOID else at))
        else:
            condition = call.text("$0 = $1 OR $0 IS NULL AND $1 IS NULL", call.value(0), call.value(at))
        branches.append(exp.If(this=condition, true=call.value(at + 1, result)))
    default = call.value(len(call.values) - 1, result) if len(call.values) % 2 == 0 else exp.null()
    return call.as_result(exp.Case(ifs=branches, default=default))


def _encoded(call: RuleCall) -> exp.Expr:
    charset = call.values[1]
    name = charset.name.upper() if isinstance(charset, exp.Literal) and charset.is_string else ""
    if name == "UTF-8":
        return call.text("ENCODE($0)", text(call, 0))
    return _ENCODE_UTF16[name].of(text(call, 0)) if name in _ENCODE_UTF16 else _ENCODE.of(text(call, 0), text(call, 1))


def _to_binary(call: RuleCall) -> exp.Expr:
    form = written_text(call, 1, "a format").lower() if len(call.values) > 1 else "hex"
    value = text(call, 0)
    is_try = call.name == "try_to_binary"
    if form in ("utf-8", "utf8"):
        return call.text("ENCODE($0)", value)
    if form not in ("hex", "base64"):
        if is_try:
            return exp.cast(exp.null(), "BLOB")
        raise call.mismatch(1, "the format hex, utf-8 or base64")
    data = _of_hexadecimal(value) if form == "hex" else _of_base64(value, _STRICT_BASE64)
    if is_try:
        return data
    # Behind the bytes: what is no such text is found out by decoding it, which is done once.
    wrong = failing(
        call.text("$0 IS NOT NULL", value), f"the function `to_binary`: expected a text of the format {form}", exp.null()
    )
    return call.text("COALESCE($0, $1)", data, wrong)


def _of_base64(value: exp.Expr, beyond: ArrowFunction) -> exp.Expr:
    """The bytes of a text in Base64: by DuckDB, which reads whole blocks alone, and by an Arrow function where that fails."""
    return from_text(f"COALESCE(TRY(FROM_BASE64($0)), CASE WHEN $0 IS NOT NULL THEN {beyond.engine_name}($0) END)", value)


def _of_hexadecimal(value: exp.Expr) -> exp.Expr:
    """The bytes of hexadecimal digits: by DuckDB those of an even number of them, and by an Arrow function where that fails."""
    even = "CASE WHEN STRLEN($0) % 2 = 0 THEN $0 END"
    beyond = f"CASE WHEN $0 IS NOT NULL THEN {_HEXADECIMAL.engine_name}($0) END"
    return from_text(f"COALESCE(TRY(UNHEX({even})), {beyond})", value)


def _substring_index(call: RuleCall) -> exp.Expr:
    """Writes ``substring_index``: by the parts of the text, where occurrences of the delimiter cannot overlap."""
    values = text(call, 0), text(call, 1), integer(call, 2)
    delimiter, count = call.values[1], call.values[2]
    sign = -1 if isinstance(count, exp.Neg) else 1
    number = count.this if isinstance(count, exp.Neg) else count
    if not (isinstance(delimiter, exp.Literal) and delimiter.is_string and isinstance(number, exp.Literal)):
        return _SUBSTRING_INDEX.of(*values)
    by = delimiter.name
    if (
        not by
        or number.is_string
        or not re.fullmatch("[1-9][0-9]?", number.name)
        or any(by.startswith(by[at:]) for at in range(1, len(by)))
    ):
        return _SUBSTRING_INDEX.of(*values)
    part = f"1:{number.name}" if sign > 0 else f"-{number.name}:"
    return call.text(f"ARRAY_TO_STRING(STRING_SPLIT($0, $1)[{part}], $1)", *values[:2])


def _rule(
    name: str, bounds: tuple[int, int], result: ResultOf, write: Callable[[RuleCall], exp.Expr], *aliases: str
) -> FunctionRule:
    return FunctionRule(name=name, bounds=bounds, result=result, write=write, aliases=aliases)


RULES = (
    _rule("btrim", (1, 2), always(STRING), _trimmed),
    _rule("bit_length", (1, 1), always(INT), _length("OCTET_LENGTH($0) * 8")),
    _rule("octet_length", (1, 1), always(INT), _length("OCTET_LENGTH($0)")),
    _rule("length", (1, 1), always(INT), _characters, "len", "char_length", "character_length"),
    _rule("ascii", (1, 1), always(INT), _ascii),
    _rule("base64", (1, 1), always(STRING), _base64),
    _rule("unbase64", (1, 1), always(BINARY), lambda call: _of_base64(text(call, 0), _UNBASE64)),
    _rule("to_base32", (1, 1), always(STRING), lambda call: _TO_BASE32.of(binary(call, 0))),
    _rule("from_base32", (1, 1), always(BINARY), lambda call: _FROM_BASE32.of(text(call, 0))),
    _rule("hex", (1, 1), always(STRING), _hex),
    _rule("unhex", (1, 1), always(BINARY), lambda call: _of_hexadecimal(text(call, 0))),
    _rule("space", (1, 1), always(STRING), _space),
    _rule("soundex", (1, 1), always(STRING), lambda call: _SOUNDEX.of(text(call, 0))),
    _rule("levenshtein", (2, 3), always(INT), _distance),
    _rule(
        "jaro_winkler_similarity", (2, 2), always(DOUBLE), lambda call: _JARO_WINKLER.of(text(call, 0), text(call, 1))
    ),
    _rule("elt", (2, MANY), _elt_type, _elt),
    _rule("find_in_set", (2, 2), always(INT), _find_in_set),
    _rule("quote", (1, 1), always(STRING), _quoted),
    _rule("luhn_check", (1, 1), always(BOOLEAN), lambda call: _LUHN_CHECK.of(text(call, 0))),
    _rule("mask", (1, 5), always(STRING), _masked),
    _rule(
        "substring_index", (3, 3), always(STRING),
        _substring_index,
    ),
    _rule("substring", (1, 3), bytes_or_text, _part, "substr"),
    _rule("left", (2, 2), bytes_or_text, _part),
    _rule("right", (2, 2), always(STRING), _part),
    _rule("lpad", (2, 3), _padded_type, _padded),
    _rule("rpad", (2, 3), _padded_type, _padded),
    _rule("overlay", (1, 4), bytes_or_text, _overlaid),
    _rule("reverse", (1, 1), _first_type, _reversed),
    _rule("startswith", (2, 2), always(BOOLEAN), _compared),
    _rule("endswith", (2, 2), always(BOOLEAN), _compared),
    _rule("contains", (2, 2), always(BOOLEAN), _compared),
    _rule("instr", (2, 4), always(INT), _instr),
    # As sqlglot has them, the part behind the text.
    _rule("locate", (2, 3), always(INT), _located),
    _rule("position", (1, 3), always(INT), _located),
    _rule("is_valid_utf8", (1, 1), always(BOOLEAN), lambda call: _IS_UTF8.of(binary(call, 0))),
    _rule("validate_utf8", (1, 1), always(STRING), lambda call: _UTF8.of(binary(call, 0))),
    _rule("try_validate_utf8", (1, 1), always(STRING), lambda call: _UTF8_OR_NONE.of(binary(call, 0))),
    _rule("make_valid_utf8", (1, 1), always(STRING), lambda call: _MADE_UTF8.of(binary(call, 0))),
    _rule("encode", (2, 2), always(BINARY), _encoded),
    _rule("decode", (2, MANY), _decoded_type, _decoded),
    _rule("to_binary", (1, 2), always(BINARY), _to_binary),
    _rule("try_to_binary", (1, 2), always(BINARY), _to_binary),
)  # fmt: skip
ARROW = (
    _SOUNDEX, _LEVENSHTEIN, _JARO_WINKLER, _LUHN_CHECK, _MASK, _SUBSTRING_INDEX, _INSTR, _UNBASE64, _TO_BASE32, _FROM_BASE32,
    _ENCODE, *_ENCODE_UTF16.values(), _DECODE, _IS_UTF8, _UTF8, _UTF8_OR_NONE, _MADE_UTF8, _BETWEEN, _PADDED_LEFT, _PADDED_RIGHT,
    _REVERSED, _HEXADECIMAL,
    _STRICT_BASE64,
)  # fmt: skip
REFUSED = {
    **dict.fromkeys(("collate", "collations"), "DuckDB has no collations of Spark's"),
    "sentences": "it goes by Java's borders of words",
}
