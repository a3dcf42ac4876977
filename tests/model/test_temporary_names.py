"""Which object does a name mean? 10,000 random registrations, drops and look-ups against a model that is a list in order."""

import random
from dataclasses import dataclass, field

import pytest

from tablestore.environment.objectpath import ObjectPath, expand
from tablestore.environment.session.functions import Functions, system_key, written_key
from tablestore.environment.session.objects import ConnectorTable, RowsView, SessionObjects, TemporaryObject
from tablestore.errors import AlreadyExistsError, InvalidInputError
from tablestore.sql.source import Path

STEPS = 10_000
PLACES = [("c1", "d1"), ("c1", "d2"), ("c2", "d1")]
NAMES = ["t", "T", "abs", "f"]
OWN = frozenset({"abs"})


@dataclass
class Model:
    """Objects by the letters of their whole names; functions by ``f`` for system ones, ``c.d.f`` for those of a catalog."""

    temporary: dict[str, tuple[str, int]] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)

    def function_of(self, parts: tuple[str, ...], place: tuple[str, str]) -> str | None:
        in_catalog = self.functions.get(".".join([*place[: 3 - len(parts)], *parts[:-1], parts[-1].lower()]))
        if len(parts) > 1:
            return in_catalog
        name = parts[0].lower()
        return self.functions.get(name) or (None if name in OWN else in_catalog)


def whole_of(parts: tuple[str, ...], place: tuple[str, str]) -> str:
    return ".".join([*place[: 3 - len(parts)], *parts])


def number_of(found: TemporaryObject | None) -> tuple[str, int] | None:
    if found is None:
        return None
    if isinstance(found, RowsView):
        return "view", found.rows
    assert isinstance(found, ConnectorTable)
    return "table", int(found.options["n"])


@pytest.mark.parametrize("seed", range(2))
def test_names_mean_what_the_model_says(seed: int) -> None:
    choose = random.Random(seed)
    objects, functions, model, place = SessionObjects(), Functions(), Model(), PLACES[0]
    outcomes = {"made": 0, "refused": 0, "hidden": 0}
    for number in range(STEPS):
        parts = (*choose.choice(PLACES), choose.choice(NAMES))[choose.randrange(3) :]
        whole = expand(Path(parts), *place)
        name = whole_of(parts, place)
        assert str(whole) == name
        match choose.choice(["table", "view", "drop", "drop permanent", "function", "drop function", "use", "look"]):
            case "use":
                place = choose.choice(PLACES)
            case ("table" | "view") as kind:
                replace = choose.random() < 0.2
                there = model.temporary.get(name)
                try:
                    objects.add(made(whole, kind, number), replace=replace)
                    assert there is None or (replace and there[0] == kind)
                    model.temporary[name] = (kind, number)
                    outcomes["made"] += 1
                except AlreadyExistsError:
                    assert there is not None and not (replace and there[0] == kind)
                    outcomes["refused"] += 1
            case "drop":
                assert (objects.temporary(whole) is not None) == (name in model.temporary)
                objects.drop_temporary(whole)
                model.temporary.pop(name, None)
            case "drop permanent":
                if name in model.temporary:
                    with pytest.raises(InvalidInputError, match="Drop it first"):
                        objects.check_permanent(whole, "table")
                    outcomes["hidden"] += 1
                else:
                    objects.check_permanent(whole, "table")
            case ("function" | "drop function") as action:
                key = written_key(Path(parts), place)
                known = parts[0].lower() if len(parts) == 1 else ".".join([*name.split(".")[:2], parts[-1].lower()])
                assert functions.has(key) == (known in model.functions)
                if action == "drop function":
                    assert functions.drop(key) == model.functions.pop(known, None)
                elif known in model.functions:
                    with pytest.raises(AlreadyExistsError):
                        functions.add(key, str(number))
                else:
                    functions.add(key, str(number))
                    model.functions[known] = str(number)
        assert number_of(objects.temporary(whole)) == model.temporary.get(name)
        called = functions.find(Path(parts), place, lambda name: name.lower() in OWN)
        assert called == model.function_of(parts, place)
        listed = {str(one.path): number_of(one) for one in (*objects.temporary_tables(), *objects.views())}
        assert number % 100 or listed == model.temporary
        assert number % 100 or set(functions.called()) == set(model.functions.values())
    assert min(outcomes.values()) > 100, outcomes


def made(path: ObjectPath, kind: str, number: int) -> TemporaryObject:
    if kind == "view":
        return RowsView(path=path, rows=number)
    return ConnectorTable(path=path, connector="x", options={"n": str(number)}, temporary=True)


def test_a_system_function_and_a_function_of_the_current_database_live_side_by_side() -> None:
    functions, place = Functions(), PLACES[0]
    functions.add(system_key(Path(("f",))), "system")
    functions.add(written_key(Path(("d1", "f")), place), "catalog")
    assert functions.find(Path(("f",)), place, OWN.__contains__) == "system"
    assert functions.find(Path(("d1", "f")), place, OWN.__contains__) == "catalog"
    assert functions.drop(system_key(Path(("f",)))) == "system"
    assert functions.find(Path(("f",)), place, OWN.__contains__) == "catalog"
    assert functions.find(Path(("f",)), PLACES[1], OWN.__contains__) is None
