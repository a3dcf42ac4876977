"""Runs statements in Spark with Paimon's own catalogs: in the interpreter of an environment of its own, with JSON in and out.

in     jar, a warehouse of its own, catalogs: name -> options, statements: texts with {c} for the name of the catalog
out    for each catalog and statement the rows as texts, or the error: {"rows": [...]} | {"error": ...}
"""

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    task = json.load(sys.stdin)
    settings = {
        "spark.jars": task["jar"],
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": task["warehouse"],
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    }
    for name, options in task["catalogs"].items():
        settings[f"spark.sql.catalog.{name}"] = "org.apache.paimon.spark.SparkCatalog"
        settings |= {f"spark.sql.catalog.{name}.{key}": value for key, value in options.items()}
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    answers = {name: [ran(spark, text.replace("{c}", name)) for text in task["statements"]] for name in task["catalogs"]}
    # Spark prints to the standard output as well.
    print("answers:" + json.dumps({"version": spark.version, "answers": answers}))
    spark.stop()


def ran(spark: SparkSession, statement: str) -> dict[str, object]:
    """The rows of a statement, or its error."""
    try:
        return {"rows": [[str(value) for value in row] for row in spark.sql(statement).collect()]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:2000]}


if __name__ == "__main__":
    main()
