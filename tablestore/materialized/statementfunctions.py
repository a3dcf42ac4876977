"""Names the functions that run statements, where these are or may be about materialized tables."""

from collections.abc import Mapping

from tablestore.environment.execution import STATEMENT_FUNCTIONS

# The kind of a statement: the function that runs it.
ALL_STATEMENT_FUNCTIONS: Mapping[str, str] = {
    **STATEMENT_FUNCTIONS,
    "CreateMaterializedTable": "tablestore.materialized.declaring:create_materialized",
    "AlterMaterializedTable": "tablestore.materialized.lifecycle:alter_materialized",
    "DropMaterializedTable": "tablestore.materialized.lifecycle:drop_materialized",
    "DropDatabase": "tablestore.materialized.lifecycle:drop_database",
    "Explain": "tablestore.materialized.inspection:explain",
    "Show": "tablestore.materialized.inspection:show",
    "Describe": "tablestore.materialized.inspection:describe",
}
