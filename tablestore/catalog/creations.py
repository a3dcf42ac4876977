"""Creation records: the table creations that are under way in a warehouse, or have died on the way.

    _ctas/<job id>/intent.json       what the job makes: written before anything else of it, removed last
                   renewed.json      when the job was last known to live
                   publishing.json   it has begun to give the table its name, and makes a log for it or found one
                   sweeping.json     it was given up for dead: the job must not go on
                   <table>/          a staged table: an ordinary one that no catalog lists
                   .swept/           the same, taken away from its job

The directory of a job holds dots in the names of its own files, which no table may have, so nothing collides. A warehouse's
catalogs, Paimon's too, read the directories ``<database>.db`` only.

Whoever may write to the warehouse may write a record too, so a record alone proves nothing. It counts for the job in whose
directory it lies, and no path is taken from it. Under the table's own name only that is removed which carries the job's mark: the
uuid that the job gives its table is made from all of its record, in which there is a secret. So nobody can write the record of a
table that is there already, however well he knows the table. Records of earlier releases have no secret: what lies in their own
directory is removed, and nothing else.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Literal, get_args

from tablestore.catalog.identifier import Identifier, parse_identifier
from tablestore.errors import AlreadyExistsError, ConflictError, FormatError, InvalidInputError, NotFoundError
from tablestore.format.limits import json_within_limits, parse_json_bounded
from tablestore.format.paths import CREATIONS_DIR, SCHEMA_DIR, content_uuid
from tablestore.format.sealed import CHECKSUM_KEY, JsonObject, object_checksum, verify_checksum
from tablestore.io.filestore import TEMPORARY_PREFIX, FileStore
from tablestore.names import check_name

# Stored, never renamed.
_INTENT, _RENEWED, _PUBLISHING, _SWEEPING = "intent.json", "renewed.json", "publishing.json", "sweeping.json"
_SWEPT_DIR = ".swept"
_TIME_KEY, _LOG_KEY, _MADE, _FOUND = "millis", "log", "made", "found"
# Names are short, and nothing else in a record is longer.
_MOST_BYTES = 1 << 16
_WAY_OUT = "remove its directory if no job is at work there"

CreationKind = Literal["stage", "replace", "create"]
"""``stage``: a table that is invisible until it is whole. ``replace``: the same in the place of another one. ``create``: a table
that is visible from its creation on, and is taken back if its job fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationRecord:
    """The record of a job that creates or replaces a table. ``table_uuid``: of the table that it makes. ``commit_user``: under
    which name it commits the rows.

    ``replaced_uuid`` and ``replaced_schema_id``: what a replacement was planned on; None if there was no table. ``secret``: what
    the uuid is made from besides, see :func:`marked`; None in records of earlier releases.
    """

    job_id: str
    kind: CreationKind
    table: str
    table_uuid: str
    begun_millis: int
    commit_user: str | None = None
    replaced_uuid: str | None = None
    replaced_schema_id: int | None = None
    secret: str | None = None

    @property
    def marks_its_table(self) -> bool:
        """True if what has the uuid of this record was made by its job, and by no other."""
        return self.secret is not None

    @property
    def identifier(self) -> Identifier:
        """The name that the table is to have."""
        return parse_identifier(self.table)

    @property
    def staged_directory(self) -> str:
        """The directory of the staged table, relative to the warehouse."""
        return f"{_directory(self.job_id)}/{self.identifier.table}"

    @property
    def swept_directory(self) -> str:
        """The directory of the staged table once it was taken away from the job."""
        return f"{_directory(self.job_id)}/{_SWEPT_DIR}"


def marked(record: CreationRecord) -> CreationRecord:
    """The same record with the uuid that is made from all the rest of it: the job's mark on what it makes."""
    content = {key: value for key, value in asdict(record).items() if key != "table_uuid"}
    return replace(record, table_uuid=content_uuid(json.dumps(content, sort_keys=True).encode()))


class Creations:
    """The records of one warehouse."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    def begin(self, record: CreationRecord) -> None:
        """Note the table that a job is about to make. Raises AlreadyExistsError of kind ``job-exists``."""
        if not self._files.publish_if_absent(_path(record.job_id, _INTENT), _encode(record)) and self.find(record.job_id) != record:
            raise AlreadyExistsError(
                f"a creation of job {record.job_id!r} is on record in {self._files.root_uri}: give each job an id of its own, or "
                "let `tablestore clean` remove what a dead one has left",
                kind="job-exists",
            )

    def find(self, job_id: str) -> CreationRecord | None:
        """The record of a job; None if there is none. Raises FormatError if it is damaged, or another job's, and InvalidInputError
        for an id that no job has."""
        path = _path(check_job_id(job_id), _INTENT)
        try:
            data = self._files.read(path, max_bytes=_MOST_BYTES)
        except NotFoundError:
            return None
        record = _decode(data, f"{self._files.root_uri}/{path}")
        if record.job_id != job_id:
            raise FormatError(
                f"{self._files.root_uri}/{path}: expected the record of job {job_id!r}, in whose directory it lies, found that of "
                f"job {record.job_id!r:.120}. It was copied or made up, and nothing is done about it: {_WAY_OUT}",
                kind="swapped",
            )
        return record

    def all(self) -> Iterator[CreationRecord]:
        """The records that can be read, by job. A job whose record cannot be read cannot go on either (:meth:`check_is_wanted`)."""
        for job_id in self.job_ids():
            with suppress(FormatError, InvalidInputError):
                if (record := self.find(job_id)) is not None:
                    yield record

    def job_ids(self) -> tuple[str, ...]:
        """The jobs that have a directory, ascending; with or without a record."""
        return tuple(sorted(info.name for info in self._files.list(CREATIONS_DIR) if info.is_dir))

    def delete_probes(self, older_than_ms: int) -> None:
        """Delete the clock probes that dead sweepers have left."""
        for info in self._files.list(CREATIONS_DIR, prefix=TEMPORARY_PREFIX):
            if not info.is_dir and info.modified_ms <= older_than_ms:
                self._files.delete(f"{CREATIONS_DIR}/{info.name}")

    def renew(self, record: CreationRecord, now_millis: int) -> None:
        """The job lives. Raises ConflictError of kind ``creation-swept``."""
        self.check_is_wanted(record)
        self._files.overwrite(_path(record.job_id, _RENEWED), json_within_limits({_TIME_KEY: now_millis}, _RENEWED), lasting=False)

    def renewed_millis(self, record: CreationRecord) -> int:
        """The time when the job was last known to live."""
        path = _path(record.job_id, _RENEWED)
        try:
            renewed = JsonObject(parse_json_bounded(self._files.read(path), path), path).integer(_TIME_KEY)
        except (NotFoundError, FormatError):
            return record.begun_millis
        return max(renewed, record.begun_millis)

    def is_wanted(self, record: CreationRecord) -> bool:
        """True if the job may go on: nobody has given it up for dead."""
        return self.find(record.job_id) == record and not self._files.exists(_path(record.job_id, _SWEEPING))

    def check_is_wanted(self, record: CreationRecord) -> None:
        """Raise ConflictError of kind ``creation-swept`` unless the job may go on."""
        if not self.is_wanted(record):
            raise ConflictError(
                f"the creation of table {record.table} by job {record.job_id!r} was not renewed for long, so it was taken for dead "
                "and swept away: nothing of it is visible. Begin it anew, and renew it meanwhile",
                kind="creation-swept",
            )

    def begin_publishing(self, record: CreationRecord, *, makes_log: bool) -> None:
        """Notes that from now on there may be a log, which is the job's own if it ``makes_log``, and files in the table's own
        directory."""
        content = json_within_limits({_LOG_KEY: _MADE if makes_log else _FOUND}, _PUBLISHING)
        self._files.publish_if_absent(_path(record.job_id, _PUBLISHING), content)

    def makes_log(self, record: CreationRecord) -> bool:
        """True if the job has begun to give the table its name, and there was no log of it before."""
        path = _path(record.job_id, _PUBLISHING)
        try:
            return JsonObject(parse_json_bounded(self._files.read(path), path), path).text(_LOG_KEY) == _MADE
        except NotFoundError:
            return False

    def begin_sweeping(self, record: CreationRecord) -> None:
        """Give the job up for dead. It finds out with its next step, and whoever sweeps next goes on."""
        self._files.publish_if_absent(_path(record.job_id, _SWEEPING), b"{}")

    def is_sweeping(self, record: CreationRecord) -> bool:
        """True if somebody has given the job up for dead."""
        return self._files.exists(_path(record.job_id, _SWEEPING))

    def end(self, job_id: str) -> None:
        """Remove all that lies in the directory of a job, the record last.

        The schemas of a staged table go before its files are listed: a task that is still writing looks for its schema once its
        files are there, so either the list has them or the task removes them itself (``write_partition``).
        """
        directory = _directory(job_id)
        for info in self._files.list(directory):
            if info.is_dir and not info.is_link:
                self._files.delete_directory(f"{directory}/{info.name}/{SCHEMA_DIR}")
                self._files.delete_directory(f"{directory}/{info.name}")
            elif info.name not in (_INTENT, _SWEEPING):
                self._files.delete(f"{directory}/{info.name}")
        # While the record is there, a job that wakes up finds the mark.
        self._files.delete(_path(job_id, _INTENT))
        self._files.delete_directory(directory)


def check_job_id(job_id: str) -> str:
    """``job_id`` itself if it can name a directory. Raises InvalidInputError."""
    return check_name(job_id, "job")


def _directory(job_id: str) -> str:
    return f"{CREATIONS_DIR}/{job_id}"


def _path(job_id: str, name: str) -> str:
    return f"{_directory(job_id)}/{name}"


def _encode(record: CreationRecord) -> bytes:
    content: dict[str, object] = {
        "jobId": record.job_id,
        "kind": record.kind,
        "table": record.table,
        "tableUuid": record.table_uuid,
        "begunMillis": record.begun_millis,
        "commitUser": record.commit_user,
        "replacedUuid": record.replaced_uuid,
        "replacedSchemaId": record.replaced_schema_id,
        "secret": record.secret,
    }
    content = {key: value for key, value in content.items() if value is not None}
    return json_within_limits({**content, CHECKSUM_KEY: object_checksum(content)}, _INTENT)


def _decode(data: bytes, where: str) -> CreationRecord:
    content = JsonObject(parse_json_bounded(data, where), where)
    checksum = content.content.pop(CHECKSUM_KEY, None)
    verify_checksum(content.content, checksum, where)
    kind = content.text("kind")
    if kind not in get_args(CreationKind):
        content.refuse("kind", f"one of {', '.join(get_args(CreationKind))}", kind)
    try:
        parse_identifier(content.text("table"))
    except InvalidInputError as error:
        raise FormatError(f"{where}: {error}") from error
    record = CreationRecord(
        job_id=content.text("jobId"),
        kind=kind,  # type: ignore[arg-type]
        table=content.text("table"),
        table_uuid=content.text("tableUuid"),
        begun_millis=content.integer("begunMillis"),
        commit_user=content.optional_text("commitUser"),
        replaced_uuid=content.optional_text("replacedUuid"),
        replaced_schema_id=content.optional_integer("replacedSchemaId"),
        secret=content.optional_text("secret"),
    )
    if record.secret is not None and marked(record) != record:
        raise FormatError(
            f"{where}: expected the record that the uuid {record.table_uuid!r:.60} was made from, found another one. It was edited "
            f"or made up, and nothing is done about it: {_WAY_OUT}",
            kind="checksum",
        )
    return record
