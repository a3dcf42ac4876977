"""Several sessions at random over the same materialized tables: what was OK is true afterwards, and nothing else is.

A life is some statements of a seed. One may run in the middle of another one, at any call of the store; a session may die there,
or the store may fail once. Afterwards the tables are as some order of the statements that were OK leaves them; one that died may
have been among them. At the end nothing is left but tables that can be read, refreshed and verified, each with the one job that it
names.
"""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain, permutations, product
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.environment.jobs import Job
from tablestore.environment.objectpath import ObjectPath
from tablestore.io.local import LocalFileStore
from tablestore.materialized.continuous import job_of
from tablestore.materialized.freshness import RefreshMode
from tablestore.materialized.incremental.verify import verify
from tablestore.materialized.materializedtable import RefreshStatus
from tablestore.materialized.refreshing import refresh_session
from tablestore.materialized.storing import StoredTable, open_materialized
from tablestore.materialized.tableversions import VERSION, Role, version_path
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.statements.materialized import (
    AlterMaterializedTable,
    CreateMaterializedTable,
    Discard,
    DropMaterializedTable,
    Promote,
    ResetOptions,
    Resume,
    Rollback,
    SetFreshness,
    SetOptions,
    SetQuery,
    SetRefreshMode,
    Stage,
    Suspend,
)
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import Faults, FileCall, SimulatedCrash
from tests.materialized.test_evolution_crashes import opened
from tests.table.creation.places import RenamingFaultyStore

TABLES = ("m", "n")
PLAIN, FEW, MORE = "SELECT id, v FROM s", "SELECT id, v FROM s WHERE id > 2", "SELECT id, v, id * 2 AS w FROM s"
# The first fails while the source has a bad row, the second always.
MAY_FAIL, FAILS = "SELECT id, v, CAST(v AS BIGINT) AS w FROM s", "SELECT id, v, CAST(concat('x', id) AS BIGINT) AS w FROM s"
LESS = "SELECT id, v, id * 3 AS w FROM s WHERE id < 5"
QUERIES = (PLAIN, FEW, MORE, MORE, MORE, LESS, LESS, LESS, MAY_FAIL, FAILS)
ROWS = (
    "INSERT INTO s VALUES ({}, '{}')",
    "INSERT INTO s VALUES ({}, 'x')",
    "DELETE FROM s WHERE id = {}",
    "DELETE FROM s WHERE v = 'x'",
)
BARE = ("PROMOTE", "ROLLBACK", "DISCARD", "SUSPEND", "RESUME")
SETS = (
    *("SET FRESHNESS = INTERVAL '5' MINUTE", "SET FRESHNESS = INTERVAL '7' MINUTE", "SET FRESHNESS = INTERVAL '1' DAY"),
    *("SET REFRESH_MODE = FULL", "SET REFRESH_MODE = CONTINUOUS", "SET ('write-only' = 'true')", "RESET ('write-only')"),
)
STATEMENTS_OF_A_LIFE = 10


@dataclass(frozen=True, slots=True)
class Definition:
    """What a version declares."""

    query: str
    freshness: str
    logical: str = "AUTOMATIC"
    write_only: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """One table, with the versions beside it."""

    current: Definition
    suspended: bool = False
    staged: Definition | None = None
    previous: Definition | None = None


class ImpossibleError(Exception):
    """No order of statements has this one here."""


Tables = Mapping[str, State]


def after(tables: Tables, text: str) -> Tables:
    """What a statement that was OK leaves. Raises ImpossibleError where it could not be OK."""
    statement = parse_statement(text)
    match statement:
        case CreateMaterializedTable(path=path, freshness=interval, query=query, or_alter=or_alter):
            there = tables.get(path.parts[0])
            assert interval is not None
            declared = Definition(query.text, f"INTERVAL '{interval.interval}' {interval.unit}")
            if there is not None and not or_alter:
                raise ImpossibleError
            return {**tables, path.parts[0]: State(declared) if there is None else replace(there, current=declared)}
        case DropMaterializedTable(path=path):
            # Of two at one time both find it, and it is gone after both.
            return {name: state for name, state in tables.items() if name != path.parts[0]}
        case AlterMaterializedTable(path=path, action=action):
            if (state := tables.get(path.parts[0])) is None:
                raise ImpossibleError
            return {**tables, path.parts[0]: altered(state, action)}
    return tables


def altered(state: State, action: object) -> State:
    current = state.current
    match action:
        case SetQuery(query=query):
            current = replace(current, query=query.text)
        case SetFreshness(freshness=interval):
            current = replace(current, freshness=f"INTERVAL '{interval.interval}' {interval.unit}")
        case SetRefreshMode(refresh_mode=mode):
            current = replace(current, logical=str(mode))
        case SetOptions() | ResetOptions():
            current = replace(current, write_only=isinstance(action, SetOptions))
        case Stage(declared=declared):
            return replace(state, staged=replace(current, query=declared.query.text))
        case Promote() if state.staged is not None:
            return replace(state, current=state.staged, staged=None, previous=current)
        case Rollback() if state.previous is not None:
            return replace(state, current=state.previous, previous=None, staged=current)
        case Discard() if state.staged is not None:
            return replace(state, staged=None)
        case Discard() if state.previous is not None:
            return replace(state, previous=None)
        case Suspend() if not state.suspended:
            return replace(state, suspended=True)
        case Promote() | Rollback() | Discard() | Suspend():
            raise ImpossibleError
        case Resume():
            return replace(state, suspended=False)
    return replace(state, current=current)


def unfinished(tables: Tables, text: str) -> Tables:
    """What a statement leaves that was about to give up versions beside its table: the ones that it no longer needs."""
    match parse_statement(text):
        case DropMaterializedTable(path=path) if path.parts[0] in tables:
            kept = {"staged": None}
        case AlterMaterializedTable(path=path, action=Promote()) if path.parts[0] in tables:
            kept = {"previous": None}
        case AlterMaterializedTable(path=path, action=Rollback()) if path.parts[0] in tables:
            kept = {"staged": None}
        case _:
            raise ImpossibleError
    return {**tables, path.parts[0]: replace(tables[path.parts[0]], **kept)}


def without_versions(tables: Tables, text: str) -> Tables:
    """What is left by one that has dropped all but the table."""
    tables = unfinished(tables, text)
    return {name: replace(state, previous=None) if f" {name}" in text else state for name, state in tables.items()}


Step = tuple[Callable[[Tables, str], Tables], str]


def outcomes(before: Tables, done: Sequence[str], unknown: Sequence[str]) -> Iterator[Tables]:
    """What the tables may be after statements that overlapped: each that was OK in some order, and any of the unknown ones, or a
    part of it."""
    perhaps: list[list[tuple[Step, ...]]] = [
        [(), ((after, text),), ((unfinished, text),), ((without_versions, text),)] for text in unknown
    ]
    for chosen in product(*perhaps):
        for order in permutations([*((after, text) for text in done), *chain.from_iterable(chosen)]):
            tables = before
            with suppress(ImpossibleError):
                for step, text in order:
                    tables = step(tables, text)
                yield tables


def some_statement(chance: random.Random, tables: Tables) -> str:
    """One that mostly makes sense, as far as is known of the tables."""
    one, table, kind = chance.choice, chance.choice(TABLES), chance.random()
    state, query, number = tables.get(table), one(QUERIES), chance.randint(1, 9)
    if kind < 0.15:
        return one(ROWS).format(number, number)
    if kind < (0.8 if state is None else 0.3):
        how, freshness = one(("CREATE OR ALTER", "CREATE OR ALTER", "CREATE")), one(("5' MINUTE", "5' MINUTE", "1' DAY"))
        return f"{how} MATERIALIZED TABLE {table} FRESHNESS = INTERVAL '{freshness} AS {query}"
    if kind < 0.36:
        return f"DROP MATERIALIZED TABLE {table}"
    likely = ["AS {q}", "AS {q}", "STAGE AS {q}", "REFRESH", one(SETS), one(BARE)]
    if state is not None:
        likely += ["RESUME"] * 2 if state.suspended else ["SUSPEND"]
        likely += ["PROMOTE"] * 4 if state.staged else ["STAGE AS {q}"]
        likely += ["ROLLBACK"] * 3 if state.previous else []
    return f"ALTER MATERIALIZED TABLE {table} {one(likely).format(q=query)}"


class Rounds:
    """Lets the jobs of continuous tables go from round to round, instead of the time."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._turn, self._paused, self._go = threading.Condition(), set[str](), set[str]()
        cancel = Job.cancel

        def canceled(job: Job[Any]) -> bool:
            asked = cancel(job)
            with self._turn:
                self._turn.notify_all()
            return asked

        patch.setattr(Job, "pause", lambda job, seconds: self._pause(job))
        patch.setattr(Job, "cancel", canceled)

    def _pause(self, job: Job[Any]) -> None:
        with self._turn:
            self._paused.add(job.id)
            self._turn.notify_all()
            self._turn.wait_for(lambda: job.id in self._go or job._cancel.is_set())
            self._paused.discard(job.id)
            self._go.discard(job.id)
        job.check()

    def run(self, job: Job[Any]) -> None:
        """One round of a job, to its end."""
        with self._turn:
            if not self._turn.wait_for(lambda: job.id in self._paused or job.done(), timeout=30):
                raise AssertionError(f"{job} neither waits nor ends")
            self._go.add(job.id)
            self._turn.notify_all()
            while not (job.done() or (job.id in self._paused and job.id not in self._go)):
                self._turn.wait(0.01)


@dataclass(slots=True)
class Actor:
    """A session, as in a process of its own."""

    env: ts.TableEnvironment
    faults: Faults


@dataclass(slots=True)
class Life:
    """One warehouse, its sessions, and what the tables are."""

    seed: int
    place: Path
    rounds: Rounds
    chance: random.Random = field(init=False)
    clock: ManualClock = field(default_factory=ManualClock)
    actors: list[Actor] = field(default_factory=list)
    tables: Tables = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    dead_after: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        (self.place / "wh").mkdir(parents=True)
        self.actors = [self.actor() for _ in range(2 + self.seed % 2)]
        self.actors[0].env.execute_sql("CREATE TABLE s (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED)")
        self.actors[0].env.execute_sql("INSERT INTO s VALUES (1, '1'), (2, '2'), (3, '3')")

    @property
    def files(self) -> LocalFileStore:
        return LocalFileStore(self.place / "wh")

    def actor(self) -> Actor:
        faults = Faults()
        catalog = opened(RenamingFaultyStore(self.files, faults), self.clock)
        return Actor(ts.TableEnvironment.create(catalog, engine="duckdb", clock=self.clock), faults)

    # -- statements

    def run(self) -> None:
        for _ in range(STATEMENTS_OF_A_LIFE):
            done, unknown = self.overlapping(self.actors)
            now = self.observed()
            assert now in outcomes(self.tables, done, unknown), f"{self.story()}\nbefore {self.tables}\nafter {now}"
            self.tables = now
            if self.chance.random() < 0.3:
                self.go_on()
        self.end()

    def overlapping(self, actors: Sequence[Actor]) -> tuple[list[str], list[str]]:
        """A statement of one of them, perhaps with some of the others in the middle: those that were OK, and those of which nobody
        knows."""
        actor = self.chance.choice(actors)
        others, text, fate = (
            [one for one in actors if one is not actor],
            some_statement(self.chance, self.tables),
            self.chance.random(),
        )
        inside: list[tuple[list[str], list[str]]] = []
        when = self.chance.randint(1, self.chance.choice((15, 60, 120)))
        # The call may be one of the session's job, in a thread of its own.
        counting, within = threading.Lock(), threading.Lock()

        def at_once(call: FileCall) -> None:
            nonlocal when
            with counting:
                when -= 1
                if when != 0:
                    return
                within.acquire()
            try:
                inside.append(self.overlapping(others))
            finally:
                within.release()

        if fate < 0.5 and others:
            actor.faults.before(at_once)
        elif fate < 0.6:
            actor.faults.crash_nth(when, when=self.chance.choice(("before", "after")))
        elif fate < 0.7:
            actor.faults.fail_nth(when, when=self.chance.choice(("before", "after")))
        injected = actor.faults.injected_total
        sync = self.chance.random() < 0.6
        result = self.outcome(actor, text, sync=sync)
        actor.faults.clear()
        with counting:
            when = 0
        with within:
            pass
        self.said.append(f"{self.actors.index(actor)}{'' if sync else ' beside'}: {text} -> {result}")
        if actor.faults.crashed:
            self.bury(actor)
        known = actor.faults.injected_total == injected
        done = [text] if result == "OK" else []
        unknown = [text] if result != "OK" and not known else []
        for more, perhaps in inside:
            done, unknown = [*done, *more], [*unknown, *perhaps]
        return done, unknown

    def outcome(self, actor: Actor, text: str, *, sync: bool) -> str:
        try:
            actor.env.get_config().set("table.dml-sync", "true" if sync else "false")
            actor.env.execute_sql(text).to_arrow()
        except SimulatedCrash:
            return "died"
        except ts.TablestoreError as error:
            return f"{type(error).__name__} {error.kind}: {str(error)[:200]}"
        return "OK"

    def bury(self, actor: Actor) -> None:
        """Its process is gone, and another one comes."""
        for job in actor.env._session.jobs.under_way():
            job.cancel()
        self.actors[self.actors.index(actor)] = self.actor()

    def go_on(self) -> None:
        """Time goes by: a round of each job, and what is due."""
        self.clock.advance(self.chance.choice((60, 7200)))
        for actor in self.actors:
            for job in actor.env._session.jobs.under_way():
                self.rounds.run(job)
        self.chance.choice(self.actors).env.refresh_due()

    # -- what there is

    def found(self, path: ObjectPath) -> StoredTable:
        return open_materialized(self.actors[0].env._session, path)

    def observed(self) -> Tables:
        return observed(self.actors[0].env)

    def rest(self) -> None:
        """What other processes have left comes to rest: all of them are dead."""
        self.close()
        self.actors = [Actor(ts.TableEnvironment.create(self.place / "wh", engine="duckdb"), Faults())]
        self.dead_after, self.tables = timedelta(0), self.observed()
        self.end()

    def end(self) -> None:
        """Everybody comes to rest; then what there is is right, and there is nothing else."""
        self.clock.advance(7200)
        env = self.actors[0].env
        assert all(one.outcome in ("removed", "finished") for one in env.catalog().sweep_creations(self.dead_after).creations)
        env.catalog().release_dead_holds()
        env.execute_sql("DELETE FROM s WHERE v = 'x'")
        self.check_jobs()
        for name, state in self.tables.items():
            self.check_rows(name, state)
            for role, version in ((Role.STAGED, state.staged), (Role.PREVIOUS, state.previous)):
                if version is None and env.catalog().table_exists(f"default.{name}__{role}"):
                    with pytest.raises(ts.NotFoundError):
                        # Whoever looks for it drops what an interrupted statement has left.
                        env.execute_sql(f"ALTER MATERIALIZED TABLE {name} {'PROMOTE' if role is Role.STAGED else 'ROLLBACK'}")
        left = {"s", *self.tables}
        left |= {f"{name}__staged" for name, state in self.tables.items() if state.staged}
        left |= {f"{name}__previous" for name, state in self.tables.items() if state.previous}
        assert set(env.list_tables()) == left, self.story()
        lying = {
            file.relative_to(self.place / "wh").parts[1] for file in (self.place / "wh/default.db").rglob("*") if file.is_file()
        }
        assert lying == {*left, "_database"}, self.story()
        # The rest of a removal that died waits until its files are old, which the clock of the store says.
        assert not list((self.place / "wh/_ctas").glob("*/intent.json")), self.story()
        self.check_holds(left - {"s"})

    def check_jobs(self) -> None:
        named = {job_of(found.upkeep.handler): found for found in map(self.found, map(path_of, self.tables))}
        for actor in self.actors:
            for job in actor.env._session.jobs.under_way():
                self.rounds.run(job)
            for job in actor.env._session.jobs.under_way():
                assert job.id in named, (self.story(), "a job without a table")
                found = named[job.id]
                assert found.definition.refresh_mode is RefreshMode.CONTINUOUS, self.story()
                assert found.upkeep.status is RefreshStatus.ACTIVATED, self.story()

    def check_rows(self, name: str, state: State) -> None:
        """A continuous table has the rows of its query at the snapshots of its cursor. Then it is refreshed and verified."""
        session, found = self.actors[0].env._session, self.found(path_of(name))
        if found.definition.refresh_mode is RefreshMode.CONTINUOUS and not state.suspended:
            inner = refresh_session(session)
            report = verify(inner, found.table, found.definition.expanded_query, spec=inner.spec(found.path, found.table))
            assert (report.missing, report.extra) == (0, 0), self.story()
        try:
            (row,) = self.actors[0].env.execute_sql(f"ALTER MATERIALIZED TABLE {name} REFRESH VERIFY").to_arrow().to_pylist()
        except ts.TablestoreError:
            # Only one that nobody waits for takes a query that always fails.
            assert state.current.query == FAILS, self.story()
            return
        assert (row["missing"], row["extra"]) == (0, 0), self.story()
        self.actors[-1].env.execute_sql(f"SELECT * FROM {name}").to_arrow()

    def check_holds(self, names: set[str]) -> None:
        catalog = self.actors[0].env.catalog()
        tables = [catalog.table(f"default.{name}") for name in ("s", *names)]
        uuids = {one.context.table_uuid.replace("-", "") for one in tables if isinstance(one, ts.Table) and one.context.table_uuid}
        assert isinstance(tables[0], ts.Table)
        assert {one.target_uuid for one in RetentionLeases(tables[0].context.files).all()} <= uuids, self.story()

    def story(self) -> str:
        return "\n".join([f"seed {self.seed}", *self.said])

    def close(self) -> None:
        for actor in self.actors:
            actor.env.close()


def path_of(name: str) -> ObjectPath:
    return ObjectPath("tablestore", "default", name)


def observed(env: ts.TableEnvironment) -> Tables:
    """What the tables are."""
    there: dict[str, State] = {}
    for name in TABLES:
        # Others may drop it at any time.
        with suppress(ts.NotFoundError):
            there[name] = state_of(env, path_of(name))
    return there


def state_of(env: ts.TableEnvironment, path: ObjectPath) -> State:
    found = open_materialized(env._session, path)
    beside: dict[Role, Definition] = {}
    for role in Role:
        with suppress(ts.NotFoundError):
            version = open_materialized(env._session, version_path(path, role))
            # One of the same version is what a promotion that died has left.
            if version.table.options().get(VERSION) != found.table.options().get(VERSION, "first"):
                beside[role] = declared_by(version)
    return State(
        declared_by(found),
        suspended=found.upkeep.status is RefreshStatus.SUSPENDED,
        staged=beside.get(Role.STAGED),
        previous=beside.get(Role.PREVIOUS),
    )


def declared_by(found: StoredTable) -> Definition:
    made = found.definition
    return Definition(made.original_query, str(made.freshness), str(made.logical_mode), made.options.get("write-only") == "true")


@pytest.mark.deep
@pytest.mark.parametrize(
    "seeds", [range(8), *(pytest.param(range(at, at + 25), marks=pytest.mark.slow) for at in range(1000, 1200, 25))], ids=str
)
def test_what_was_ok_is_true_afterwards_and_nothing_else_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    rounds = Rounds(monkeypatch)
    for seed in seeds:
        life = Life(seed, tmp_path / str(seed), rounds)
        try:
            life.run()
        finally:
            life.close()


PROCESS = """
import random, sys
import tablestore as ts
from tests.materialized.test_lives import observed, some_statement

chance = random.Random(int(sys.argv[2]))
env = ts.TableEnvironment.create(sys.argv[1], engine="duckdb")
while True:
    print("next", flush=True)
    try:
        env.get_config().set("table.dml-sync", chance.choice(("true", "false")))
        env.execute_sql(some_statement(chance, observed(env))).to_arrow()
    except ts.TablestoreError:
        pass
"""
KILLS = 12


@pytest.mark.slow
def test_processes_that_are_killed_at_any_time_leave_nothing_but_whole_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    chance, place = random.Random(7), tmp_path / "place"
    life = Life(0, place, Rounds(monkeypatch))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])}
    said = (tmp_path / "said").open("w")

    def started() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROCESS, str(place / "wh"), str(chance.getrandbits(32))]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env=environment)

    processes = [started(), started()]
    try:
        for number in range(KILLS):
            dying, other = processes[number % 2], processes[1 - number % 2]
            for process, lines in ((dying, chance.randint(3, 12)), (other, 1)):
                assert process.stdout is not None
                for _ in range(lines):
                    assert process.stdout.readline() == "next\n", (tmp_path / "said").read_text()[-3000:]
            dying.kill()
            dying.communicate()
            processes[number % 2] = started()
    finally:
        for process in processes:
            process.kill()
            process.communicate()
        said.close()
    try:
        life.rest()
    finally:
        life.close()
