"""Spark 4's dialect of sqlglot."""

import pytest

from tablestore.errors import UnsupportedError
from tablestore.sql.query.dialect import check_extensible


def test_a_compiled_parser_is_refused_with_what_to_do() -> None:
    check_extensible("/site-packages/sqlglot/parser.py")
    with pytest.raises(UnsupportedError, match="pip uninstall sqlglotc") as raised:
        check_extensible("/site-packages/sqlglot/parser.cpython-311-x86_64-linux-gnu.so")
    assert raised.value.kind == "sqlglot-compiled"
