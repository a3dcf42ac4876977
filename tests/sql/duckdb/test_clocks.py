"""Where clocks of a region are set back or forward, DuckDB finds the moments that Java does."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest
from tablestore_duckdb.arrowcalls import ArrowCalls

from tablestore.errors import UnsupportedError
from tablestore.sql.binding.sqltypes import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from tablestore.sql.duckdb.transpile import to_duckdb

REGIONS = (
    "Europe/Berlin", "Europe/London", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Havana",
    "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "Asia/Seoul", "America/Caracas", "Antarctica/Troll",
)  # fmt: skip
KINDS = {"t": [("local", TIMESTAMP_NTZ), ("text", STRING), ("moment", TIMESTAMP), ("day", DATE)]}
FIRST, LAST = datetime(1950, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE TABLE t (local TIMESTAMP, text VARCHAR, moment TIMESTAMPTZ, day DATE)")
        yield connection


def changes(zone: ZoneInfo, connection: duckdb.DuckDBPyConnection) -> list[tuple[datetime, timedelta, timedelta]]:
    """The moments at which clocks are set, and their offsets before and after.

    DuckDB and Python may have other editions of the rules: moments around which their offsets differ are left out.
    """
    found = list(all_changes(zone))
    around = [(at, at + timedelta(hours=hours)) for at, _, _ in found for hours in range(-24 * 17, 24 * 17, 6)]
    moments = pa.table({"moment": pa.array([moment for _, moment in around], pa.timestamp("us", "UTC"))})
    offsets = connection.sql(f"SELECT epoch_us(timezone('{zone.key}', moment)) - epoch_us(moment) FROM moments").fetchall()
    assert len(offsets) == len(moments)
    differ = {
        at for (at, moment), (offset,) in zip(around, offsets, strict=True)
        if moment.astimezone(zone).utcoffset() != timedelta(microseconds=offset)
    }  # fmt: skip
    assert len(differ) < len(found) / 2
    return [change for change in found if change[0] not in differ]


def all_changes(zone: ZoneInfo) -> Iterator[tuple[datetime, timedelta, timedelta]]:

    def offset(at: datetime) -> timedelta:
        found = at.astimezone(zone).utcoffset()
        assert found is not None
        return found

    at, step = FIRST, timedelta(days=4)
    while at < LAST:
        early, late = at, at + step
        if offset(early) != offset(late):
            while late - early > timedelta(seconds=1):
                middle = (early + (late - early) / 2).replace(microsecond=0)
                early, late = (middle, late) if offset(middle) == offset(early) else (early, middle)
            yield late, offset(early), offset(late)
        at += step


def shown(zone: ZoneInfo, connection: duckdb.DuckDBPyConnection) -> list[datetime]:
    """What clocks show, or leave out, around the moments at which they are set."""
    second, found = timedelta(seconds=1), []
    for at, before, after in changes(zone, connection):
        length, start = abs(after - before), (at + min(before, after)).replace(tzinfo=None)
        for behind in (-second, 0 * second, length / 2, length - second, length, length + timedelta(hours=1)):
            found.append((start + behind).replace(microsecond=0))
        found += [start + timedelta(hours=23), start - timedelta(hours=23)]
    return found


def seconds(local: datetime, zone: ZoneInfo) -> float:
    """Java's moment: the first of two, and behind a gap by as much as clocks were set forward. So is Python's with fold=0."""
    return local.replace(tzinfo=zone, fold=0).timestamp()


def answers(connection: duckdb.DuckDBPyConnection, expression: str, among: str = "t") -> list[float]:
    text = to_duckdb(f"SELECT {expression} AS moment FROM {among}", KINDS)
    ArrowCalls().register(text, connection, connection)
    return [micros / 1_000_000 for micros in connection.sql(text).to_arrow_table()["moment"].cast(pa.int64()).to_pylist()]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("region", REGIONS)
def test_of_two_moments_that_clocks_show_alike_the_first_is_meant(region: str, connection: duckdb.DuckDBPyConnection) -> None:
    zone = ZoneInfo(region)
    locals_ = shown(zone, connection)
    assert locals_
    wanted = [seconds(local, zone) for local in locals_]
    connection.executemany("INSERT INTO t (local, text) VALUES (?, ?)", [(local, str(local)) for local in locals_])
    for column in ("local", "text"):
        assert answers(connection, f"to_utc_timestamp({column}, '{region}')") == wanted
    connection.execute(f"SET TimeZone = '{region}'")
    for expression in ("CAST(local AS TIMESTAMP)", "CAST(text AS TIMESTAMP)", "to_timestamp(text, 'yyyy-MM-dd HH:mm:ss')"):
        assert answers(connection, expression) == wanted


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(
    ("region", "local", "wanted"),
    [
        ("Europe/Berlin", "2016-10-30 02:30:00", "2016-10-30 00:30:00"),
        ("Europe/Berlin", "2016-03-27 02:30:00", "2016-03-27 01:30:00"),
        ("America/New_York", "2016-11-06 01:30:00", "2016-11-06 05:30:00"),
        ("Australia/Lord_Howe", "2016-04-03 01:45:00", "2016-04-02 14:45:00"),
        ("Asia/Seoul", "1988-10-09 02:30:00", "1988-10-08 16:30:00"),
    ],
)
def test_written_moments_are_the_first_ones_too(
    region: str, local: str, wanted: str, connection: duckdb.DuckDBPyConnection
) -> None:
    connection.execute("INSERT INTO t DEFAULT VALUES")
    expected = datetime.fromisoformat(f"{wanted}+00:00").timestamp()
    texts = [f"to_utc_timestamp({kind}'{local}', '{region}')" for kind in ("", "TIMESTAMP ", "TIMESTAMP_NTZ ")]
    assert [answers(connection, text)[0] for text in texts] == [expected] * 3
    connection.execute(f"SET TimeZone = '{region}'")
    texts = [f"TIMESTAMP '{local}'", f"CAST('{local}' AS TIMESTAMP)", f"CAST(TIMESTAMP_NTZ '{local}' AS TIMESTAMP)"]
    texts += [f"to_timestamp('{local}')", f"timestamp('{local}')", f"TRY_CAST('{local}' AS TIMESTAMP)"]
    assert [answers(connection, text)[0] for text in texts] == [expected] * len(texts)
    counted = to_duckdb(f"SELECT unix_timestamp('{local}'), unix_timestamp(TIMESTAMP_NTZ '{local}')")
    ArrowCalls().register(counted, connection, connection)
    assert connection.sql(counted).fetchall() == [(expected, expected)]


def test_a_time_zone_in_the_text_says_which_of_two_moments_is_meant(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    connection.execute("INSERT INTO t (text) VALUES ('2016-10-30 02:30:00+02:00'), ('2016-10-30 02:30:00+01:00')")
    assert answers(connection, "CAST(text AS TIMESTAMP)") == [1477787400, 1477791000]
    assert answers(connection, "TIMESTAMP '2016-10-30 02:30:00+01:00'", "t LIMIT 1") == [1477791000]


def test_a_day_begins_with_the_first_of_two_midnights(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone = 'America/Havana'")
    connection.execute("INSERT INTO t (day) VALUES ('2016-11-06')")
    assert answers(connection, "CAST(day AS TIMESTAMP)") == [1478404800]
    connection.execute("SET TimeZone = 'America/Sao_Paulo'")
    assert answers(connection, "CAST(DATE '2018-11-04' AS TIMESTAMP)") == [1541300400]


@pytest.mark.parametrize(
    ("unit", "first", "second"),
    [
        ("HOUR", 1477785600, 1477789200),
        ("MINUTE", 1477787400, 1477791000),
        ("DAY", 1477778400, 1477778400),
        ("MONTH", 1475272800, 1475272800),
    ],
)
def test_what_is_cut_off_a_moment_leaves_the_clocks_as_they_are_set(
    unit: str, first: int, second: int, connection: duckdb.DuckDBPyConnection
) -> None:
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    connection.execute("INSERT INTO t (moment) VALUES (to_timestamp(1477787400)), (to_timestamp(1477791000))")
    assert answers(connection, f"date_trunc('{unit}', moment)") == [first, second]


def test_a_day_in_which_clocks_are_set_back_at_midnight_begins_as_they_are_set(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone = 'America/Havana'")
    moments = ", ".join(f"(to_timestamp({at}))" for at in (1478404860, 1478408460, 1478450000))
    connection.execute(f"INSERT INTO t (moment) VALUES {moments}")
    assert answers(connection, "date_trunc('DAY', moment)") == [1478404800, 1478408400, 1478408400]


def test_months_are_added_with_the_clocks_as_they_were_set_if_that_is_possible(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    connection.execute("INSERT INTO t (moment) VALUES (to_timestamp(1477787400)), (to_timestamp(1477791000))")
    month = "INTERVAL '1' MONTH"
    assert answers(connection, f"moment + {month} - {month}") == [1477791000, 1477791000]
    assert answers(connection, f"moment - {month} + {month}") == [1477787400, 1477787400]
    assert answers(connection, "moment + INTERVAL '0' MONTH") == [1477787400, 1477791000]


@pytest.mark.parametrize(
    "other", ["local", "TIMESTAMP_NTZ '2016-10-30 02:30:00'", "'2016-10-30 02:30:00'", "'2016-10-30 02:30:00+02:00'"]
)
def test_a_moment_is_compared_with_the_first_that_a_text_or_local_time_may_be(
    other: str, connection: duckdb.DuckDBPyConnection
) -> None:
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    connection.execute("INSERT INTO t (moment) VALUES (to_timestamp(1477787400)), (to_timestamp(1477791000))")
    connection.execute("UPDATE t SET local = '2016-10-30 02:30:00'")
    for condition in (f"moment = {other}", f"{other} >= moment", f"moment IN ({other})", f"moment BETWEEN {other} AND {other}"):
        assert answers(connection, "moment", f"t WHERE {condition}") == [1477787400]


def test_rows_are_grouped_by_such_a_moment(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    connection.execute("INSERT INTO t (text) VALUES ('2016-10-30 02:30:00'), ('2016-10-30 02:30:00')")
    for made in ("CAST(text AS TIMESTAMP)", "to_utc_timestamp(text, 'Europe/Berlin')", "date_trunc('DAY', text)"):
        clauses = f"GROUP BY {made} HAVING {made} IS NOT NULL ORDER BY {made}"
        text = to_duckdb(f"SELECT {made} AS m, count(*) AS c FROM t {clauses}", KINDS)
        assert len(connection.sql(text).to_arrow_table()) == 1


def days_later(moment: datetime, days: int, rest: timedelta, zone: ZoneInfo) -> float:
    """Java's moment some days later, and the rest behind that: clocks stay as they are set, where they can show that time so."""
    here = moment.astimezone(zone)
    local = here.replace(tzinfo=None) + timedelta(days=days)
    as_before = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    shown_so = [
        at
        for at in as_before
        if at.utcoffset() == here.utcoffset() and at.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local
    ]
    return (shown_so or as_before)[0].timestamp() + rest.total_seconds()


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize(
    ("interval", "days", "rest"),
    [
        ("+ INTERVAL '1' DAY", 1, 0),
        ("- INTERVAL '1' DAY", -1, 0),
        ("+ INTERVAL '24' HOUR", 1, 0),
        ("+ INTERVAL '-30' HOUR", -1, -6 * 3600),
        ("- INTERVAL '100000' SECOND", -1, -13_600),
        ("+ INTERVAL '3' HOUR", 0, 3 * 3600),
        ("+ INTERVAL '2' WEEKS", 14, 0),
        ("+ 9 * INTERVAL '5' HOUR", 1, 21 * 3600),
    ],
)
def test_a_day_of_24_hours_is_a_day_of_the_calendar(
    region: str, interval: str, days: int, rest: int, connection: duckdb.DuckDBPyConnection
) -> None:
    zone = ZoneInfo(region)
    moments = [
        at + timedelta(hours=hours)
        for at, _, _ in changes(zone, connection)
        for hours in (-25.5, -24, -2, -0.5, 0, 0.5, 1.5, 23.5, 24.5)
    ]
    connection.register("rows", pa.table({"moment": pa.array(moments, pa.timestamp("us", "UTC"))}))
    connection.execute("INSERT INTO t (moment) SELECT moment FROM rows")
    connection.execute(f"SET TimeZone = '{region}'")
    expected = [days_later(at, days, timedelta(seconds=rest), zone) for at in moments]
    found = answers(connection, f"moment {interval}")
    assert [pair for pair in zip(moments, expected, found, strict=True) if pair[1] != pair[2]] == []


@pytest.mark.parametrize(
    ("expression", "like"),
    [
        ("INTERVAL '24' HOUR + moment", "moment + INTERVAL '24' HOUR"),
        ("INTERVAL '-36' HOURS + moment", "moment - INTERVAL '36' HOUR"),
        ("INTERVAL '1' YEAR + moment", "moment + INTERVAL '1' YEAR"),
        ("moment + step.hours", "moment + INTERVAL '24' HOUR"),
        ("step.hours + moment", "moment + INTERVAL '24' HOUR"),
        ("moment - step.hours", "moment - INTERVAL '24' HOUR"),
        ("moment + step.years", "moment + INTERVAL '1' YEAR"),
        ("INTERVAL '36' HOUR + day", "day + INTERVAL '36' HOUR"),
        ("CAST(INTERVAL '36' HOUR + day AS TIMESTAMP)", "CAST(day AS TIMESTAMP) + INTERVAL '36' HOUR"),
    ],
)
def test_an_interval_moves_from_either_side_and_out_of_a_column(
    expression: str, like: str, connection: duckdb.DuckDBPyConnection
) -> None:
    moments = ", ".join(
        f"(to_timestamp({at}), DATE '2024-03-30')" for at in (1711845000, 1729902600, 1729984200, 1698366600, 1698456600)
    )
    connection.execute(f"INSERT INTO t (moment, day) VALUES {moments}")
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    among = "t, (SELECT INTERVAL '24' HOUR AS hours, INTERVAL '1' YEAR AS years) AS step"
    assert answers(connection, expression, among) == answers(connection, like)


@pytest.mark.parametrize(
    "cast", ["CAST('2' AS INTERVAL DAY)", "CAST(INTERVAL '90' MINUTE AS INTERVAL HOUR)", "CAST('1' AS INTERVAL)"]
)
def test_a_cast_to_an_interval_is_refused(cast: str) -> None:
    with pytest.raises(UnsupportedError, match="the cast to an INTERVAL"):
        to_duckdb(f"SELECT moment + {cast} AS moment FROM t", KINDS)
