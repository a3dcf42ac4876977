"""The flights of New York in 2013, kept in a managed table: ``python -m examples.flights``, or ``make demo``.

A year of work for one table, on real data: the schedule is inserted, departures and arrivals are upserted month by
month, cancelled flights are deleted; then the table is read as it was at several moments, through Python and through
Spark. Every state is compared row by row with what plain pandas makes of the raw data.

    flights.py     the data, and the rows of each step
    expected.py    what the table has to hold, computed by pandas alone
    python.py      the half that needs Python only
    spark.py       the half that needs Spark
    report.py      what is shown: steps, progress, checks, summary

sql.py, kafka.py, stream.py and materialized.py are demos of their own. All use the public names only, as a user's program would.
"""
