"""Publishes one slot of a table's log, as a task of another process."""

from tablestore.distributed.spec import TableSpec
from tablestore.errors import ConflictError
from tablestore.log.publish.publisher import PublishReport


def publish_slot(spec: TableSpec, slots: int, slot: int, *, look: bool) -> PublishReport:
    """Publish one slot from the process of a task; nothing stays open behind it.

    Where another process is at work on the slot, this one waits until that has sent what there was, or gets nowhere: of two
    attempts of one task an engine kills the one that does not end first, and that must not be the one that works. Raises
    ConflictError where the number of slots was changed, and what publishing raises.
    """
    table = spec.table()
    log = table.change_log
    if (current_slots := log.slots) != slots:
        raise ConflictError(
            f"table {spec.location} has {current_slots} publisher slot(s), the job began with {slots}: the number was changed "
            "meanwhile; publish again",
            kind="publisher-slots",
        )
    latest = table.context.snapshots.latest()
    try:
        while True:
            # Ends: a busy slot is reported when its holder has come further, and one that does not is taken over.
            (report,) = log.publish(slots=(slot,), look=look)
            if not report.busy or latest is None or report.snapshot_id >= latest.id:
                return report
    finally:
        # Another process may have the slot next time: what stays open here would only be fenced.
        log.close()
