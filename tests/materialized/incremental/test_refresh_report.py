"""What one refresh says of itself."""

from tablestore.materialized.incremental.refreshreport import RefreshReport, SourceRange


def test_a_report_says_how_much_and_why_in_one_line() -> None:
    report = RefreshReport(mode="full", reason="now() differs at each run", rows_in=3, rows_out=2, snapshot_id=7)

    assert str(report) == "full refresh; 3 rows in, 2 rows out; snapshot 7; now() differs at each run"
    assert str(RefreshReport(mode="none")) == "nothing to refresh"


def test_a_source_that_was_not_read_before_has_no_snapshot_before() -> None:
    assert str(SourceRange(name="tablestore.default.orders", before=None, after=4)) == "tablestore.default.orders: none -> 4"
