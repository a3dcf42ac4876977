"""Tells how the lines of a CSV file end where DuckDB would take a line break inside of quotation marks for the end of one.

It looks at the first line break of a file, whatever it lies in.
"""

import re
from collections.abc import Mapping

import pyarrow as pa

# Of the first line: a longer one is left to DuckDB.
_HEAD_BYTES = 1 << 20
_FIRST_BYTES = 4096
_ENDS = re.compile(rb"\r\n|\n|\r")


def line_end(file: str, options: Mapping[str, str]) -> str | None:
    """The end of the lines of a file, in DuckDB's words; None if DuckDB finds it. ``options``: those of the table."""
    try:
        with pa.input_stream(file) as source:
            head = source.read(_FIRST_BYTES)
            quote = options.get("quote", '"').encode()
            first = _ENDS.search(head)
            if not quote or (first is not None and quote not in head[: first.start()]):
                return None
            head += source.read(_HEAD_BYTES)
    except (pa.ArrowException, OSError):
        # Whoever reads the rows says what it is.
        return None
    end = _end_of_first_line(head, quote, options)
    first = _ENDS.search(head)
    if end is None or first is None or first.group() == end:
        return None
    return end.decode().replace("\r", "\\r").replace("\n", "\\n")


def _end_of_first_line(head: bytes, quote: bytes, options: Mapping[str, str]) -> bytes | None:
    separator = re.escape(options.get("sep", options.get("delimiter", ",")).encode())
    mark, escape = re.escape(quote), re.escape(options.get("escape", "\\").encode() or quote)
    # A quotation mark is one at the beginning of a value.
    content = rb"%b.|[^%b%b]" % (escape, mark, escape) if escape != mark else rb"[^%b]|%b%b" % (mark, mark, mark)
    quoted = rb"%b(?:%b)*+%b" % (mark, content, mark)
    value = rb"(?:%b|(?!%b)(?:(?!%b)[^\r\n])*+)" % (quoted, mark, separator)
    line = re.compile(rb"%b(?:%b%b)*+(\r\n|\n|\r)" % (value, separator, value), re.DOTALL)
    match = line.match(head)
    return None if match is None else match.group(1)
