"""The record of decisions: one line each, whatever the names are, in files of bounded size."""

import json
import os
import stat
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tablestore as ts
from tablestore.server.access.auditlog import MOST_NAME_CHARACTERS, AuditLog, AuditRecord, Decision, audit_line
from tablestore.testing.deterministic import ManualClock

RECORD = AuditRecord(
    request="3f2a",
    principal="reports",
    address="10.0.0.7",
    method="POST",
    route="/v1/{prefix}/databases/{database}/tables",
    resource="shop",
    role="owner",
    decision=Decision.DENIED,
    status=403,
    duration_ms=3,
)


def record(resource: str) -> AuditRecord:
    return AuditRecord(**{**{field.name: getattr(RECORD, field.name) for field in fields(RECORD)}, "resource": resource})


def test_a_decision_is_a_line_of_json_with_its_time(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", ManualClock(start_ms=1_769_860_800_123))
    log.write(RECORD)
    log.write(record("hr"))
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "time": "2026-01-31T12:00:00.123Z",
        "request": "3f2a",
        "principal": "reports",
        "address": "10.0.0.7",
        "method": "POST",
        "route": "/v1/{prefix}/databases/{database}/tables",
        "resource": "shop",
        "role": "owner",
        "decision": "denied",
        "status": 403,
        "duration_ms": 3,
    }
    assert lines[1]["resource"] == "hr"
    log.close()


@given(st.text())
def test_a_name_neither_ends_a_line_nor_begins_a_field(name: str) -> None:
    line = audit_line(record(name), 0)
    assert "\n" not in line and "\r" not in line
    assert line.isascii() and line.isprintable()
    shown = json.loads(line)["resource"]
    assert shown == name if len(name) <= MOST_NAME_CHARACTERS else len(shown) == MOST_NAME_CHARACTERS


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    assert json.loads(audit_line(record("a" * 10_000), 0))["resource"] == "a" * (MOST_NAME_CHARACTERS - 1) + "…"


def test_a_record_has_no_place_for_what_a_request_carries() -> None:
    assert {field.name for field in fields(AuditRecord)} == {
        *("request", "principal", "address", "method", "route", "resource", "role", "decision", "status", "duration_ms")
    }


def test_files_are_rotated_by_size_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    size = len(audit_line(record("0"), 0)) + 1
    log = AuditLog(path, ManualClock(), max_bytes=2 * size, kept=2)
    for number in range(9):
        log.write(record(str(number)))
    log.close()
    kept = {one.name: [json.loads(line)["resource"] for line in one.read_text().splitlines()] for one in tmp_path.iterdir()}
    assert kept == {"audit.jsonl": ["8"], "audit.jsonl.1": ["6", "7"], "audit.jsonl.2": ["4", "5"]}


def test_without_older_files_only_the_newest_stays(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", ManualClock(), max_bytes=1, kept=0)
    for number in range(3):
        log.write(record(str(number)))
    log.close()
    assert [one.name for one in tmp_path.iterdir()] == ["audit.jsonl"]
    assert [json.loads(line)["resource"] for line in (tmp_path / "audit.jsonl").read_text().splitlines()] == ["2"]


def test_a_log_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for number in range(3):
        log = AuditLog(path, ManualClock(), max_bytes=2 * (len(audit_line(record("0"), 0)) + 1))
        log.write(record(str(number)))
        log.close()
    assert [json.loads(line)["resource"] for line in path.read_text().splitlines()] == ["2"]


def test_the_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        log = AuditLog(tmp_path / "audit.jsonl", ManualClock(), max_bytes=1)
        for _ in range(2):
            log.write(RECORD)
        log.close()
    finally:
        os.umask(before)
    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o600}


def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ts.StorageError, match="audit log"):
        AuditLog(tmp_path / "none" / "audit.jsonl", ManualClock())
