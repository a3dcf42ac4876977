"""A group of commands whose modules are imported when a command of theirs is called: one command does not load the others.

    verb("housekeeping", "Merge files.")                the command of that name in the module's ``app``
    noun("tagsandbranches", "Tags.", "tag_app")         a ``typer.Typer`` of the module: a group of its own
    inner(TableGroup, "Tables.")                        another late group

The sentence is the first one of the command's own help. With it the list of commands, in ``--help`` and in completion, is shown
without loading one of them.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from tablestore.cli.othercommands import WAYS
from tablestore.lazy import imported


@dataclass(frozen=True, slots=True)
class LateCommand:
    """The origin of a command: ``load`` makes the command of a name, ``line`` is what the list of commands says about it.

    ``group``: its commands are known without loading them.
    """

    load: Callable[[str], Any]
    line: str
    group: "type[LateGroup] | None" = None


def verb(module: str, line: str, app: str = "app") -> LateCommand:
    """One of several commands that a ``typer.Typer`` of a module holds."""
    return LateCommand(lambda name: get_group(_typer(module, app)).commands[name], line)


def noun(module: str, line: str, app: str = "app") -> LateCommand:
    """All commands that a ``typer.Typer`` of a module holds, as one group."""

    def load(name: str) -> Any:
        group = get_group(_typer(module, app))
        group.name = name
        return group

    return LateCommand(load, line)


def inner(group: "type[LateGroup]", line: str) -> LateCommand:
    """A group whose commands come from several modules."""
    return LateCommand(lambda name: group(name=name, no_args_is_help=True, help=line), line, group)


class LateGroup(TyperGroup):
    """A group whose commands stand in ``places``."""

    places: ClassVar[Mapping[str, LateCommand]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Late(self.places)  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, without loading the commands."""
        return list(self.places)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words name; one that lies in a group below is suggested with the group, one above without."""
        groups = {name: place.group for name, place in self.places.items() if place.group is not None}
        inside = [f"'{name} {args[0]}'" for name, group in groups.items() if args[0] in group.places]
        above = None if ctx.parent is None else ctx.parent.command
        if isinstance(above, LateGroup) and args[0] in above.places:
            inside.append(f"'{above.name} {args[0]}'")
        if inside and args[0] not in self.places and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{args[0]}'. Did you mean {' or '.join(inside)}?")
        if args[0] in WAYS and args[0] not in self.places and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{args[0]}'; here it is tablestore {WAYS[args[0]]}")
        return TyperGroup.resolve_command(self, ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help of the group, without loading the commands."""
        TyperGroup.format_help(self._listed(), ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Completes a word without loading the commands."""
        ctx.command = self._listed()
        return TyperGroup.shell_complete(ctx.command, ctx, incomplete)

    def _listed(self) -> "LateGroup":
        """This group with commands that only have a name and a line."""
        group = copy(self)
        group.commands = {name: TyperCommand(name, help=place.line) for name, place in self.places.items()}
        return group


class _Late(Mapping[str, Any]):
    """Commands by name, made at the first use."""

    def __init__(self, places: Mapping[str, LateCommand]) -> None:
        self._places, self._loaded = places, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._places[name].load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _typer(module: str, app: str) -> Any:
    return imported(f"tablestore.cli.commands.{module}:{app}")
