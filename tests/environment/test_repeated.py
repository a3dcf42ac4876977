"""The text of a query was understood before, and what its names mean has changed since."""

import tablestore as ts


def test_a_repeated_query_sees_the_columns_types_and_functions_of_now(duck: ts.TableEnvironment) -> None:
    def ask(query: str) -> list[dict[str, object]]:
        return duck.execute_sql(query).to_arrow().to_pylist()

    duck.execute_sql("CREATE TABLE t (id INT, d DATE)")
    duck.execute_sql("INSERT INTO t VALUES (1, DATE '2026-01-31')")
    star, later = "SELECT * FROM t", "SELECT d + INTERVAL '1' DAY AS later FROM t"
    assert ask(star) == ask(star) and len(ask(star)[0]) == 2
    assert str(ask(later)[0]["later"]) == "2026-02-01"

    duck.execute_sql("ALTER TABLE t ADD COLUMN x INT")
    assert ask(star)[0]["x"] is None

    duck.execute_sql("DROP TABLE t")
    duck.execute_sql("CREATE TABLE t (d TIMESTAMP, id INT)")
    duck.execute_sql("INSERT INTO t VALUES (TIMESTAMP '2026-01-31 10:00:00', 1)")
    assert list(ask(star)[0]) == ["d", "id"]
    assert str(ask(later)[0]["later"]) == "2026-02-01 10:00:00"

    plain = "SELECT abs(id) AS a FROM t"
    assert ask(plain) == [{"a": 1}]
    duck.create_temporary_system_function("abs", lambda value: value + 41, arguments=["BIGINT"], returns="BIGINT")
    assert ask(plain) == [{"a": 42}]
    duck.drop_temporary_system_function("abs")
    assert ask(plain) == [{"a": 1}]
