"""The options of a table name its merge function, and unknown or unsupported engines are refused."""

import pytest

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.lsm.mergefn import MergeFunction, SequenceField, merge_function


def test_without_options_the_last_row_wins():
    assert merge_function({}) == MergeFunction(engine="deduplicate", keep="last", ignore_delete=False, sequence_fields=())


def test_options_are_taken_over():
    found = merge_function(
        {
            "merge-engine": "deduplicate",
            "ignore-delete": "true",
            "sequence.field": "a, b",
            "sequence.field.sort-order": "descending",
        }
    )
    assert found.ignore_delete
    assert found.sequence_fields == (SequenceField(name="a", descending=True), SequenceField(name="b", descending=True))


def test_first_row_keeps_the_first():
    assert merge_function({"merge-engine": "first-row"}).keep == "first"


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_engines_that_compute_rows_are_refused_by_name(engine):
    with pytest.raises(UnsupportedError, match=engine):
        merge_function({"merge-engine": engine})


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "newest"},
        {"sequence.field": "a", "sequence.field.sort-order": "up"},
        {"merge-engine": "first-row", "sequence.field": "a"},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidInputError):
        merge_function(options)
