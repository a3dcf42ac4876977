"""The figures of the service: what is counted, under which names, and that no caller makes up a label."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tablestore.server.metrics import CommitOutcome, ServerMetrics


@pytest.fixture
def metrics() -> ServerMetrics:
    return ServerMetrics()


def test_answers_are_counted_by_method_route_and_status(metrics: ServerMetrics) -> None:
    for status in (200, 200, 404):
        metrics.answered(method="GET", route="/v1/{prefix}/databases", status=status, seconds=0.02)
    labels = {"method": "GET", "route": "/v1/{prefix}/databases"}
    value = metrics.registry.get_sample_value
    assert [value("tablestore_requests_total", {**labels, "status": status}) for status in ("200", "404", "500")] == [2, 1, None]
    duration = {"route": "/v1/{prefix}/databases"}
    assert value("tablestore_request_duration_seconds_count", duration) == 3
    assert [value("tablestore_request_duration_seconds_bucket", {**duration, "le": le}) for le in ("0.01", "0.025")] == [0, 3]


def test_a_made_up_method_is_no_label_of_its_own(metrics: ServerMetrics) -> None:
    for method in ("BREW", "get", "\n", "X" * 1000):
        metrics.answered(method=method, route="/", status=405, seconds=0)
    assert metrics.registry.get_sample_value("tablestore_requests_total", {"method": "other", "route": "/", "status": "405"}) == 4


def test_a_request_in_flight_is_one_until_it_ends_however_it_ends(metrics: ServerMetrics) -> None:
    seen = []
    with pytest.raises(KeyError), metrics.in_flight():
        seen.append(metrics.registry.get_sample_value("tablestore_requests_in_flight"))
        raise KeyError
    assert [*seen, metrics.registry.get_sample_value("tablestore_requests_in_flight")] == [1, 0]


def test_commits_are_counted_by_outcome_and_rejections_by_reason(metrics: ServerMetrics) -> None:
    metrics.committed(CommitOutcome.LANDED)
    metrics.rejected("host")
    metrics.rejected("host")
    value = metrics.registry.get_sample_value
    assert [value("tablestore_commits_total", {"outcome": outcome}) for outcome in ("landed", "lost", "unknown")] == [1, 0, 0]
    assert value("tablestore_requests_rejected_total", {"reason": "host"}) == 2


def test_two_services_of_one_process_do_not_meet(metrics: ServerMetrics) -> None:
    metrics.committed(CommitOutcome.LOST)
    assert ServerMetrics().registry.get_sample_value("tablestore_commits_total", {"outcome": "lost"}) == 0


def test_the_format_is_the_one_that_is_asked_for(metrics: ServerMetrics) -> None:
    plain, plain_type = metrics.exposition()
    open_metrics, open_type = metrics.exposition("application/openmetrics-text; version=1.0.0")
    assert plain_type.startswith("text/plain")
    assert open_type.startswith("application/openmetrics-text")
    assert not plain.endswith(b"# EOF\n")
    families = {family.name for family in text_string_to_metric_families(open_metrics.decode())}
    assert families == {
        *("tablestore_requests", "tablestore_request_duration_seconds", "tablestore_requests_in_flight"),
        *("tablestore_requests_rejected", "tablestore_commits"),
    }
