"""Says in Spark's words, for the suites that have no others than those of Postgres, what their models and expectations say."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.base.relation import BaseRelation
from dbt.tests.adapter.basic.expected_catalog import base_expected_catalog, expected_references_catalog, no_stats
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import BaseGetCatalogForSingleRelation
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes
from dbt.tests.adapter.constraints import fixtures as constraints
from dbt.tests.adapter.constraints import test_constraints
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowDoesNotHandleDoubleLimit
from dbt.tests.adapter.ephemeral import test_ephemeral
from dbt.tests.adapter.functions.test_udfs import UDFsBasic
from dbt.tests.adapter.hooks import test_model_hooks, test_run_hooks
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.adapter.materialized_view.basic import MaterializedViewBasic
from dbt.tests.adapter.persist_docs import test_persist_docs
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.adapter.simple_seed import test_seed
from dbt.tests.adapter.simple_seed.fixtures import properties__schema_yml
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.adapter.simple_snapshot import test_various_configs
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingTypes
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.util import check_relations_equal, check_table_does_exist, get_connection, run_dbt, run_sql_with_adapter
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, TableMetadata

from tests.integration.dbt.suites import suites

OWN: dict[type, type] = {}
"""Ours in the place of dbt's."""


def replaces(original: type) -> Any:
    """Registers a class as ours of one of dbt's."""

    def register(own: type) -> type:
        OWN[original] = own
        return own

    return register


# -- documents

_TYPES = {"id_type": "BIGINT", "text_type": "STRING", "time_type": "TIMESTAMP_LTZ", "view_type": "view", "table_type": "table"}


@replaces(BaseDocsGenerate)
class DocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        return base_expected_catalog(project, role=None, model_stats=no_stats(), **_TYPES)


@replaces(BaseDocsGenReferences)
class DocsGenReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        return expected_references_catalog(project, role=None, model_stats=no_stats(), bigint_type="BIGINT", **_TYPES)


@replaces(BaseGetCatalogForSingleRelation)
class GetCatalogForSingleRelation(BaseGetCatalogForSingleRelation):
    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any) -> CatalogTable:
        return _catalog_table(project, "my_seed", "table")

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any) -> CatalogTable:
        return _catalog_table(project, "my_view_model", "view")


def _catalog_table(project: Any, name: str, kind: str) -> CatalogTable:
    types = {"id": "BIGINT", "first_name": "STRING", "email": "STRING", "ip_address": "STRING", "updated_at": "TIMESTAMP_LTZ"}
    columns = {
        column: ColumnMetadata(type=text, index=place, name=column, comment=None)
        for place, (column, text) in enumerate(types.items(), 1)
    }
    metadata = TableMetadata(type=kind, schema=project.test_schema, name=name, database=project.database, comment=None, owner=None)
    return CatalogTable(metadata=metadata, columns=columns, stats={}, unique_id=None)


@replaces(CatalogRelationTypes)
class RelationTypes(CatalogRelationTypes):
    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [
            ("seed.test.my_seed", "table"),
            ("model.test.my_table", "table"),
            ("model.test.my_view", "view"),
            ("model.test.my_materialized_view", "materialized_view"),
        ],
    )
    def test_relation_types_populate_correctly(self, docs: Any, node_name: str, relation_type: str) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)


@replaces(test_persist_docs.BasePersistDocs)
class PersistDocs(test_persist_docs.BasePersistDocs):
    def _assert_has_view_comments(self, view_node: Any, has_node_comments: bool = True, has_column_comments: bool = True) -> None:
        # The columns of a view have no comments.
        super()._assert_has_view_comments(view_node, has_node_comments, False)


# -- contracts


class OurTypes:
    @pytest.fixture
    def string_type(self) -> str:
        return "STRING"

    @pytest.fixture
    def int_type(self) -> str:
        return "INT"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        # The value in SQL, its type in the project, and as errors name it.
        return [
            ["1", "int", "INT"],
            ["'1'", "string", "STRING"],
            ["true", "boolean", "BOOLEAN"],
            ["cast('2013-11-03' as date)", "date", "DATE"],
            ["timestamp '2013-11-03 00:00:00'", "timestamp", "TIMESTAMP_LTZ"],
            ["timestamp_ntz '2013-11-03 00:00:00'", "timestamp_ntz", "TIMESTAMP_NTZ"],
            ["array('a', 'b', 'c')", "array<string>", "ARRAY<STRING>"],
            ["array(1, 2, 3)", "array<int>", "ARRAY<INT>"],
            ["cast(1 as decimal(4, 2))", "decimal(4, 2)", "DECIMAL(4, 2)"],
        ]


@replaces(test_constraints.BaseTableConstraintsColumnsEqual)
class TableConstraintsColumnsEqual(OurTypes, test_constraints.BaseTableConstraintsColumnsEqual):
    pass


@replaces(test_constraints.BaseViewConstraintsColumnsEqual)
class ViewConstraintsColumnsEqual(OurTypes, test_constraints.BaseViewConstraintsColumnsEqual):
    pass


@replaces(test_constraints.BaseIncrementalConstraintsColumnsEqual)
class IncrementalConstraintsColumnsEqual(OurTypes, test_constraints.BaseIncrementalConstraintsColumnsEqual):
    pass


_CREATED = """
create or replace table <model_identifier> (
    `id` INT NOT NULL,
    `color` STRING,
    `date_day` STRING,
    primary key (`id`) not enforced
)
as
select `id`, `color`, `date_day`
from (
    -- depends_on: <foreign_key_model_identifier>
    select
        'blue' as color,
        1 as id,
        '2019-01-01' as date_day
) as model_subq
"""


class Created:
    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _CREATED


@replaces(test_constraints.BaseConstraintsRuntimeDdlEnforcement)
class ConstraintsDdl(Created, test_constraints.BaseConstraintsRuntimeDdlEnforcement):
    pass


@replaces(test_constraints.BaseIncrementalConstraintsRuntimeDdlEnforcement)
class IncrementalConstraintsDdl(Created, test_constraints.BaseIncrementalConstraintsRuntimeDdlEnforcement):
    pass


@replaces(test_constraints.BaseModelConstraintsRuntimeEnforcement)
class ModelConstraintsDdl(Created, test_constraints.BaseModelConstraintsRuntimeEnforcement):
    pass


@replaces(test_constraints.BaseConstraintQuotedColumn)
class ConstraintQuotedColumn(test_constraints.BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": constraints.my_model_with_quoted_column_name_sql.replace('"from"', "`from`"),
            "constraints_schema.yml": constraints.model_quoted_column_schema_yml,
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
create or replace table <model_identifier> (
    `id` INT NOT NULL,
    `from` STRING NOT NULL,
    `date_day` STRING
)
as
select `id`, `from`, `date_day`
from (
    select
        'blue' as `from`,
        1 as id,
        '2019-01-01' as date_day
) as model_subq
"""


class NullRefused:
    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["column 'id'", "NOT NULL"]


@replaces(test_constraints.BaseConstraintsRollback)
class ConstraintsRollback(NullRefused, test_constraints.BaseConstraintsRollback):
    pass


@replaces(test_constraints.BaseIncrementalConstraintsRollback)
class IncrementalConstraintsRollback(NullRefused, test_constraints.BaseIncrementalConstraintsRollback):
    pass


_SETS, _READS = "set session time zone 'Asia/Kolkata';", "current_setting('timezone')"


class OurHeader:
    @pytest.fixture(scope="class")
    def models(self, request: pytest.FixtureRequest) -> dict[str, str]:
        text: str = getattr(constraints, self.template)  # type: ignore[attr-defined]
        return {
            "my_model_contract_sql_header.sql": text.replace(_SETS, "set 'timezone' = 'Asia/Kolkata';").replace(
                _READS, "current_timezone()"
            ),
            "constraints_schema.yml": constraints.model_contract_header_schema_yml,
        }


@replaces(test_constraints.BaseTableContractSqlHeader)
class TableContractSqlHeader(OurHeader, test_constraints.BaseTableContractSqlHeader):
    template = "my_model_contract_sql_header_sql"


@replaces(test_constraints.BaseIncrementalContractSqlHeader)
class IncrementalContractSqlHeader(OurHeader, test_constraints.BaseIncrementalContractSqlHeader):
    template = "my_model_incremental_contract_sql_header_sql"


# -- materialized tables


@replaces(MaterializedViewBasic)
class MaterializedTableBasic(MaterializedViewBasic):
    @staticmethod
    def insert_record(project: Any, table: BaseRelation, record: tuple[int, int]) -> None:
        project.run_sql(f"insert into {table} (id, value) values {record}")

    @staticmethod
    def refresh_materialized_view(project: Any, materialized_view: BaseRelation) -> None:
        project.run_sql(f"alter materialized table {materialized_view} refresh")

    @staticmethod
    def query_row_count(project: Any, relation: BaseRelation) -> int:
        return int(project.run_sql(f"select count(*) from {relation}", fetch="one")[0])

    @staticmethod
    def query_relation_type(project: Any, relation: BaseRelation) -> str | None:
        with get_connection(project.adapter):
            place = relation.without_identifier()
            kinds = {one.identifier: str(one.type) for one in project.adapter.list_relations_without_caching(place)}
        return kinds.get(relation.identifier)


# -- ephemeral models, whose suites compare a statement of Postgres


@replaces(test_ephemeral.BaseEphemeralMulti)
class EphemeralMulti(test_ephemeral.BaseEphemeralMulti):
    def test_ephemeral_multi(self, project: Any) -> None:
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        check_relations_equal(project.adapter, ["seed", "dependent"])
        check_relations_equal(project.adapter, ["seed", "double_dependent"])
        check_relations_equal(project.adapter, ["seed", "super_dependent"])
        statement = (Path("target") / "run" / "test" / "models" / "double_dependent.sql").read_text()
        assert statement.count("__dbt__cte__base as (") == statement.count("__dbt__cte__base_copy as (") == 1


@replaces(test_ephemeral.BaseEphemeralNested)
class EphemeralNested(test_ephemeral.BaseEphemeralNested):
    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        statement = (Path("target") / "run" / "test" / "models" / "root_view.sql").read_text()
        assert statement.index("__dbt__cte__ephemeral_level_two as (") < statement.index("__dbt__cte__ephemeral as (")


# -- incremental models

_DAY = re.compile(r"(?<!cast\()'(\d{4}-\d\d-\d\d)'")


@replaces(BaseIncrementalUniqueKey)
class IncrementalUniqueKey(BaseIncrementalUniqueKey):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        # A text and a date are of no one type.
        return _with_dates(BaseIncrementalUniqueKey.models._get_wrapped_function()(self))


def _with_dates(models: Any) -> Any:
    if isinstance(models, dict):
        return {name: _with_dates(part) for name, part in models.items()}
    return _DAY.sub(r"date '\1'", models)


# -- times

_UTC = "00:00:00-0"


@replaces(BaseMicrobatch)
class Microbatch(BaseMicrobatch):
    @pytest.fixture(scope="class")
    def input_model_sql(self) -> str:
        from dbt.tests.adapter.incremental import test_incremental_microbatch as original

        return original._input_model_sql.replace(_UTC, "00:00:00")

    @pytest.fixture(scope="class")
    def insert_two_rows_sql(self, project: Any) -> str:
        rows = "(4, timestamp '2020-01-04 00:00:00'), (5, timestamp '2020-01-05 00:00:00')"
        return f"insert into {project.database}.{project.test_schema}.input_model (id, event_time) values {rows}"


@replaces(BaseSampleModeTest)
class SampleMode(BaseSampleModeTest):
    @pytest.fixture(scope="class")
    def input_model_sql(self) -> str:
        from dbt.tests.adapter.sample_mode import fixtures

        return fixtures.input_model_sql.replace(":0-0'", ":00'").replace(_UTC, "00:00:00").replace("-0'", "'")


# A column of the name of the function hides it on DuckDB.
_NOW = {
    "now_here": "current_timestamp",
    "now_in_utc": "current_timestamp_in_utc_backcompat",
    "now_before": "current_timestamp_backcompat",
}


@replaces(BaseCurrentTimestamps)
class CurrentTimestamps(BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        columns = ", ".join(f"{{{{ {macro}() }}}} as {name}" for name, macro in _NOW.items())
        return {"get_current_timestamp.sql": f"select {columns}"}

    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        return dict.fromkeys(_NOW, "TIMESTAMP_LTZ")

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return f"select {', '.join(f'current_timestamp() as {name}' for name in _NOW)}"


@replaces(BaseUnitTestingTypes)
class UnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "1"],
            ["'1'", "1"],
            ["true", "true"],
            ["date '2020-01-02'", "2020-01-02"],
            ["timestamp '2013-11-03 00:00:00'", "2013-11-03 00:00:00"],
            ["timestamp_ntz '2013-11-03 00:00:00'", "2013-11-03 00:00:00"],
            ["cast('1' as decimal(10, 2))", "1"],
        ]


@replaces(test_various_configs.BaseSnapshotDbtValidToCurrent)
class SnapshotDbtValidToCurrent(test_various_configs.BaseSnapshotDbtValidToCurrent):
    @pytest.fixture(autouse=True)
    def _ordered_rows_without_zones(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def rows(adapter: Any, sql: str, fetch: str | None = None) -> Any:
            found = (tuple(map(_without_zone, row)) for row in run_sql_with_adapter(adapter, sql, fetch))
            return sorted(found, key=lambda row: (row[0], row[2]))

        monkeypatch.setattr(test_various_configs, "run_sql_with_adapter", rows)


def _without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


# -- hooks


class ModelHooks:
    """What a hook of a model sees."""

    def check_hooks(self, state: str, project: Any, host: Any, count: int = 1) -> None:
        for context in self.get_ctx_vars(state, count=count, project=project):  # type: ignore[attr-defined]
            _check_context(context, state, project)
            assert context["thread_id"].startswith("Thread-")


def _check_context(context: dict[str, Any], state: str, project: Any) -> None:
    assert context["test_state"] == state
    assert (context["target_name"], context["target_type"]) == ("default", "tablestore")
    assert (context["target_schema"], context["target_threads"]) == (project.test_schema, 4)
    assert context["run_started_at"]
    assert context["invocation_id"]


for _, _suite in suites():
    if issubclass(_suite, test_model_hooks.BaseTestPrePost):
        replaces(_suite)(type(_suite.__name__, (ModelHooks, _suite), {}))


@replaces(test_run_hooks.BasePrePostRunHooks)
class RunHooks(test_run_hooks.BasePrePostRunHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        config = test_run_hooks.BasePrePostRunHooks.project_config_update._get_wrapped_function()(self)
        return {**config, "on-run-end": [hook.replace(" text", " string") for hook in config["on-run-end"]]}

    def check_hooks(self, state: str, project: Any, host: Any) -> None:
        _check_context(self.get_ctx_vars(state, project), state, project)


# -- others


@replaces(UDFsBasic)
class Functions(UDFsBasic):
    pass


@replaces(BaseShowDoesNotHandleDoubleLimit)
class ShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "cannot be parsed"


class ViewStays:
    """A view names its table, and so outlives one that takes the other's place."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, True)  # type: ignore[misc]
        check_table_does_exist(project.adapter, "models__downstream_from_seed_actual")


@replaces(test_seed.BaseBasicSeedTests)
class BasicSeedTests(ViewStays, test_seed.BaseBasicSeedTests):
    pass


@replaces(test_seed.BaseSeedConfigFullRefreshOn)
class SeedConfigFullRefreshOn(ViewStays, test_seed.BaseSeedConfigFullRefreshOn):
    pass


@replaces(test_seed.BaseSeedWithWrongDelimiter)
class SeedWithWrongDelimiter(test_seed.BaseSeedWithWrongDelimiter):
    def test_seed_with_wrong_delimiter(self, project: Any) -> None:
        (result,) = run_dbt(["seed"], expect_pass=False)
        assert "line 1, column" in result.message


_SEED_TYPES = {
    "text": "STRING",
    "integer": "BIGINT",
    "boolean": "BOOLEAN",
    "timestamp without time zone": "TIMESTAMP_LTZ",
    "date": "DATE",
}


@replaces(BaseSimpleSeedColumnOverride)
class SimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"schema.yml": re.sub(r"type: (.*)", lambda found: f"type: {_SEED_TYPES[found[1]]}", properties__schema_yml)}


@replaces(BaseTypeInt)
class TypeInt(BaseTypeInt):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        # Whole numbers of a seed are BIGINT.
        return {"seeds": {"test": {"expected": {"+column_types": {"int_col": "int"}}}}}


@replaces(BaseGetIntervalsBetween)
class GetIntervalsBetween(BaseGetIntervalsBetween):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        models = BaseGetIntervalsBetween.models._get_wrapped_function()(self)
        return {name: text.replace("09/01/2023", "2023-09-01").replace("09/12/2023", "2023-09-12") for name, text in models.items()}


@replaces(test_seed.BaseSeedSpecificFormats)
class SeedSpecificFormats(test_seed.BaseSeedSpecificFormats):
    @pytest.fixture(scope="class")
    def seeds(self, test_data_dir: Path) -> Iterator[dict[str, str]]:
        # The name of a table has no dots.
        for seeds in test_seed.BaseSeedSpecificFormats.seeds._get_wrapped_function()(self, test_data_dir):
            yield {name.replace("seed.with.dots", "seed_with_dots"): text for name, text in seeds.items()}
