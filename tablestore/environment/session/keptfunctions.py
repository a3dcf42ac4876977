"""Keeps the functions of catalogs, and finds the one that a name means: the last step of FLIP-64, behind temporary ones.

    language   stored                                             called as
    PYTHON     the name of a class or function, module.name       what the engine was given under a name of ours
    SQL        parameters, the type of the result, an expression  the expression, written into the query

A function is code, and whoever may write into the warehouse may write its definition. So a module is imported only where the
setting ``table.functions.allowed-modules`` of the session names it or a package that it lies in, and nothing is unpickled. The
expression of a function in SQL is one over its parameters, checked as that of a computed column is: it needs no permission.
"""

import json
from dataclasses import dataclass, field

from tablestore.catalog.definitions import DefinitionKind
from tablestore.environment.engine import QueryEngine
from tablestore.environment.objectpath import ObjectPath, check_whole
from tablestore.environment.session.callables import function_of, named_callable
from tablestore.environment.session.catalogs import DEFAULT_DATABASE, Catalogs
from tablestore.environment.session.functions import Functions
from tablestore.environment.session.keptobjects import VERSION, parsed_definition
from tablestore.errors import AlreadyExistsError, FormatError, InvalidInputError, TablestoreError, UnsupportedError
from tablestore.format.sealed import JsonObject
from tablestore.names import is_name, split_names
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.datatype import data_type
from tablestore.sql.query.functions import SqlFunction, engine_name
from tablestore.types.datatypes import DataType
from tablestore.types.typestring import type_to_sql

ALLOWED_MODULES = "table.functions.allowed-modules"
PYTHON, SQL = "python", "sql"
_MOST_PARAMETERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFunction:
    """A function that a catalog keeps: ``class_name`` of one in Python, else the parts of one in SQL, types as SQL text."""

    path: ObjectPath
    class_name: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    returns: str | None = None
    body: str | None = None
    comment: str | None = None

    @property
    def language(self) -> str:
        """``python`` or ``sql``."""
        return SQL if self.class_name is None else PYTHON

    def encoded(self) -> str:
        """The text of the definition; the same for the same value."""
        content: dict[str, object] = {"version": VERSION, "kind": "function", "language": self.language, "comment": self.comment}
        if self.class_name is not None:
            content["class"] = self.class_name
        else:
            names, types = [name for name, _ in self.parameters], [of for _, of in self.parameters]
            content |= {"parameters": names, "types": types, "returns": self.returns, "body": self.body}
        return json.dumps(content, ensure_ascii=False, indent=2)

    def sql_function(self) -> SqlFunction:
        """The form of a function in SQL that is written into queries. Raises InvalidInputError for what no reader computes."""
        from tablestore.sql.stored.storedexpression import check_expression  # it loads sqlglot

        assert self.body is not None and self.returns is not None, "it is one in SQL"
        names = tuple(name for name, _ in self.parameters)
        try:
            body = check_expression(self.body, names)
            types = tuple(type_to_sql(_type(of)) for _, of in self.parameters)
            returns = type_to_sql(_type(self.returns))
        except TablestoreError as error:
            raise InvalidInputError(
                f"function {self.path.quoted} is one expression over its parameters, of functions of Spark's that compute a value: "
                f"{error.message}",
                kind="function",
            ) from error
        return SqlFunction(name=self.path.quoted, parameters=names, types=types, returns=returns, body=body)


@dataclass(slots=True)
class KeptFunctions:
    """The functions that the catalogs of a session keep, and the names under which its engine has those in Python."""

    _catalogs: Catalogs
    _functions: Functions
    _registered: dict[tuple[ObjectPath, str], str] = field(default_factory=dict)

    def find(self, path: ObjectPath) -> KeptFunction | None:
        """The function of a name, whatever its case; None if its catalog keeps none."""
        text = self._text(path)
        return None if text is None else decode_function(path, text)

    def keep(self, function: KeptFunction, *, replace: bool = False) -> None:
        """Keeps a function. Raises AlreadyExistsError, NotFoundError, UnsupportedError of a catalog that keeps none."""
        path = _folded(function.path)
        check_whole(path)
        catalog = self._catalogs.get(path.catalog)
        self._catalogs.check_database(path.catalog, path.database)
        if self._catalogs.is_unmade(path.catalog, path.database):
            catalog.create_database(DEFAULT_DATABASE, ignore_if_exists=True)
        try:
            catalog.keep_definition(path.in_catalog, DefinitionKind.FUNCTION, function.encoded(), replace=replace)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(
                f"Function '{path.quoted}' already exists: CREATE OR REPLACE FUNCTION replaces it", kind="function-exists"
            ) from error

    def drop(self, path: ObjectPath) -> bool:
        """Removes a function; true if there was one."""
        path = _folded(path)
        if self._text(path) is None:
            return False
        return self._catalogs.get(path.catalog).drop_definition(path.in_catalog, DefinitionKind.FUNCTION)

    def names(self, catalog: str, database: str) -> tuple[str, ...]:
        """The names of the functions of a database, ascending; none of one that is not there."""
        if catalog not in self._catalogs.names() or not is_name(database):
            return ()
        return self._catalogs.get(catalog).list_definitions(database, DefinitionKind.FUNCTION)

    def called(self, path: ObjectPath, engine: QueryEngine, allowed: str) -> str | SqlFunction | None:
        """The name by which an engine calls a function, or what is written in its place; None if there is none.

        ``allowed``: the value of the setting. Raises UnsupportedError of kind ``function-not-allowed`` for a module that it does
        not name.
        """
        path = _folded(path)
        text = self._text(path)
        if text is None:
            return None
        function = decode_function(path, text)
        if function.class_name is None:
            return function.sql_function()
        check_module(function, allowed)
        name = self._registered.get((path, text))
        if name is None:
            python = function_of(path.quoted, named_callable(function.class_name))
            name = engine_name(self._functions.new_number(), path.name, python.kind)
            engine.register_function(name, python)
            self._registered[(path, text)] = name
        return name

    def registered(self) -> tuple[str, ...]:
        """The names under which the engine has functions."""
        return tuple(self._registered.values())

    def _text(self, path: ObjectPath) -> str | None:
        path = _folded(path)
        if path.suffix or path.catalog not in self._catalogs.names() or not (is_name(path.database) and is_name(path.name)):
            return None
        return self._catalogs.get(path.catalog).find_definition(path.in_catalog, DefinitionKind.FUNCTION)


def check_module(function: KeptFunction, allowed: str) -> None:
    """Raises UnsupportedError for a function of a module that a session has not allowed."""
    module = (function.class_name or "").rpartition(".")[0]
    if not any(module == name or module.startswith(f"{name}.") for name in split_names(allowed)):
        raise UnsupportedError(
            f"function {function.path.quoted} is {function.class_name!r:.200}, which runs code of a module that this session has "
            f"not allowed: SET '{ALLOWED_MODULES}' = '{module:.200}' allows it, if you trust who writes into this warehouse to "
            "call anything in it; CREATE TEMPORARY FUNCTION makes a function of this session",
            kind="function-not-allowed",
        )


def decode_function(path: ObjectPath, text: str) -> KeptFunction:
    """The function that a text defines. Raises FormatError."""
    source = parsed_definition(str(path), text)
    if (kind := source.text("kind")) != "function":
        source.refuse("kind", "function", kind)
    language, comment = source.text("language"), source.optional_text("comment")
    if language == PYTHON:
        return KeptFunction(path=path, class_name=source.text("class"), comment=comment)
    if language != SQL:
        source.refuse("language", f"{PYTHON} or {SQL}", language)
    return KeptFunction(
        path=path, parameters=_parameters(source), returns=source.text("returns"), body=source.text("body"), comment=comment
    )


def _parameters(source: JsonObject) -> tuple[tuple[str, str], ...]:
    names, types = source.text_list("parameters"), source.text_list("types")
    if len(names) != len(types) or len(names) > _MOST_PARAMETERS:
        raise FormatError(f"{source.name}: expected a type for each of at most {_MOST_PARAMETERS} parameters, found {len(types)}")
    return tuple(zip(names, types, strict=True))


def _type(text: str) -> DataType:
    cursor = Cursor(text)
    parsed = data_type(cursor)
    cursor.expect_end()
    return parsed


def _folded(path: ObjectPath) -> ObjectPath:
    """The name under which a function is kept: names of functions ignore case."""
    return ObjectPath(path.catalog, path.database, path.name.lower(), path.suffix)
