"""Makes OpenLineage events of runs: what each event says is decided here, and nothing is sent.

job       namespace  where the output lies        name  database.table.operation
dataset   namespace  file, s3://bucket, kafka://host:port        name  the path, the topic        (OpenLineage's naming)
          the name in the catalog is a symlink of it
facets    schema, columnLineage, sql, jobType, processing_engine, parent, errorMessage, outputStatistics, version
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from urllib.parse import urlsplit

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    BaseFacet,
    DatasetFacet,
    JobFacet,
    OutputDatasetFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    sql_job,
    symlinks_dataset,
)

from tablestore.redaction import without_secrets
from tablestore.telemetry.lineage import ColumnSources, ColumnUse, LineageDataset, LineageJob, Written

PRODUCER = "https://pypi.org/project/managed-tablestore"
_MOST_MESSAGE = 10_000
_CONTEXT, _PARENT, _ROOT = "OPENLINEAGE_CONTEXT", "OPENLINEAGE_PARENT_ID", "OPENLINEAGE_ROOT_PARENT_ID"
FacetT = TypeVar("FacetT", bound=BaseFacet)


def run_event(
    job: LineageJob,
    state: RunState,
    *,
    run_id: str,
    at_ms: int,
    version: str,
    parent: parent_run.ParentRunFacet | None = None,
    written: Written | None = None,
    error: BaseException | None = None,
) -> RunEvent:
    """The event of a run that is in a state. ``at_ms``: since the epoch; ``version``: of tablestore; ``parent``: what runs it."""
    namespace, _ = dataset_name(job.output.location)
    return RunEvent(
        eventType=state,
        eventTime=(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds"),
        run=Run(runId=run_id, facets=_run_facets(job, version, parent, error)),
        job=Job(namespace=namespace, name=_job_name(job), facets=_job_facets(job)),
        producer=PRODUCER,
        inputs=[_input(dataset) for dataset in job.inputs],
        outputs=[_output(job, written)],
    )


def parent_of(environment: Mapping[str, str]) -> parent_run.ParentRunFacet | None:
    """The run of an orchestrator that the runs of this process are parts of, as OpenLineage's integration of dbt reads it too:
    ``OPENLINEAGE_CONTEXT`` is JSON, ``OPENLINEAGE_PARENT_ID`` is ``namespace/job/id``. None where neither is set.

    Raises ValueError, KeyError, TypeError, AttributeError for what is neither.
    """
    if context := environment.get(_CONTEXT):
        parent = json.loads(context)["parent"]
        root = parent.get("root") or parent
        runs = [[one["job"]["namespace"], one["job"]["name"], one["run"]["runId"]] for one in (parent, root)]
    elif parent_id := environment.get(_PARENT):
        # A namespace may be an address.
        runs = [text.rsplit("/", 2) for text in (parent_id, environment.get(_ROOT) or parent_id)]
    else:
        return None
    (namespace, name, run_id), (root_namespace, root_name, root_id) = runs
    return _ours(
        parent_run.ParentRunFacet(
            run=parent_run.Run(runId=run_id),
            job=parent_run.Job(namespace=namespace, name=name),
            root=parent_run.Root(
                run=parent_run.RootRun(runId=root_id), job=parent_run.RootJob(namespace=root_namespace, name=root_name)
            ),
        )
    )


def dataset_name(location: str) -> tuple[str, str]:
    """The namespace and name of what lies at an address, as OpenLineage calls it: ``s3://bucket``, ``wh/shop.db/orders``."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file", "local"):
        return "file", parts.path if parts.scheme else location
    scheme = {"s3a": "s3", "s3n": "s3"}.get(parts.scheme, parts.scheme)
    host = parts.netloc.rpartition("@")[2]
    return f"{scheme}://{host}", parts.path.strip("/") or "/"


def _job_name(job: LineageJob) -> str:
    name = job.output.name or dataset_name(job.output.location)[1].strip("/").replace("/", ".")
    return f"{name}.{job.operation.lower().replace(' ', '_')}"


def _ours(facet: FacetT) -> FacetT:
    facet._producer = PRODUCER
    return facet


def _run_facets(
    job: LineageJob, version: str, parent: parent_run.ParentRunFacet | None, error: BaseException | None
) -> dict[str, RunFacet]:
    name = "tablestore" if job.engine is None else f"tablestore, {job.engine}"
    facets: dict[str, RunFacet] = {
        "processing_engine": _ours(processing_engine_run.ProcessingEngineRunFacet(version=version, name=name))
    }
    if parent is not None:
        facets["parent"] = parent
    if error is not None:
        message = without_secrets(str(error))[:_MOST_MESSAGE] or type(error).__name__
        facets["errorMessage"] = _ours(error_message_run.ErrorMessageRunFacet(message=message, programmingLanguage="python"))
    return facets


def _job_facets(job: LineageJob) -> dict[str, JobFacet]:
    processing = "STREAMING" if job.is_stream else "BATCH"
    job_type = job_type_job.JobTypeJobFacet(processingType=processing, integration="TABLESTORE", jobType=job.operation)
    facets: dict[str, JobFacet] = {"jobType": _ours(job_type)}
    if job.sql is not None:
        facets["sql"] = _ours(sql_job.SQLJobFacet(query=job.sql, dialect=job.dialect))
    return facets


def _facets(dataset: LineageDataset) -> dict[str, DatasetFacet]:
    facets: dict[str, DatasetFacet] = {}
    if dataset.columns:
        fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=type_text) for name, type_text in dataset.columns]
        facets["schema"] = _ours(schema_dataset.SchemaDatasetFacet(fields=fields))
    if dataset.name is not None:
        namespace, _ = dataset_name(dataset.location)
        identifier = symlinks_dataset.Identifier(namespace=namespace, name=dataset.name, type="TABLE")
        facets["symlinks"] = _ours(symlinks_dataset.SymlinksDatasetFacet(identifiers=[identifier]))
    return facets


def _input(dataset: LineageDataset) -> InputDataset:
    namespace, name = dataset_name(dataset.location)
    return InputDataset(namespace=namespace, name=name, facets=_facets(dataset))


def _output(job: LineageJob, written: Written | None) -> OutputDataset:
    namespace, name = dataset_name(job.output.location)
    facets = _facets(job.output)
    output_facets: dict[str, OutputDatasetFacet] = {}
    if job.sources != ColumnSources():
        facets["columnLineage"] = _ours(_column_lineage(job.sources))
    if written is not None:
        if written.snapshot_id is not None:
            facets["version"] = _ours(dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=str(written.snapshot_id)))
        if (written.rows, written.files, written.size_bytes) != (None, None, None):
            output_facets["outputStatistics"] = _ours(
                output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                    rowCount=written.rows, size=written.size_bytes, fileCount=written.files
                )
            )
    return OutputDataset(namespace=namespace, name=name, facets=facets, outputFacets=output_facets)


def _column_lineage(sources: ColumnSources) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        fields={
            column: column_lineage_dataset.Fields(inputFields=_input_fields(uses))
            for column, uses in sources.columns.items()
            if uses
        },
        dataset=_input_fields(sources.rows),
    )


def _input_fields(uses: Sequence[ColumnUse]) -> list[column_lineage_dataset.InputField]:
    """One for each column, with all ways in which it went in."""
    ways: dict[tuple[LineageDataset, str], list[column_lineage_dataset.Transformation]] = {}
    for use in uses:
        kind, subtype = use.how.value
        ways.setdefault((use.dataset, use.column), []).append(column_lineage_dataset.Transformation(type=kind, subtype=subtype))
    fields = []
    for (dataset, column), transformations in ways.items():
        namespace, name = dataset_name(dataset.location)
        fields.append(
            column_lineage_dataset.InputField(namespace=namespace, name=name, field=column, transformations=transformations)
        )
    return fields
