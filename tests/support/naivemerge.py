"""What the merge engines have to give, row by row in plain Python: the rules, without any idea of speed.

    state of a key = None | {column: value}      records are (kind, row), one after the other in version order

Single records are not computed: whoever folds asks ``fold`` for all records of a key at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Record = tuple[str, Row]


def _or_other(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda acc, value: value if acc is None else acc if value is None else combine(acc, value)


def _union_of_maps(acc: Any, value: Any) -> Any:
    return list({**dict(acc), **dict(value)}.items())


def _distinct(acc: Any, value: Any) -> Any:
    out: list[Any] = []
    for item in [*(acc or []), *(value or [])]:
        if item not in out:
            out.append(item)
    return out if acc is not None or value is not None else None


def _minus(acc: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
    if acc is None or value is None:
        return acc
    left = list(acc)
    for item in value:
        if item in left:
            left.remove(item)
    return left


def _join(acc: str | None, value: str | None) -> str | None:
    if acc is None or value is None:
        return value if acc is None else acc
    return acc if not value else value if not acc else f"{acc},{value}"


def _join_distinct(acc: str | None, value: str | None) -> str | None:
    if not value or not acc:
        return _join(acc, value)
    parts = acc.split(",")
    for part in value.split(","):
        if part and part not in parts:
            parts.append(part)
    return ",".join(parts)


def _by_key(acc: list[Row] | None, value: list[Row] | None) -> list[Row] | None:
    if acc is None and value is None:
        return None
    rows: dict[Any, Row] = {}
    for row in [*(acc or []), *(value or [])]:
        rows[row["k"]] = row
    return list(rows.values())


def _without_keys(acc: list[Row] | None, value: list[Row] | None) -> list[Row] | None:
    if acc is None or value is None:
        return acc
    gone = {row["k"] for row in value}
    return [row for row in acc if row["k"] not in gone]


AGG: Mapping[str, Callable[[Any, Any], Any]] = {
    "sum": _or_other(lambda acc, value: acc + value),
    "product": _or_other(lambda acc, value: acc * value),
    "min": _or_other(min),
    "max": _or_other(max),
    "last_value": lambda acc, value: value,
    "last_non_null_value": lambda acc, value: acc if value is None else value,
    "first_non_null_value": lambda acc, value: value if acc is None else acc,
    "bool_and": _or_other(lambda acc, value: acc and value),
    "bool_or": _or_other(lambda acc, value: acc or value),
    "listagg": _join,
    "listagg distinct": _join_distinct,
    "collect": _or_other(lambda acc, value: acc + value),
    "collect distinct": _distinct,
    "merge_map": _or_other(_union_of_maps),
    "nested_update": _by_key,
}
RETRACT: Mapping[str, Callable[[Any, Any], Any]] = {
    "sum": lambda acc, value: acc if value is None else -value if acc is None else acc - value,
    "product": lambda acc, value: None if acc is None else acc if value is None else int(acc / value),
    "last_value": lambda acc, value: None,
    "last_non_null_value": lambda acc, value: acc if value is None else None,
    "collect": _minus,
    "collect distinct": _minus,
    "merge_map": lambda acc, value: (
        acc if acc is None or value is None else [entry for entry in acc if entry[0] not in dict(value)]
    ),
    "nested_update": _without_keys,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveEngine:
    """``functions``: of an aggregation all value columns, of partial-update those of groups. ``groups``: sequence fields to
    columns. ``removing``: the fields whose group removes rows."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    engine: str
    functions: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    removing: frozenset[str] = frozenset()
    ignore_delete: bool = False
    remove_on_delete: bool = False

    def table(self, records: Sequence[Record]) -> dict[tuple[Any, ...], Row]:
        """The rows of a table after these records."""
        by_key: dict[tuple[Any, ...], list[Record]] = {}
        for kind, row in records:
            by_key.setdefault(tuple(row[name] for name in self.key), []).append((kind, row))
        found = {key: self.fold(versions) for key, versions in by_key.items()}
        return {key: row for key, row in found.items() if row is not None}

    def fold(self, records: Sequence[Record]) -> Row | None:
        """The row of one key, None if there is none."""
        if self.ignore_delete:
            records = [record for record in records if record[0] in ("+I", "+U")]
        elif self.engine == "partial-update" and self.remove_on_delete:
            records = [record for record in records if record[0] != "-U"]
        if not records:
            return None
        if self.engine == "deduplicate":
            return _live(records[-1])
        if self.engine == "first-row":
            return _live(records[0])
        if len(records) == 1:
            return _live(records[0])
        return self._aggregation(records) if self.engine == "aggregation" else self._partial_update(records)

    def _empty(self, row: Row) -> Row:
        return {name: row[name] if name in self.key else None for name in self.columns}

    def _aggregation(self, records: Sequence[Record]) -> Row | None:
        state, firsts, removed = self._empty(records[0][1]), dict[str, Any](), False
        for kind, row in records:
            removed = self.remove_on_delete and kind == "-D"
            if removed:
                state, firsts = self._empty(row), {}
                continue
            for name, function in self.functions.items():
                if kind in ("-U", "-D"):
                    if function.startswith("ignoring "):
                        continue
                    state[name] = RETRACT[function](state[name], row[name])
                elif function == "first_value":
                    state[name] = firsts.setdefault(name, row[name])
                else:
                    state[name] = AGG[function.removeprefix("ignoring ")](state[name], row[name])
        return None if removed else state

    def _partial_update(self, records: Sequence[Record]) -> Row | None:
        state, alive = self._empty(records[0][1]), False
        grouped = {name for fields, names in self.groups.items() for name in (*fields, *names)}
        for kind, row in records:
            add = kind in ("+I", "+U")
            if not add and self.remove_on_delete:
                state, alive = self._empty(row), False
                continue
            if kind == "-D" and any(
                self.removing & set(fields) and self._takes_part(row, fields) and self._is_newest(row, state, fields)
                for fields in self.groups
            ):
                told = {name for group in self.groups for name in group}
                state = {**self._empty(row), **{name: row[name] for name in told}}
                alive = False
                continue
            alive |= add
            if add:
                for name in self.columns:
                    if name not in grouped and name not in self.key and row[name] is not None:
                        state[name] = row[name]
            for fields, names in self.groups.items():
                if not self._takes_part(row, fields):
                    continue
                newest = self._is_newest(row, state, fields)
                for name in names:
                    function = self.functions.get(name)
                    if function is None:
                        if newest:
                            state[name] = row[name] if add else None
                    elif add:
                        pair = (state[name], row[name]) if newest else (row[name], state[name])
                        state[name] = AGG[function](*pair)
                    else:
                        state[name] = RETRACT[function](state[name], row[name])
                if newest:
                    state.update({name: row[name] for name in fields})
        return state if alive else None

    @staticmethod
    def _takes_part(row: Row, fields: tuple[str, ...]) -> bool:
        return any(row[name] is not None for name in fields)

    @staticmethod
    def _is_newest(row: Row, state: Row, fields: tuple[str, ...]) -> bool:
        def rank(found: Row) -> list[tuple[bool, Any]]:
            return [(found[name] is not None, found[name] or 0) for name in fields]

        return rank(row) >= rank(state)


def _live(record: Record) -> Row | None:
    return record[1] if record[0] in ("+I", "+U") else None
