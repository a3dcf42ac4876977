"""Finds what reaches out of a query of Spark's: functions and forms that act, open files or tell secrets of the host.

    reflect, java_method, try_reflect              call any method of Java
    from_avro, from_protobuf, from_xml and kin     open a file or an address that an option names
    SELECT TRANSFORM(…) USING 'cmd', MAP, REDUCE   run a program
    `parquet`.`/etc/x`                             a table that is a path
    IDENTIFIER('ref' || 'lect')(…)                 a name that is computed
    '${env:PASSWORD}'                              a variable of the process, which Spark writes into the text before it reads it

A walk over the tokens, which are Spark's own: what is quoted, commented or escaped is not taken for what it is not. Texts that
others have written are refused where one of these stands in them. A test asks Spark for its functions, so a new one is noticed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tablestore.sql.parse.tokens import Kind
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Span

REACHING_FUNCTIONS = frozenset({
    "java_method", "reflect", "try_reflect", "python_worker_logs",
    "from_avro", "from_protobuf", "from_xml", "schema_of_avro", "schema_of_xml", "to_avro", "to_protobuf", "to_xml",
})  # fmt: skip
"""Functions of Spark's that run what an argument names, or open what one does."""
HOST_FUNCTIONS = frozenset({
    "current_path", "current_user", "input_file_block_length", "input_file_block_start", "input_file_name", "session_user", "user",
    "version",
})  # fmt: skip
"""Functions of Spark's that tell of the host: who runs it, where files lie, and what is installed."""
HOST_WORDS = frozenset({"current_path", "current_user", "session_user", "user"})
"""Those that Spark also calls by their name alone, where no column has it."""

_VARIABLE = re.compile(r"\$\{\S+?\}")
# Formats of files that Spark reads by a path in the place of a table, but for those that are named by their class.
_FORMATS = frozenset({"avro", "binaryfile", "csv", "delta", "iceberg", "json", "libsvm", "orc", "parquet", "text", "xml"})
_QUOTE = re.compile("['\"`]")
_PATH_SIGNS = re.compile(r"[/\\:*]")


@dataclass(frozen=True, slots=True)
class Reach:
    """A part of a text that reaches out, in words, and where it stands."""

    what: str
    span: Span


def reaches(tokens: Tokens) -> Iterator[Reach]:
    """Finds all that reaches out of a text."""
    for variable in _VARIABLE.finditer(tokens.text):
        yield Reach(f"{variable[0][:40]}, in whose place Spark puts a variable of the process", Span(*variable.span()))
    for hint in (hint for hints in tokens.hints.values() for hint in hints):
        if _QUOTE.search(hint.text):
            yield Reach("a hint with a quote, which Spark ends at another place", hint.span)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text.startswith('"') and tokens.key(at + 1) == "(":
            yield Reach("a call of what stands between double quotes", token.span)
        if tokens.key(at) == "USING" and (behind := tokens.get(at + 1)) is not None and behind.kind is Kind.TEXT:
            yield Reach("USING with a text, which runs a program", Span(token.start, behind.end))
        if not tokens.is_name(at):
            at += 1
            continue
        behind_chain = tokens.after_chain(at)
        if (subject := _named(tokens, at, behind_chain)) is not None:
            yield Reach(subject, Span(token.start, tokens[behind_chain - 1].end))
        at = behind_chain


def _named(tokens: Tokens, at: int, behind: int) -> str | None:
    """The way, in words, in which a name of parts reaches out; None if it does not."""
    last = tokens.name(behind - 1)
    if tokens.key(behind) == "(":
        if last.lower() in REACHING_FUNCTIONS:
            return f"the function {last.lower()}"
        if tokens.key(behind - 1) == "IDENTIFIER" and not _is_plain_name(tokens, behind):
            return "IDENTIFIER of what is no written name"
        return None
    # The first of more parts is a catalog.
    is_format = behind == at + 3 and (tokens.name(at).lower() in _FORMATS or "." in tokens.name(at))
    return "the path of a file in the place of a table" if is_format and _PATH_SIGNS.search(last) else None


def _is_plain_name(tokens: Tokens, opening: int) -> bool:
    """True if a text alone stands in the parentheses, and what it names is not called."""
    inner = tokens.get(opening + 1)
    is_text = inner is not None and inner.kind is Kind.TEXT and tokens.close(opening) == opening + 2
    return is_text and tokens.key(opening + 3) != "("
