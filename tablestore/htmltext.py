"""How do notebooks show our objects, and people a point in time? As a title and a small table; as a date and a time of UTC."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from html import escape

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_time(millis: int) -> datetime:
    """Milliseconds since the epoch as a datetime; the ends of the calendar for what lies beyond them."""
    try:
        return _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return (datetime.max if millis > 0 else datetime.min).replace(tzinfo=UTC)


def utc_text(millis: int) -> str:
    """The same as text, to the second."""
    return f"{utc_time(millis):%Y-%m-%d %H:%M:%S} UTC"


def html_card(kind: str, name: str, rows: Mapping[str, object]) -> str:
    """An object with what there is to know of it."""
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(str(key))}</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for key, value in rows.items()
    )
    return f"<div><b>{escape(kind)}</b> {escape(name)}<table>{lines}</table></div>"


class PrintedInNotebooks:
    """A value that notebooks show as it prints."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
