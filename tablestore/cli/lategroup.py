"""A group of commands whose modules are imported when a command of theirs is called: one command does not load the others.

    verb("housekeeping")             the command of that name in the module's ``app``
    noun("tagsandbranches", "tag_app")   a ``typer.Typer`` of the module: a group of its own

Who asks for all of them (``--help``, the documents) loads all. The names alone are known without loading anything, so completion
in the shell loads only what fits the word so far.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from typer.core import TyperGroup
from typer.main import get_group

from tablestore.lazy import imported

Load = Callable[[str], Any]
"""Makes the command of a name."""


def verb(module: str, app: str = "app") -> Load:
    """One of several commands that a ``typer.Typer`` of a module holds."""
    return lambda name: get_group(_typer(module, app)).commands[name]


def noun(module: str, app: str = "app") -> Load:
    """All commands that a ``typer.Typer`` of a module holds, as one group."""

    def load(name: str) -> Any:
        group = get_group(_typer(module, app))
        group.name = name
        return group

    return load


class LateGroup(TyperGroup):
    """A group whose commands stand in ``places``."""

    places: ClassVar[Mapping[str, Load]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Late(self.places)  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, without loading the commands."""
        return list(self.places)


class _Late(Mapping[str, Any]):
    """Commands by name, made at the first use."""

    def __init__(self, places: Mapping[str, Load]) -> None:
        self._places, self._loaded = places, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._places[name](name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _typer(module: str, app: str) -> Any:
    return imported(f"tablestore.cli.commands.{module}:{app}")
