"""Counts what Sail makes of the recorded answers of Spark: the figures of docs/decisions/0012-sail.md.

    pip install pysail pyspark-client
    PYTHONPATH=. python tests/integration/spark/programs/sailanswers.py [function …]

With functions, or operators, it prints their queries that have another answer. Queries of tables are left out.
"""

import sys
from collections import Counter, defaultdict

from pysail.spark import SparkConnectServer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.sql.answers import EDGES, EXAMPLES, Answer, plain_rows, read_answers, same_rows, type_name

# What no two runs or systems have in common.
_OWN = {"version", "user", "current_user", "session_user", "current_catalog", "current_timezone", "rand", "randn", "random"}


def outcome(spark: SparkSession, answer: Answer) -> str:
    try:
        table = spark.sql(answer.query).toArrow()
    except PySparkException:
        return "an error on both" if answer.error else "refused"
    except Exception:
        return "the server failed"
    if answer.error:
        return "rows where Spark has an error"
    rows, types = plain_rows(table), tuple(type_name(field.type) for field in table.schema)
    if answer.rows is not None and not same_rows(answer.rows, rows, ordered=answer.is_ordered):
        return "other rows"
    return "equal" if types == answer.types else "other types"


server = SparkConnectServer(port=0)
server.start(background=True)
session = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
session.conf.set("spark.sql.session.timeZone", "UTC")
for path in (EXAMPLES, EDGES):
    counts: Counter[str] = Counter()
    different: defaultdict[str, list[str]] = defaultdict(list)
    for answer in read_answers(path):
        if answer.function in _OWN:
            continue
        counts[result := outcome(session, answer)] += 1
        if result.startswith(("other", "rows where")):
            different[answer.function].append(f"{result}: {answer.query}")
    print(path.name, sum(counts.values()), dict(counts.most_common()))
    print(f"    {len(different)} functions answer otherwise: {' '.join(sorted(different))}")
    for name in sys.argv[1:]:
        print("\n".join(different[name]))
server.stop()
