"""Numbers as people read them (``3.1 MB``, ``2 h ago``) and write them (``7 d``, ``2026-01-31 12:00``)."""

from datetime import UTC, datetime

from tablestore.timepoint import epoch_millis

_STEPS = ((365 * 86400, "years"), (30 * 86400, "months"), (86400, "days"), (3600, "h"), (60, "min"), (1, "s"))


def human_bytes(size: int) -> str:
    """``1536`` as ``1.5 KB``; powers of 1024, as the options of a table count them."""
    value = float(size)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(value) < 1024 or unit == "TB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def human_age(time_millis: int, now_millis: int) -> str:
    """The distance of a time from now, as people say it."""
    seconds = (now_millis - time_millis) / 1000
    ahead = seconds < 0
    for length, unit in _STEPS:
        if abs(seconds) >= length * (2 if unit in ("years", "months", "days") else 1):
            text = f"{int(abs(seconds) // length)} {unit}"
            return f"in {text}" if ahead else f"{text} ago"
    return "now"


def human_duration(millis: int) -> str:
    """A length of time in its largest unit, such as ``3 min`` or ``250 ms``."""
    seconds = millis / 1000
    for length, unit in _STEPS:
        if seconds >= length * (2 if unit in ("years", "months", "days") else 1):
            return f"{seconds / length:.3g} {unit}"
    return "0 s" if millis < 1 else f"{millis} ms"


def iso_time(time_millis: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC."""
    try:
        moment = datetime.fromtimestamp(time_millis // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_millis} ms"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_millis % 1000:03d}Z"


def parse_time(text: str) -> int:
    """Milliseconds since the epoch from ISO 8601 text (no zone: local time) or from a number of milliseconds."""
    return epoch_millis(int(text) if text.strip().isdecimal() else text, "a time")
