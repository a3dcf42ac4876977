"""Keeps the temporary functions of a session, and finds the one that a name means.

    registered as    f         a temporary system function
                     db.f      a temporary catalog function, its name filled up
    called as        f         temporary system function -> the engine's own function -> temporary catalog function of the current
                               catalog and database -> whatever the engine finds
                     db.f      temporary catalog function -> whatever the engine finds

Names of functions ignore case, those of catalogs and databases do not. Pure: what functions do is the engine's business.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tablestore.environment.objectpath import ObjectPath, expand
from tablestore.errors import AlreadyExistsError, InvalidInputError
from tablestore.sql.source import Path

Place = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionKey:
    """The key under which a function is kept; ``path`` None: a system function."""

    name: str
    path: ObjectPath | None = None

    @property
    def folded(self) -> tuple[str, ...]:
        """The name in the form that equal names share."""
        return (*(() if self.path is None else (self.path.catalog, self.path.database)), self.name.casefold())

    def __str__(self) -> str:
        return self.name if self.path is None else self.path.quoted


def system_key(path: Path) -> FunctionKey:
    """The key of a system function. Raises InvalidInputError for a name of several parts."""
    if len(path.parts) != 1 or not path.parts[0]:
        raise InvalidInputError(f"a system function has a name of one part, found {str(path)!r:.200}", kind="invalid-name")
    return FunctionKey(name=path.parts[0])


def catalog_key(path: Path, place: Place) -> FunctionKey:
    """The key of a catalog function. Raises InvalidInputError."""
    whole = expand(path, *place)
    return FunctionKey(name=whole.full_name, path=whole)


def written_key(path: Path, place: Place) -> FunctionKey:
    """The key under which a function of this name is registered and dropped."""
    return catalog_key(path, place) if len(path.parts) != 1 else system_key(path)


@dataclass(slots=True)
class Functions:
    """The temporary functions of a session: the name by which the engine calls each."""

    _all: dict[tuple[str, ...], tuple[FunctionKey, str]] = field(default_factory=dict)
    _made: int = 0

    def new_number(self) -> int:
        """A number that no function of this session had."""
        self._made += 1
        return self._made - 1

    def add(self, key: FunctionKey, called: str, *, replace: bool = False) -> None:
        """Adds a function. Raises AlreadyExistsError."""
        if self.has(key) and not replace:
            kind = "system function. A function named" if key.path is None else "catalog function. A function"
            raise AlreadyExistsError(f"Could not register temporary {kind} '{key}' does already exist.", kind="function-exists")
        self._all[key.folded] = (key, called)

    def has(self, key: FunctionKey) -> bool:
        """True if there is this very function."""
        return key.folded in self._all

    def drop(self, key: FunctionKey) -> str | None:
        """Forgets a function, and returns the name by which the engine called it, None if there was none."""
        entry = self._all.pop(key.folded, None)
        return None if entry is None else entry[1]

    def find(self, path: Path, place: Place, has_own: Callable[[str], bool]) -> str | None:
        """The name by which the engine calls what ``path`` means; None: the engine finds it itself. ``has_own``: by its name."""
        if not self._all:
            return None
        if len(path.parts) == 1 and (entry := self._all.get(FunctionKey(name=path.parts[0]).folded)) is not None:
            return entry[1]
        entry = self._all.get(catalog_key(path, place).folded)
        if entry is None or (len(path.parts) == 1 and has_own(path.parts[0])):
            return None
        return entry[1]

    def check_permanent(self, path: Path, place: Place) -> None:
        """Raises InvalidInputError if a temporary function hides the permanent one that is to be removed."""
        keys = (*([system_key(path)] if len(path.parts) == 1 else []), catalog_key(path, place))
        if (hiding := next((key for key in keys if self.has(key)), None)) is not None:
            raise InvalidInputError(
                f"Could not drop catalog function. A temporary function '{hiding}' does already exist. Please drop the temporary "
                "function first.",
                kind="temporary-object",
            )

    def names(self, place: Place) -> tuple[str, ...]:
        """System functions, and the catalog functions of a database."""
        keys = (key for key, _ in self._all.values())
        return tuple(sorted({key.name for key in keys if key.path is None or (key.path.catalog, key.path.database) == place}))

    def called(self) -> tuple[str, ...]:
        """The names by which the engine calls them."""
        return tuple(called for _, called in self._all.values())
