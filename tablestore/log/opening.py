"""Opens the change log of a table: the file store's or a log system's, chosen once, when the table is opened.

:class:`ChangeLogs` is made where handles come from, one per ``open_catalog`` or ``open_table``, and is handed to every handle that
comes from there: so the tables of one catalog share their open publishers.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from tablestore.lazy import lazy
from tablestore.store.context import TableContext

# Every handle holds a ChangeLogs, and who only reads a table asks it for nothing: then no log is loaded.
if TYPE_CHECKING:
    from tablestore.log.port import ChangeLog
    from tablestore.log.publish.publishers import Publishers
    from tablestore.log.publish.slotlocks import SlotLocks


class ChangeLogs:
    """The change logs of the tables of one catalog. ``locks``: those of this user on this host, unless others are given.

    ``silent``: what their tables commit goes to no log. For tables that are not there yet, whose log begins with them.
    """

    def __init__(self, locks: "SlotLocks | None" = None, silent: bool = False) -> None:
        self._locks, self._silent = locks, silent

    @lazy
    def _publishers(self) -> "Publishers":
        from tablestore.log.publish.publishers import Publishers
        from tablestore.log.publish.slotlocks import SlotLocks, user_lock_folder

        return Publishers(self._locks or SlotLocks(user_lock_folder()))

    def __reduce__(self) -> tuple[type["ChangeLogs"], "tuple[SlotLocks | None, bool]"]:
        # Connections do not travel: where this arrives nothing is open.
        return ChangeLogs, (self._locks, self._silent)

    def silenced(self) -> "ChangeLogs":
        """The same, silent."""
        return ChangeLogs(self._locks, silent=True)

    def of(self, context: TableContext) -> "ChangeLog":
        """The change log of an open table. Raises InvalidInputError, UnsupportedError for options that name none of ours."""
        from tablestore.log.filestorelog import FileStoreLog
        from tablestore.log.publishedlog import PublishedLog
        from tablestore.log.settings import settings_of

        settings = context.once(settings_of)
        if settings.system == "filestore":
            return FileStoreLog(context, settings, self._publishers)
        if self._silent:
            return PublishedLog(context, replace(settings, eventual=False), self._publishers, publish=lambda: None)
        return PublishedLog(context, settings, self._publishers)

    def moved(self, old_address: str, context: TableContext) -> None:
        """A table was renamed, and lay at ``old_address`` before: its log keeps its name and goes with it."""
        from tablestore.log.publish.claim import move_owner

        self._publishers.close(old_address)
        move_owner(context, old_address)

    def close(self) -> None:
        """Close the publishers that are open. They are opened again when they are needed."""
        # Asked for by nobody, there are none.
        if "_publishers" in self.__dict__:
            self._publishers.close()
