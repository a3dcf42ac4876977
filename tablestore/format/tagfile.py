"""Tags: a snapshot under a name.

    tag/tag-<name> = the snapshot's JSON  [+ tagCreateTime: [year, month, day, hour, minute, second, nanos]]
                                          [+ tagTimeRetained: seconds]

The snapshot's own keys are copied as they are, so its checksum still covers them; the two keys of the tag are outside of it.
The creation time is local wall-clock time, as others write it: it orders tags of one machine and bounds how long a tag is kept,
and decides nothing else.
"""

import json
from dataclasses import dataclass
from datetime import datetime

from tablestore.errors import FormatError
from tablestore.format.limits import DEFAULT_LIMITS, Limits, json_within_limits, parse_json_bounded
from tablestore.format.snapshot import Snapshot, decode_snapshot

# Stored, never renamed.
CREATE_TIME_KEY = "tagCreateTime"
TIME_RETAINED_KEY = "tagTimeRetained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A named snapshot. Times in milliseconds; None where the tag does not say."""

    name: str
    snapshot: Snapshot
    create_time_millis: int | None = None
    retained_millis: int | None = None

    def is_expired(self, now_millis: int) -> bool:
        """True if it was to be kept for a time, which is over."""
        if self.create_time_millis is None or self.retained_millis is None:
            return False
        return self.create_time_millis + self.retained_millis < now_millis


def encode_tag(snapshot_file: bytes, *, create_time_millis: int | None, retained_millis: int | None) -> bytes:
    """The tag file of the snapshot in ``snapshot_file`` (the bytes of a snapshot or tag that was decoded before)."""
    content = json.loads(snapshot_file)
    content.pop(CREATE_TIME_KEY, None)
    content.pop(TIME_RETAINED_KEY, None)
    if create_time_millis is not None:
        local = datetime.fromtimestamp(create_time_millis / 1000)
        nanos = create_time_millis % 1000 * 1_000_000
        content[CREATE_TIME_KEY] = [local.year, local.month, local.day, local.hour, local.minute, local.second, nanos]
    if retained_millis is not None:
        content[TIME_RETAINED_KEY] = retained_millis / 1000
    return json_within_limits(content, "tag", indent=2)


def decode_tag(data: bytes, tag: str, path: str, limits: Limits = DEFAULT_LIMITS) -> Tag:
    """The tag ``tag`` in the file ``path``. Raises FormatError, as for a snapshot."""
    snapshot = decode_snapshot(data, path, limits)
    content = parse_json_bounded(data, path, limits)
    assert isinstance(content, dict), "a snapshot was decoded from it"
    return Tag(
        name=tag,
        snapshot=snapshot,
        create_time_millis=_create_time(content.get(CREATE_TIME_KEY), path),
        retained_millis=_retained(content.get(TIME_RETAINED_KEY), path),
    )


def _create_time(value: object, path: str) -> int | None:
    if value is None:
        return None
    # Trailing zero fields may be left out.
    if isinstance(value, list) and 5 <= len(value) <= 7 and all(isinstance(part, int) for part in value):
        year, month, day, hour, minute, seconds, nanos = (*value, 0, 0)[:7]
        try:
            local = datetime(year, month, day, hour, minute, seconds)
            return round(local.timestamp()) * 1000 + int(nanos) // 1_000_000
        except (ValueError, OverflowError, OSError):
            pass
    raise FormatError(
        f"{path}: expected {CREATE_TIME_KEY} as [year, month, day, hour, minute, second, nanos], found {str(value)[:80]}; "
        "delete the tag and create it again"
    )


def _retained(value: object, path: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise FormatError(
            f"{path}: expected {TIME_RETAINED_KEY} as seconds, found {str(value)[:80]}; delete the tag and create it again"
        )
    return round(value * 1000)
