"""Describes the parameters of a tool as JSON schema, and checks the arguments of a call against them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter: a text, or where it has bounds a whole number. Without ``default`` and unless ``optional`` it has to be
    there."""

    name: str
    description: str
    least: int | None = None
    most: int | None = None
    default: int | None = None
    optional: bool = False

    @property
    def is_number(self) -> bool:
        """True for a whole number."""
        return self.least is not None

    @property
    def is_required(self) -> bool:
        """True if a call has to have it."""
        return self.default is None and not self.optional

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        if not self.is_number:
            return {"type": "string", "description": self.description}
        bounds = {"minimum": self.least, "maximum": self.most, "default": self.default}
        return {"type": "integer", "description": self.description} | {
            key: value for key, value in bounds.items() if value is not None
        }

    def checked(self, tool: str, value: object) -> Any:
        """The value. Raises InvalidInputError."""
        if not self.is_number:
            if isinstance(value, str) and value:
                return value
            raise _wrong(tool, self.name, "a text that is not empty", value)
        # Some clients write every number with a point.
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        if not isinstance(number, int) or isinstance(number, bool):
            raise _wrong(tool, self.name, "a whole number", value)
        if number < (self.least or 0) or (self.most is not None and number > self.most):
            upper = "" if self.most is None else f" to {self.most:,}"
            raise _wrong(tool, self.name, f"a number from {self.least}{upper}", value)
        return number


def input_schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON schema of the arguments of a call."""
    return {
        "type": "object",
        "properties": {one.name: one.schema for one in parameters},
        "required": [one.name for one in parameters if one.is_required],
        "additionalProperties": False,
    }


def checked_arguments(tool: str, parameters: Sequence[Parameter], arguments: Mapping[str, object]) -> dict[str, Any]:
    """The arguments of a call, with defaults; None for those that are optional. Raises InvalidInputError."""
    known = {one.name: one for one in parameters}
    for name in arguments:
        if name not in known:
            raise InvalidInputError(
                f"{tool}: there is no argument {name!r:.80}{did_you_mean(name[:80], tuple(known))}; "
                f"it takes {', '.join(known) or 'none'}",
                kind="arguments",
            )
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        value = arguments.get(name)
        if value is not None:
            values[name] = parameter.checked(tool, value)
        elif parameter.is_required:
            raise InvalidInputError(f"{tool}: expected the argument {name} ({parameter.description})", kind="arguments")
        else:
            values[name] = parameter.default
    return values


def _wrong(tool: str, name: str, expected: str, value: object) -> InvalidInputError:
    return InvalidInputError(f"{tool}: expected {expected} as {name}, found {value!r:.80}", kind="arguments")
