"""Puts the settings of a Kafka client together, and decides which brokers may see the credentials of the environment.

    a table's or a caller's properties      only those of KAFKA_CLIENT_SETTINGS: no file, no plug-in, no secret
    the environment (TABLESTORE_KAFKA_…)    any property; it wins

Whoever may write into a warehouse names the brokers of its tables. So credentials go only to brokers that the environment names
(``TABLESTORE_KAFKA_BOOTSTRAP_SERVERS``), that it trusts (``TABLESTORE_KAFKA_TRUSTED_BROKERS``), or that the caller of a function
of Python names itself. Addresses that a table names are parsed, and the client is given what was parsed: it reads a text that is no
plain list of brokers in a way of its own.
"""

import re
from collections.abc import Mapping

from tablestore.brokers import DEFAULT_PORT, Broker, parse_brokers
from tablestore.errors import InvalidInputError
from tablestore.options import KAFKA_CLIENT_SETTINGS

BOOTSTRAP = "bootstrap.servers"
PREFIX = "TABLESTORE_KAFKA_"
_TRUSTED = "trusted.brokers"

# What a property's name holds that may give somebody away, and those of them that do not.
_TELLING = re.compile(r"sasl|ssl|oauth|password|secret|token|credential|\bkey\b|plugin")
_HARMLESS = frozenset(
    {
        "enable.ssl.certificate.verification",
        "sasl.mechanism",
        "sasl.mechanisms",
        "ssl.ca.certificate.stores",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.curves.list",
        "ssl.endpoint.identification.algorithm",
        "ssl.sigalgs.list",
    }
)


def client_settings(
    properties: Mapping[str, str], environ: Mapping[str, str], *, owner: str, named_by_caller: bool = False
) -> dict[str, str]:
    """The settings of a client for ``owner`` (``table shop.orders``, ``topic orders``): its ``properties``, and the environment's.

    ``named_by_caller``: the brokers come from a call of Python or a command, not from a table or a text of SQL. Raises
    InvalidInputError of kind ``invalid-option`` (a property that only the environment may set, a table's brokers that are no
    addresses), ``missing-option`` (no brokers) or ``untrusted-brokers`` (the environment has credentials, and does not trust the
    brokers that ``properties`` name).
    """
    for key in properties:
        if key not in KAFKA_CLIENT_SETTINGS:
            raise InvalidInputError(
                f"{owner}: a table may not set this property of the Kafka client: {key}. Whoever may alter a table could reach "
                f"files and secrets with it; set {variable(key)} in the environment instead. Tables may set "
                f"{', '.join(sorted(KAFKA_CLIENT_SETTINGS))}",
                kind="invalid-option",
            )
    added = environment_settings(environ)
    trusted = added.pop(_TRUSTED, "")
    settings = {**properties, **added}
    if not named_by_caller and BOOTSTRAP not in added:
        credentials = sorted(key for key in added if _TELLING.search(key) and key not in _HARMLESS)
        settings[BOOTSTRAP] = _checked(properties.get(BOOTSTRAP, ""), trusted, credentials, owner)
    if not settings.get(BOOTSTRAP):
        raise InvalidInputError(
            f"{owner}: no brokers are named; give {BOOTSTRAP}, or set {variable(BOOTSTRAP)}", kind="missing-option"
        )
    return settings


def environment_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Client properties of the process, secrets among them: ``TABLESTORE_KAFKA_SASL_PASSWORD`` is ``sasl.password``."""
    # An empty variable is one that is not set: of some properties an empty value ends the process in the client's own code.
    return {
        key.removeprefix(PREFIX).lower().replace("_", "."): value
        for key, value in environ.items()
        if key.startswith(PREFIX) and value
    }


def variable(key: str) -> str:
    """The variable of the environment that sets a property."""
    return PREFIX + key.upper().replace(".", "_")


def _checked(text: str, trusted: str, credentials: list[str], owner: str) -> str:
    """The brokers that a table names, as they were parsed."""
    brokers = _parsed(text, owner)
    # A host without a port is trusted at all of them.
    trusted_places = {(broker.host, broker.port) for broker in _parsed(trusted, variable(_TRUSTED))}
    strangers = [
        broker.text
        for broker in brokers
        if trusted_places.isdisjoint({(broker.host, None), (broker.host, broker.port or DEFAULT_PORT)})
    ]
    if credentials and strangers:
        raise InvalidInputError(
            f"{owner} names the brokers {', '.join(strangers)}, and the environment has credentials for Kafka "
            f"({', '.join(credentials)}): they go only to brokers that the environment names, since whoever may alter a "
            f"table could have them sent to a host of their own. If these brokers are yours, set {variable(BOOTSTRAP)}, or list "
            f"them in {variable(_TRUSTED)}; no broker was asked",
            kind="untrusted-brokers",
        )
    return ",".join(broker.text for broker in brokers)


def _parsed(text: str, where: str) -> tuple[Broker, ...]:
    try:
        return parse_brokers(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}; no broker was asked", kind=error.kind) from None
