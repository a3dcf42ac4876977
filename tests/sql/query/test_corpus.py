"""Of each statement of the corpus: the tables that it reads, and what of them."""

from pathlib import Path

import pytest

import tablestore as ts
from tablestore.environment.engine import ManagedRelation
from tablestore.sql.query.tablereferences import find_references
from tablestore.testing.contracts.queryengine import managed
from tablestore.types.filter.filters import parse_filter
from tests.support.sql.corpus import bind_statement, corpus_tables, expected, make_tables, statements


def test_the_corpus_is_large_and_all_of_it_is_understood() -> None:
    names = {name.casefold() for name in corpus_tables()}
    assert len(statements()) >= 300
    unknown = {
        (str(statement), str(found.path))
        for statement in statements()
        for found in find_references(statement.text)
        if found.path.parts[-1].casefold() not in names
    }
    assert not unknown


@pytest.mark.deep
def test_each_statement_reads_the_tables_and_columns_that_it_names(tmp_path: Path) -> None:
    tables = make_tables(ts.open_catalog(str(tmp_path)))
    known = expected()
    for statement in statements():
        bound = bind_statement(statement, lambda name: managed(tables[name], name=f"shop.{name}"))
        for found, (name, columns, text) in zip(bound.relations, known[str(statement)]["reads"], strict=True):
            assert isinstance(found, ManagedRelation)
            assert (found.name, found.columns and list(found.columns)) == (name, columns), statement
            assert found.filter == parse_filter(text, found.schema.fields), statement
