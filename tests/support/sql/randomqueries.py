"""Random queries of Spark's dialect over two views: joins, sets, subqueries and common queries.

Their columns and aliases have the same few names, over numbers of all types, in structs, arrays and maps.
Each is read by an engine as a whole, so its columns have types of which the text says nothing: what they are follows from what each
name stands for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

VIEWS = {
    "t": """
        SELECT id, CAST(a AS TINYINT) AS a, CAST(b AS INT) AS b, CAST(c AS BIGINT) AS c, CAST(n AS DOUBLE) AS n,
            CAST(x AS FLOAT) AS x, CAST(p AS DECIMAL(10, 2)) AS p, array(CAST(n AS DOUBLE), -0.75D) AS l,
            named_struct('a', CAST(n AS DOUBLE), 'b', b, 'p', CAST(p AS DECIMAL(6, 3))) AS s,
            map('k', CAST(p AS DECIMAL(8, 2))) AS m
        FROM VALUES (1, 1, 7, 30, '2.75', '0.5', '2.50'), (2, -3, 2, -4, '-1.5', '2.25', '-0.75'),
            (3, 2, NULL, 9, NULL, '4.75', '7.10'), (4, 5, 3, NULL, '8.25', NULL, NULL) AS v (id, a, b, c, n, x, p)""",
    "u": """
        SELECT id, CAST(n AS DECIMAL(12, 4)) AS a, CAST(id AS BIGINT) AS b, CAST(n AS DOUBLE) AS c, CAST(id AS SMALLINT) AS n,
            named_struct('a', id, 'b', n) AS s, array(n, 2.5) AS l
        FROM VALUES (1, 1.25), (3, -2.5), (5, 3.75) AS v (id, n)""",
}
"""The temporary views that they read."""
_NAMES = ("a", "b", "c", "n", "p", "x")
_TYPES = ("INT", "BIGINT", "DOUBLE", "DECIMAL(12, 3)", "SMALLINT", "FLOAT", "DECIMAL(20, 6)")
_SETS = ("UNION ALL", "UNION", "EXCEPT", "INTERSECT")


@dataclass(frozen=True)
class Source:
    """Something to read: its text in FROM, its alias, the names of its numbers, structs, arrays and maps."""

    text: str
    alias: str
    numbers: tuple[str, ...]
    structs: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()


_TABLES = (
    ("t", ("id", "a", "b", "c", "n", "x", "p"), ("s",), ("l",), ("m",)),
    ("u", ("id", "a", "b", "c", "n"), ("s",), ("l",), ()),
)


def random_queries(seed: int, count: int) -> Iterator[str]:
    """So many queries, the same for the same seed."""
    for place in range(count):
        yield _Writer(Random(f"{seed} {place}")).whole()


@dataclass
class _Writer:
    """Writes one query. ``common``: those of its WITH, by name, with the names of their columns."""

    random: Random
    common: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def whole(self) -> str:
        parts = []
        for name in self.random.sample(("q", "r", "w"), self.random.randint(0, 2)):
            columns = self._names(self.random.randint(1, 3))
            parts.append(f"{name} AS ({self._query(columns, 1)})")
            self.common[name] = columns
        query = self._query(self._names(self.random.randint(1, 3)), 2)
        return f"WITH {', '.join(parts)} {query}" if parts else query

    def _names(self, count: int) -> tuple[str, ...]:
        return tuple(self.random.sample(_NAMES, count))

    def _query(self, names: Sequence[str], depth: int) -> str:
        if depth > 0 and self.random.random() < 0.35:
            left, right = self._query(names, depth - 1), self._query(self._names(len(names)), depth - 1)
            return f"{left} {self.random.choice(_SETS)} ({right})"
        return self._select(names, depth)

    def _select(self, names: Sequence[str], depth: int) -> str:
        sources = [self._source(depth, "k")]
        read = sources[0].text
        if self.random.random() < 0.4:
            other = self._source(depth, "j")
            sources.append(other)
            kind = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN", "CROSS JOIN"))
            condition = f" ON {self._column(sources[:1])} = {self._column([other])}" if kind != "CROSS JOIN" else ""
            read += f" {kind} {other.text}{condition}"
        elif sources[0].arrays and self.random.random() < 0.4:
            read += f" LATERAL VIEW explode(k.{sources[0].arrays[0]}) e AS z"
            sources.append(Source("", "e", ("z",)))
        where = f" WHERE {self._condition(sources, depth)}" if self.random.random() < 0.4 else ""
        if self.random.random() < 0.25:
            key = self._column(sources)
            items = [f"{key} AS {names[0]}", *(f"{self._aggregate(sources)} AS {name}" for name in names[1:])]
            return f"SELECT {', '.join(items)} FROM {read}{where} GROUP BY {key}"
        if len(sources) == 1 and depth > 1 and self.random.random() < 0.2:
            inner = self._query(names, depth - 1)
            return f"SELECT {self.random.choice(('*', 'y.*'))} FROM ({inner}) AS y"
        items = [f"{self._number(sources, 2)} AS {name}" for name in names]
        return f"SELECT {', '.join(items)} FROM {read}{where}"

    def _source(self, depth: int, alias: str) -> Source:
        if depth > 0 and self.random.random() < 0.45:
            names = self._names(self.random.randint(1, 3))
            return Source(f"({self._query(names, depth - 1)}) AS {alias}", alias, names)
        if self.common and self.random.random() < 0.6:
            name = self.random.choice(sorted(self.common))
            return Source(f"{name} AS {alias}", alias, self.common[name])
        name, *columns = self.random.choice(_TABLES)
        return Source(f"{name} AS {alias}", alias, *columns)

    def _column(self, sources: Sequence[Source]) -> str:
        source = self.random.choice(sources)
        return f"{source.alias}.{self.random.choice(source.numbers)}"

    def _number(self, sources: Sequence[Source], depth: int) -> str:
        source = self.random.choice(sources)
        choice = self.random.random() if depth > 0 else 0
        if choice < 0.3:
            return self._column(sources)
        if choice < 0.4 and source.structs:
            return f"{source.alias}.{source.structs[0]}.{self.random.choice('ab')}"
        if choice < 0.46 and source.arrays:
            array = f"{source.alias}.{source.arrays[0]}"
            return self.random.choice((f"{array}[0]", f"element_at({array}, 2)", f"transform({array}, y -> CAST(y AS INT))[1]"))
        if choice < 0.5 and source.maps:
            return f"{source.alias}.{source.maps[0]}['k']"
        if choice < 0.68:
            return f"({self._number(sources, depth - 1)} {self.random.choice('+-*')} {self._operand(sources, depth - 1)})"
        if choice < 0.74:
            return f"({self._number(sources, depth - 1)} / nullif({self._column(sources)}, 0))"
        if choice < 0.84:
            return f"CAST({self._number(sources, depth - 1)} AS {self.random.choice(_TYPES)})"
        if choice < 0.9:
            return f"coalesce({self._number(sources, depth - 1)}, {self._operand(sources, 0)})"
        if choice < 0.95:
            number, other = self._number(sources, depth - 1), self._operand(sources, 0)
            return f"CASE WHEN {self._column(sources)} > 1 THEN {number} ELSE {other} END"
        if choice < 0.98:
            return f"{self.random.choice(('abs', '-', 'round', 'floor'))}({self._column(sources)})"
        inner = self._source(0, "i")
        return f"(SELECT max({self._column([inner])}) FROM {inner.text})"

    def _operand(self, sources: Sequence[Source], depth: int) -> str:
        written = self.random.choice(("1", "2.5", "-3", "0.25", "10L", "1.5D"))
        return written if self.random.random() < 0.35 else self._number(sources, depth)

    def _aggregate(self, sources: Sequence[Source]) -> str:
        function = self.random.choice(("sum", "min", "max", "avg", "count", "sum"))
        return f"{function}({self._number(sources, 1)})"

    def _condition(self, sources: Sequence[Source], depth: int) -> str:
        if self.random.random() < 0.25:
            inner = self._source(0, "i")
            return f"EXISTS (SELECT {self._column([inner])} * 2 AS {self.random.choice(_NAMES)} FROM {inner.text})"
        if self.random.random() < 0.2:
            inner = self._source(0, "i")
            return f"{self._column(sources)} IN (SELECT {self._column([inner])} FROM {inner.text})"
        return f"{self._column(sources)} {self.random.choice(('<', '>', '=', '<>'))} {self._operand(sources, 1)}"
