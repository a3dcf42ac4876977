"""EXPLAIN and execution are one plan: what EXPLAIN says of any two definitions is what happens, and what it refuses is refused."""

import random
import re
from dataclasses import dataclass, replace

import pytest

import tablestore as ts

SOURCE = "CREATE TABLE t (id INT, a INT, b BIGINT, s STRING, PRIMARY KEY (id) NOT ENFORCED)"
COLUMNS = (
    "id, a", "id, a, b", "id, a, s", "id, s, a", "id, CAST(a AS BIGINT) AS a", "id, CAST(a AS STRING) AS a",
    "id, CAST(b AS INT) AS a", "id, CAST(a AS DOUBLE) AS a, s", "CAST(id AS BIGINT) AS id, a, s", "id, a, s, b", "id, s", "*",
    "id, a, id AS a", "id, nope",
)  # fmt: skip
BUCKETS = ("", "", "DISTRIBUTED INTO 2 BUCKETS", "DISTRIBUTED BY (id) INTO 2 BUCKETS", "DISTRIBUTED BY (id) INTO 4 BUCKETS")
OPTIONS = (
    {}, {}, {"write-only": "true"}, {"target-file-size": "64 mb"}, {"bucket": "-1"}, {"bucket": "3"},
    {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}, {"sequence.field": "a"},
    {"no.such": "x"}, {"data-file.path-directory": "d"}, {"write-only": "perhaps"},
)  # fmt: skip
KEYS = ((), ("id",), ("id",), ("id",), ("id", "s"), ("a",))
CLAUSES = ("", "FRESHNESS = INTERVAL '1' HOUR", "FRESHNESS = INTERVAL '1' DAY", "FRESHNESS = INTERVAL '7' MINUTE")
MODES = ("REFRESH_MODE = FULL", "REFRESH_MODE = FULL", "REFRESH_MODE = FULL", "REFRESH_MODE = CONTINUOUS", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One definition of a materialized table."""

    key: tuple[str, ...]
    partitioned: bool
    comment: str | None
    buckets: str
    options: dict[str, str]
    freshness: str
    mode: str
    columns: str

    def create(self, name: str) -> str:
        """The statement that declares it."""
        key = f"(PRIMARY KEY ({', '.join(self.key)}) NOT ENFORCED)" if self.key else ""
        comment = "" if self.comment is None else f"COMMENT '{self.comment}'"
        options = ", ".join(f"'{name}' = '{value}'" for name, value in self.options.items())
        clauses = (key, comment, self.buckets, "PARTITIONED BY (s)" * self.partitioned, f"WITH ({options})" * bool(options))
        parts = ("CREATE OR ALTER MATERIALIZED TABLE", name, *clauses, self.freshness, self.mode)
        return " ".join([*filter(None, parts), f"AS SELECT {self.columns} FROM t"])


def draw(rng: random.Random) -> Definition:
    key = rng.choice(KEYS)
    return Definition(
        key=key,
        partitioned=rng.random() < (0.7 if "s" in key else 0.1),
        comment=rng.choice((None, None, "one", "two")),
        buckets=rng.choice(BUCKETS),
        options=rng.choice(OPTIONS),
        freshness=rng.choice(CLAUSES),
        mode=rng.choice(MODES),
        columns=rng.choice(COLUMNS),
    )


def another(rng: random.Random, old: Definition) -> Definition:
    """One that differs in a few parts."""
    other = draw(rng)
    parts = rng.sample(("key", "partitioned", "comment", "buckets", "options", "freshness", "mode", "columns"), rng.randint(0, 3))
    return replace(old, **{part: getattr(other, part) for part in parts})


def outcome(env: ts.TableEnvironment, text: str) -> str:
    """The first column of what a statement gives, or its error; places in the text do not count."""
    try:
        return str(env.execute_sql(text).to_arrow().column(0)[0].as_py())
    except ts.TablestoreError as error:
        return f"refused: {type(error).__name__} {error.kind}: " + error.message.split("\nline ")[0]


def state(env: ts.TableEnvironment, name: str) -> tuple[str, str]:
    """What SHOW CREATE says, and the columns."""
    if not env.catalog().table_exists(f"default.{name}"):
        return "", ""
    shown = outcome(env, f"SHOW CREATE MATERIALIZED TABLE {name}").replace(f"`{name}`", "`m`")
    return shown, str(env.catalog().table(f"default.{name}").schema.remove_metadata())


def declared(env: ts.TableEnvironment, name: str, definition: Definition) -> bool:
    """Whether a statement was carried out; what EXPLAIN said of it was so in either case."""
    before, text = state(env, name), definition.create(name)
    plan = outcome(env, f"EXPLAIN {text}")
    assert state(env, name) == before, f"EXPLAIN changed something: {text}"
    done = outcome(env, text)
    after = state(env, name)
    if plan.startswith("refused"):
        assert "always written out" not in plan, f"what {text} does not say is refused: {plan}"
        assert done == plan and after == before, f"{text}\n{plan}\nbut {done}"
        return False
    assert done == "OK", f"{text}\n{plan}\nbut {done}"
    says_nothing = plan.endswith("no change")
    assert says_nothing is (after == before), f"{text}\n{plan}\nbut from {before}\nto {after}"
    if before[0]:
        for column in re.findall(r"MODIFY COLUMN (`\w+` \w+)", plan):
            assert f"{column.split()[0].strip('`')}: " in after[1] and before[1] != after[1], f"{text}\n{plan}"
    assert outcome(env, f"EXPLAIN {text}").endswith("no change"), text
    return True


def check(env: ts.TableEnvironment, seed: int, pairs: int) -> tuple[int, int]:
    """Of how many pairs the second was carried out, and how many were refused."""
    rng, done, refused = random.Random(seed), 0, 0
    env.execute_sql(SOURCE)
    env.execute_sql("INSERT INTO t VALUES (1, 1, 1, 'x'), (2, 2, 2, 'y')")
    while done + refused < pairs:
        old = draw(rng)
        if not declared(env, "m", old):
            continue
        if rng.random() < 0.6:
            env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH")
        if rng.random() < 0.2:
            env.execute_sql("ALTER MATERIALIZED TABLE m SUSPEND")
        new = another(rng, old)
        if declared(env, "m", new):
            done += 1
            target = new
            if (new.key, new.partitioned) == (old.key, old.partitioned):
                # What is left out of the layout stays.
                layout = {key: value for key, value in env.materialized_table("m").options.items() if key.startswith("bucket")}
                left_out = not new.buckets and "bucket" not in new.options
                target = replace(new, buckets="", options={**new.options, **layout}) if left_out or old.buckets else new
            env.execute_sql(target.create("fresh"))
            assert state(env, "m")[0] == state(env, "fresh")[0], f"{old.create('m')}\n{new.create('m')}"
            env.execute_sql("DROP MATERIALIZED TABLE fresh")
        else:
            refused += 1
        env.execute_sql("DROP MATERIALIZED TABLE m")
    return done, refused


@pytest.mark.deep
@pytest.mark.parametrize("seed", [5])
def test_what_explain_says_of_a_definition_is_what_happens(seed: int, duck: ts.TableEnvironment) -> None:
    done, refused = check(duck, seed, 25)
    assert done > 5 and refused > 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_what_explain_says_of_any_of_a_hundred_definitions_is_what_happens(seed: int, duck: ts.TableEnvironment) -> None:
    done, refused = check(duck, 100 + seed, 100)
    assert done > 20 and refused > 10


BUCKETED = "CREATE OR ALTER MATERIALIZED TABLE m (PRIMARY KEY (id) NOT ENFORCED) {} REFRESH_MODE = FULL AS SELECT id, a FROM t"


@pytest.fixture
def bucketed(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql(SOURCE)
    duck.execute_sql("INSERT INTO t VALUES (1, 1, 1, 'x'), (2, 2, 2, 'y')")
    duck.execute_sql(BUCKETED.format("COMMENT 'one' DISTRIBUTED BY (id) INTO 2 BUCKETS"))
    duck.execute_sql("ALTER MATERIALIZED TABLE m REFRESH")
    return duck


def test_a_script_that_says_nothing_of_buckets_leaves_them(bucketed: ts.TableEnvironment) -> None:
    text = BUCKETED.format("COMMENT 'two'")
    assert outcome(bucketed, f"EXPLAIN {text}").splitlines()[2:] == ["SET COMMENT 'two'"]
    assert outcome(bucketed, text) == "OK" and outcome(bucketed, f"EXPLAIN {text}").endswith("no change")
    assert "'bucket' = '2',\n  'bucket-key' = 'id'" in state(bucketed, "m")[0]


def test_buckets_that_a_rescale_has_made_are_shown_and_stay(bucketed: ts.TableEnvironment) -> None:
    bucketed.catalog().table("default.m").rescale(4)
    assert "'bucket' = '4'" in state(bucketed, "m")[0] and bucketed.materialized_table("m").options["bucket"] == "4"
    for clauses in ("COMMENT 'one'", "COMMENT 'one' DISTRIBUTED INTO 4 BUCKETS"):
        assert outcome(bucketed, f"EXPLAIN {BUCKETED.format(clauses)}").endswith("no change")
    bucketed.execute_sql("CREATE MATERIALIZED TABLE plain (PRIMARY KEY (id) NOT ENFORCED) REFRESH_MODE = FULL AS SELECT id FROM t")
    bucketed.catalog().table("default.plain").rescale(3)
    assert "'bucket' = '3'" in state(bucketed, "plain")[0]


def test_other_buckets_are_refused_by_explain_too_and_come_by_a_promotion(bucketed: ts.TableEnvironment) -> None:
    text = BUCKETED.format("COMMENT 'one' WITH ('bucket' = '4')")
    said = outcome(bucketed, f"EXPLAIN {text}")
    assert said == outcome(bucketed, text) == outcome(bucketed, "ALTER MATERIALIZED TABLE m SET ('bucket' = '4')")
    assert "INSERT OVERWRITE" not in said and "STAGE WITH ('bucket' = '4') AS query, then PROMOTE" in said
    bucketed.execute_sql("ALTER MATERIALIZED TABLE m STAGE WITH ('bucket' = '4') AS SELECT id, a FROM t")
    bucketed.execute_sql("ALTER MATERIALIZED TABLE m PROMOTE")
    assert outcome(bucketed, f"EXPLAIN {text}").endswith("no change") and "'bucket' = '4'" in state(bucketed, "m")[0]
