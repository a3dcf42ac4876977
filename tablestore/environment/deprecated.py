"""Keeps the names of the interface before FLIP-64. They work, and warn with the name to use."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tablestore.environment.query import Query
from tablestore.environment.temporary import TemporaryObjects
from tablestore.types.typestring import quote_identifier


class DeprecatedNames(TemporaryObjects, ABC):
    """The part of a TableEnvironment that is there for old programs."""

    @abstractmethod
    def from_path(self, path: str) -> Query:
        """The rows of a table or view."""

    def register_table(self, name: str, table: Any) -> None:
        """Deprecated: ``create_temporary_view``."""
        _warn("register_table", "create_temporary_view")
        self.create_temporary_view(quote_identifier(name), table)

    def register_data_stream(self, name: str, rows: Any) -> None:
        """Deprecated: ``create_temporary_view``."""
        _warn("register_data_stream", "create_temporary_view")
        self.create_temporary_view(quote_identifier(name), rows)

    def register_data_set(self, name: str, rows: Any) -> None:
        """Deprecated: ``create_temporary_view``."""
        _warn("register_data_set", "create_temporary_view")
        self.create_temporary_view(quote_identifier(name), rows)

    def register_table_source(self, name: str, options: Mapping[str, str], schema: pa.Schema | None = None) -> None:
        """Deprecated: ``create_temporary_table``."""
        _warn("register_table_source", "create_temporary_table")
        self.create_temporary_table(quote_identifier(name), options, schema)

    def register_table_sink(self, name: str, options: Mapping[str, str], schema: pa.Schema | None = None) -> None:
        """Deprecated: ``create_temporary_table``."""
        _warn("register_table_sink", "create_temporary_table")
        self.create_temporary_table(quote_identifier(name), options, schema)

    def register_function(self, name: str, function: Any) -> None:
        """Deprecated: ``create_temporary_function``."""
        _warn("register_function", "create_temporary_function")
        self.create_temporary_system_function(quote_identifier(name), function)

    def scan(self, *path: str) -> Query:
        """Deprecated: ``from_path``."""
        _warn("scan", "from_path")
        return self.from_path(".".join(map(quote_identifier, path)))


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=3)
