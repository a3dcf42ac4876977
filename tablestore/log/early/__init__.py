"""Early rows: rows that are in the log before their snapshot has landed (``log.consistency = eventual``).

Publishers and readers of such logs are those of any log, with a part for early rows: ``EarlyRowsAhead`` and ``EarlyRowsToo``.
"""
