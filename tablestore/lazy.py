"""Computes attributes and imports modules when they are first used.

``lazy`` is a property that is computed once and kept: as ``functools.cached_property``, without the lock that this has up to
Python 3.11: one for all instances of a class, held while the value is computed, so that threads that open different files would
wait for each other. Two threads that ask one object at once may both compute; one value stays.

``imported`` is for tables of which a process uses few entries, such as the commands of a program. ``extra`` imports a package that
not everybody has installed.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, Self, TypeVar, overload

from tablestore.errors import UnsupportedError

_T = TypeVar("_T")


class lazy(Generic[_T]):
    """Decorates a method without parameters; instances need a ``__dict__``."""

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | _T:
        """The value; it takes the place of this property in the instance."""
        if instance is None:
            return self
        value = self._compute(instance)
        return instance.__dict__.setdefault(self._name, value)  # type: ignore[no-any-return]


def imported(place: str) -> Any:
    """Imports ``package.module:name`` now and returns what it names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def extra(package: str, purpose: str) -> Any:
    """A package that comes with the extra of its name. UnsupportedError of kind "missing-package" says how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise missing_package(f"{purpose} needs the package {package}", f"'managed-tablestore[{package}]'", error) from error


def missing_package(what: str, install: str, error: ImportError | None = None) -> UnsupportedError:
    """The error for a package that is not there, or does not load."""
    why = "" if error is None or isinstance(error, ModuleNotFoundError) else f", which does not load ({error})"
    return UnsupportedError(f"{what}{why}; run: pip install {install}", kind="missing-package")
