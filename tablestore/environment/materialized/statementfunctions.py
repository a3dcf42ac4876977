"""Names the functions that run statements, where these are or may be about materialized tables."""

from collections.abc import Mapping

from tablestore.environment.execution import STATEMENT_FUNCTIONS

# The class of a statement: the function that runs it.
ALL_STATEMENT_FUNCTIONS: Mapping[str, str] = {
    **STATEMENT_FUNCTIONS,
    "CreateMaterializedTable": "tablestore.environment.materialized.declaring:create_materialized",
    "AlterMaterializedTable": "tablestore.environment.materialized.lifecycle:alter_materialized",
    "DropMaterializedTable": "tablestore.environment.materialized.lifecycle:drop_materialized",
    "DropDatabase": "tablestore.environment.materialized.lifecycle:drop_database",
    "Explain": "tablestore.environment.materialized.inspection:explain",
    "Show": "tablestore.environment.materialized.inspection:show",
    "Describe": "tablestore.environment.materialized.inspection:describe",
}
