"""Parses the options of a catalog, once, when it is opened.

    metastore, warehouse, uri, catalog-key, jdbc.*, token    where names and files lie, by Paimon's names
    table-default.<option>                                   options that new tables get where they and the session name none
    catalog.lock.* and all others                            options of the file system

An option of the file system is one that its client may know: the names of clients have neither dots nor dashes, and local files and
memory take none. Whatever else is unknown is refused with the nearest name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.io import s3options
from tablestore.io.lock import lockoptions
from tablestore.io.service.serviceoptions import SERVICE_TOKEN
from tablestore.names import did_you_mean, nearest
from tablestore.options import Option, option_text, validate_options
from tablestore.redaction import HIDDEN, is_reference, shown_option, without_secrets

FILESYSTEM, MEMORY, JDBC, REST = "filesystem", "memory", "jdbc", "rest"
CATALOGS = "tablestore.catalogs"
"""The group of entry points for other catalogs: the name is the value of ``metastore``, the object what ``opening`` calls."""
TABLE_DEFAULT = "table-default."
METASTORE = Option(
    key="metastore",
    kind="text",
    default=FILESYSTEM,
    sentence="Where names are kept: filesystem (the directories of the warehouse), memory (of this process), jdbc (a database), "
    "rest (a catalog service), or a catalog of another package (entry points of the group tablestore.catalogs).",
)
WAREHOUSE = Option(
    key="warehouse",
    kind="text",
    default=None,
    sentence="Where the tables lie: a directory or a URL; memory takes none; rest takes the name of a warehouse, or none.",
)
URI = Option(
    key="uri",
    kind="text",
    default=None,
    sentence="For jdbc the database: postgresql://host/name, sqlite:////shared/catalog.db, or the same with jdbc: in front. "
    "For rest the service: https://host:port.",
)
CATALOG_KEY = Option(
    key="catalog-key", kind="text", default="jdbc", sentence="For jdbc the name of the catalog: a database may keep several."
)
JDBC_USER = Option(key="jdbc.user", kind="text", default=None, sentence="For jdbc the user of the database.")
JDBC_PASSWORD = Option(key="jdbc.password", kind="text", default=None, sentence="For jdbc the password of that user, as env:NAME.")
TOKEN = Option(
    key="token", kind="text", default=None, sentence="For rest the bearer token, as env:NAME or file:PATH; it is never stored."
)
TOKEN_PROVIDER = Option(
    key="token.provider",
    kind="choice",
    default="bear",
    choices=("bear",),
    sentence="For rest the kind of the token, by Paimon's name: bear, a bearer token.",
)
DATA_TOKEN = Option(
    key="data-token.enabled",
    kind="bool",
    default=False,
    sentence="For rest: open files of S3 with temporary keys that the service hands out for each table.",
)
OPENTELEMETRY = Option(
    key="telemetry.opentelemetry",
    kind="bool",
    default=False,
    sentence="Whether operations on its tables are spans and metrics of OpenTelemetry, for the SDK that the program sets up.",
)
OPENLINEAGE = Option(
    key="telemetry.openlineage",
    kind="bool",
    default=False,
    sentence="Whether what is written to its tables is told to OpenLineage, where its client's own settings say "
    "(OPENLINEAGE_URL, openlineage.yml).",
)
OPTIONS = {
    option.key: option
    for option in (
        *(METASTORE, WAREHOUSE, URI, CATALOG_KEY, JDBC_USER, JDBC_PASSWORD, TOKEN, TOKEN_PROVIDER, DATA_TOKEN),
        *(OPENTELEMETRY, OPENLINEAGE),
    )
}

_FOR_JDBC = (CATALOG_KEY, JDBC_USER, JDBC_PASSWORD)
_BUILT_IN = (FILESYSTEM, MEMORY, JDBC, REST)
_MOST_CHARACTERS = 255  # of a catalog's key in the database
_S3 = ("s3:", "s3a:")
_TAKE_NO_OPTIONS = ("file:", "local:", "memory:")
# Options that may be shown as they are. Every other option of a client may hold a secret.
_SHOWN = {"endpoint_url", "profile", "anon", "use_ssl", "requester_pays", *lockoptions.OPTIONS} - {lockoptions.LOCATION.key}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSettings:
    """The options of one catalog. The two addresses and ``storage`` may hold secrets. ``lock``: that in the catalog's own database,
    where the store needs one and none is named. ``service``: the options ``catalog.service.*`` of a catalog of metastore = rest.
    """

    metastore: str = FILESYSTEM
    warehouse: str | None = field(default=None, repr=False)
    uri: str | None = field(default=None, repr=False)
    key: str = "jdbc"
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    hands_out_keys: bool = False
    opentelemetry: bool = False
    openlineage: bool = False
    table_defaults: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    lock: Mapping[str, str] = field(default_factory=dict, repr=False)
    service: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def storage_options(self) -> Mapping[str, Any]:
        """The options of the file system, with those of the lock and of the service."""
        return {**self.storage, **self.lock, **self.service}

    @property
    def _watched(self) -> tuple[tuple[Option, bool], ...]:
        return (OPENTELEMETRY, self.opentelemetry), (OPENLINEAGE, self.openlineage)

    def without_password(self) -> "CatalogSettings":
        """The settings as they leave this process: a password stays, unless it is named (``env:NAME``, ``file:PATH``)."""
        password = self.password if self.password is None or is_reference(self.password) else HIDDEN
        lock = self.lock
        if lock:
            from tablestore.io.lock.databaseurl import portable_url  # it loads SQLAlchemy

            lock = {**lock, lockoptions.LOCATION.key: portable_url(lock[lockoptions.LOCATION.key], lockoptions.LOCATION.key)}
        uri = None if self.uri is None else shown_option(URI.key, self.uri, lambda _: True)
        token = self.token if self.token is None or is_reference(self.token) else HIDDEN
        service = {key: value if key != SERVICE_TOKEN.key or is_reference(value) else HIDDEN for key, value in self.service.items()}
        return replace(self, uri=uri, password=password, token=token, lock=lock, service=service)

    def shown(self) -> Mapping[str, str]:
        """The options as one may show them: passwords, and what may hold a secret, are hidden."""
        shown = {METASTORE.key: self.metastore}
        if self.warehouse is not None:
            shown[WAREHOUSE.key] = without_secrets(self.warehouse)
        if self.metastore == JDBC:
            shown[URI.key] = shown_option(URI.key, self.uri or "", lambda _: True)
            shown[CATALOG_KEY.key] = self.key
            if self.user is not None:
                shown[JDBC_USER.key] = self.user
            if self.password is not None:
                shown[JDBC_PASSWORD.key] = shown_option(JDBC_PASSWORD.key, self.password)
        if self.metastore == REST:
            shown[URI.key] = shown_option(URI.key, self.uri or "", lambda _: True)
            if self.token is not None:
                shown[TOKEN.key] = shown_option(TOKEN.key, self.token)
        shown |= {option.key: "true" for option, is_on in self._watched if is_on}
        shown |= {f"{TABLE_DEFAULT}{key}": value for key, value in sorted(self.table_defaults.items())}
        for key, value in sorted({**self.storage, **self.lock}.items()):
            if key == lockoptions.LOCATION.key:
                shown[key] = without_secrets(str(value))
            elif value is not None:
                shown[key] = shown_option(key, str(value), _SHOWN.__contains__)
        return MappingProxyType(shown)


def parse_catalog_settings(options: Mapping[str, Any]) -> CatalogSettings:
    """Parse the options of a catalog; None is no value. Raises InvalidInputError, UnsupportedError for a table option that is."""
    # An S3 client has an option of the same name, and only a service takes this one.
    own_options = OPTIONS if options.get(METASTORE.key) == REST else OPTIONS.keys() - {TOKEN.key}
    set_options = {key: options[key] for key in own_options if options.get(key) is not None}
    defaults = {
        key.removeprefix(TABLE_DEFAULT): option_text(value) for key, value in options.items() if key.startswith(TABLE_DEFAULT)
    }
    storage = {key: value for key, value in options.items() if key not in own_options and not key.startswith(TABLE_DEFAULT)}
    value = {key: option.parse(str(set_options[key])) if key in set_options else option.default for key, option in OPTIONS.items()}
    metastore, warehouse = str(value[METASTORE.key]), _text(value[WAREHOUSE.key])
    if metastore not in _BUILT_IN and metastore not in (others := other_catalogs()):
        raise _refused(
            f"option {METASTORE.key}: expected one of {', '.join([*_BUILT_IN, *others])}, found {metastore!r:.60}"
            f"{did_you_mean(metastore, [*_BUILT_IN, *others])}"
        )
    for only, keys in ((JDBC, _FOR_JDBC), (REST, (TOKEN_PROVIDER, DATA_TOKEN))):
        if metastore in _BUILT_IN and metastore != only and (wrong := [one.key for one in keys if one.key in set_options]):
            raise _refused(
                f"option {wrong[0]} is for metastore = {only}, found {metastore}; set metastore, or leave the option out"
            )
    if metastore in (FILESYSTEM, MEMORY) and URI.key in set_options:
        raise _refused(
            f"option {URI.key} is for metastore = {JDBC} and {REST}, found {metastore}; set metastore, or leave the option out"
        )
    if metastore == MEMORY and (wrong := [*([WAREHOUSE.key] if warehouse else []), *storage]):
        raise _refused(
            f"option {wrong[0]}: a catalog of metastore = {MEMORY} has its own memory and takes none; open a warehouse "
            f"memory://name with metastore = {FILESYSTEM} to share memory by its name"
        )
    if metastore in (FILESYSTEM, JDBC) and warehouse is None:
        misspelled = next((key for key in storage if nearest(key, OPTIONS) == WAREHOUSE.key), None)
        raise _refused(
            'expected a warehouse as a path or URL, found none; for example open_catalog("/data/warehouse")'
            + (f"; did you mean {WAREHOUSE.key!r} by {misspelled!r}?" if misspelled is not None else "")
        )
    if metastore == JDBC and URI.key not in set_options:
        raise _refused(f"metastore = {JDBC} needs the option {URI.key}, the URL of a database, like postgresql://host/name")
    if metastore == REST and URI.key not in set_options:
        raise _refused(f"metastore = {REST} needs the option {URI.key}, the address of a catalog service, like https://host:8743")
    if not 1 <= len(key := str(value[CATALOG_KEY.key])) <= _MOST_CHARACTERS:
        raise _refused(f"option {CATALOG_KEY.key}: expected 1 to {_MOST_CHARACTERS} characters, found {key!r:.60}")
    if metastore in (FILESYSTEM, MEMORY, JDBC):
        _refuse_unknown(storage, warehouse or "")
    try:
        validate_options(defaults)
    except TablestoreError as error:
        raise type(error)(f"{TABLE_DEFAULT}<option>: {error}", kind=error.kind) from None
    return CatalogSettings(
        metastore=metastore,
        warehouse=warehouse,
        uri=_text(value[URI.key]),
        key=key,
        user=_text(value[JDBC_USER.key]),
        password=_text(value[JDBC_PASSWORD.key]),
        token=_text(value[TOKEN.key]),
        hands_out_keys=value[DATA_TOKEN.key] is True,
        opentelemetry=value[OPENTELEMETRY.key] is True,
        openlineage=value[OPENLINEAGE.key] is True,
        table_defaults=defaults,
        storage=storage,
    )


def other_catalogs() -> tuple[str, ...]:
    """The values of ``metastore`` that other packages have brought, ascending."""
    return tuple(sorted({point.name for point in entry_points(group=CATALOGS)} - set(_BUILT_IN)))


def _refuse_unknown(storage: Mapping[str, Any], warehouse: str) -> None:
    local = "://" not in warehouse or warehouse.startswith(_TAKE_NO_OPTIONS)
    file_system_keys = [key for key in storage if not key.startswith(lockoptions.PREFIX)]
    if unknown := [key for key in file_system_keys if local or "." in key or "-" in key]:
        option_names = [*OPTIONS, *lockoptions.OPTIONS, f"{TABLE_DEFAULT}<option>"]
        raise InvalidInputError(
            f"a catalog has no option {unknown[0]!r}{_meant(unknown[0], option_names, warehouse)}; options are "
            f"{', '.join(option_names)}{' (local files and memory take no others)' if local else ', and those of the file system'}",
            kind="unknown-option",
        )


def _meant(key: str, option_names: Iterable[str], warehouse: str) -> str:
    if warehouse.startswith(_S3) and (hint := s3options.meant(key)):
        return hint
    prefix, dot, suffix = key.partition(".")
    if dot and did_you_mean(f"{prefix}.", [TABLE_DEFAULT]):
        return f"; did you mean {TABLE_DEFAULT + suffix!r}?"
    return did_you_mean(key, option_names)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _refused(message: str) -> InvalidInputError:
    return InvalidInputError(message, kind="invalid-option")
