"""Takes secrets out of whatever is shown: options, URLs, messages, statements.

    an option       shown if its key is known to be harmless; every other value is ``***``, whatever the key is called
    a reference     ``env:NAME`` and ``file:PATH`` are names of secrets and shown as they are (:mod:`tablestore.secretnames`)
    a URL           loses user, password and the values behind ``?`` and ``;``, which drivers take passwords from
    a message       loses those parts of its URLs, and what follows ``password=`` and its kin
    a statement     loses the values of its options, by the rule for options (:mod:`tablestore.sql.statementmask`)

A list of names that tell a secret is never complete, so it decides only where text has no keys that could be known.
"""

import re
from collections.abc import Callable, Collection, Mapping

HIDDEN = "***"

# Keys of connectors whose values are no secret. One that is missing costs a look into one's own statement, one too many a password.
HARMLESS = frozenset(
    [
        "batchsize",
        "bootstrap.servers",
        "bucket",
        "catalog-key",
        "charset",
        "codec",
        "columnnameofcorruptrecord",
        "compression",
        "connector",
        "dateformat",
        "dbtable",
        "delimiter",
        "driver",
        "emptyvalue",
        "encoding",
        "endingoffsets",
        "endpoint_url",
        "escape",
        "failondataloss",
        "fetchsize",
        "file.format",
        "format",
        "header",
        "ignoreleadingwhitespace",
        "ignoretrailingwhitespace",
        "inferschema",
        "isolationlevel",
        "jdbc.user",
        "kafka.bootstrap.servers",
        "key.fields",
        "key.format",
        "linesep",
        "lowerbound",
        "maxfilesperbatch",
        "mergeschema",
        "metastore",
        "mode",
        "multiline",
        "nullvalue",
        "numpartitions",
        "partitioncolumn",
        "pathglobfilter",
        "path",
        "prefertimestampntz",
        "properties.bootstrap.servers",
        "querytimeout",
        "quote",
        "recursivefilelookup",
        "rowspersecond",
        "rowtag",
        "scan.snapshot-id",
        "scan.tag-name",
        "scan.timestamp",
        "scan.timestamp-millis",
        "sep",
        "startingoffsets",
        "subscribe",
        "timestampformat",
        "timestampntzformat",
        "timezone",
        "topic",
        "truncate",
        "type",
        "upperbound",
        "uri",
        "url",
        "user",
        "value.format",
        "warehouse",
    ]
)

# Settings of ours and of the engine, unless they are called as secrets are.
_FAMILIES = ("execution.", "table.", "materialized-table.", "workflow-scheduler.", "spark.sql.")

REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:(?:/|~/)[^\s'\"*?;]+")

# What a key is called that surely holds a secret, spelled in any way: accessKey, access.key, ACCESS_KEY.
_TELLING = re.compile(
    r"passw|passphrase|passcode|\bpass\b|\bpw\b|\bpin\b|\bpwd\b|secret|token|credential|jaas|\bsas\b|bearer|\bapi[._-]?key|access[._-]?key|private[._-]?key"
    r"|account[._-]?key|encryption[._-]?key|ssl[._-]?key|key[._-]?pem|(?:\b|_)auth(?:\b|_)|authorization|connection[._-]?string|\bpat\b|signature",
    re.IGNORECASE,
)
# scheme://user:password@host:1,host:2/path?query
# A password may hold what ends a URL in a message.
_URL = re.compile(r"(?P<scheme>(?<![\w+.-])[A-Za-z][\w+.-]{0,60}+)://(?P<rest>(?:[^\s/@]{0,200}@)?[^\s'\"`<>|)]*)")
# A value that is one URL, whatever its password holds.
_WHOLE_URL = re.compile(r"(?P<scheme>[A-Za-z][\w+.:-]{0,60})://(?P<user>.*)@", re.DOTALL)
# Their paths may hold any character, and they take no parameters.
_STORES = frozenset(["file", "local", "memory", "s3", "s3a", "gs", "gcs", "hdfs", "viewfs"])
_CONTAINERS = frozenset(["abfs", "abfss", "wasb", "wasbs"])  # container@account
_IN_PATHS = frozenset(["teradata"])  # host/USER=me,PASSWORD=x
_AUTHORITY, _PATH = re.compile(r"[^/?;#]*"), re.compile(r"[^?;#]*")
_NO_PORT = re.compile(r":(?!\d*$)")
# jdbc:oracle:thin:user/password@host has no //.
_SLASHLESS = re.compile(
    r"\b(?P<scheme>jdbc:[\w+:.-]{1,60}:)(?!/)"
    r"(?P<user>[^\s'\"`@?;/]{0,200}/(?:\"[^\"]{0,200}\"|[^\s'\"`@]{0,200}))@",
    re.IGNORECASE,
)
# The value of an option may leave the scheme out: user:password@host, //user:password@host.
_SCHEMELESS = re.compile(r"(?P<before>(?:^|,)(?://)?)(?P<user>[^\s/@,:]*:[^\s/@,]*)@")
_TEXT = r"'(?:[^'\\]|\\.|'')*'?|\"(?:[^\"\\]|\\.|\"\")*\"?"
_ASSIGNED = re.compile(
    rf"(?P<key>(?<![\w.-])[\w.-]++)(?P<sign>(?:['\"`]?\s*+=>?|['\"]\s*+:)\s*+|:(?=[^\s:/]))"
    rf"(?P<value>{_TEXT}|\{{[^}}]*+\}}?|[^\s'\",;&)]+)",
    re.DOTALL,
)
# A header of HTTP, with its scheme.
_AUTHORIZATION = re.compile(r"(?P<before>\bauthorization['\"]?\s*[:=]\s*['\"]?[\w-]+\s+)(?P<value>[^\s'\",]+)", re.IGNORECASE)


def is_telling(key: str) -> bool:
    """Tells whether a key is called as those of secrets are."""
    # accessKey is access_key.
    return _TELLING.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key)) is not None


def is_reference(value: object) -> bool:
    """Tells whether a value is the name of a secret: ``env:NAME`` or ``file:PATH``."""
    return isinstance(value, str) and REFERENCE.fullmatch(value) is not None


def is_harmless(key: str) -> bool:
    """Tells whether an option of a connector, or a setting, is known to hold no secret."""
    return key.lower() in HARMLESS or (key.startswith(_FAMILIES) and not is_telling(key))


def shown_options(options: Mapping[str, str], is_known: Callable[[str], bool] = is_harmless) -> dict[str, str]:
    """Options as they may be shown; ``is_known``: which keys hold no secret."""
    return {key: shown_option(key, value, is_known) for key, value in options.items()}


def shown_option(key: str, value: str, is_known: Callable[[str], bool] = is_harmless) -> str:
    """The value of one option as it may be shown."""
    if is_reference(value):
        return value
    if not is_known(key):
        return HIDDEN
    return without_addresses(without_secrets(without_user(value, lambda _: HIDDEN)), lambda _: HIDDEN)


def without_secrets(text: str, values: Collection[str] = ()) -> str:
    """A message without what its URLs and assignments hold, and without the ``values`` themselves."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, HIDDEN) if value else text
    if ":" in text:
        text = without_urls(text, lambda _: HIDDEN)
    return without_assigned(text, lambda _: HIDDEN)


def without_urls(text: str, hide: Callable[[str], str]) -> str:
    """A text whose URLs have lost user, password and parameters."""
    text = _URL.sub(lambda match: f"{match['scheme']}://{_of_url(match['scheme'].lower(), match['rest'], hide)}", text)
    return _SLASHLESS.sub(lambda match: f"{match['scheme']}{hide(match['user'])}@", text)


def without_user(value: str, hide: Callable[[str], str]) -> str:
    """A value that is one URL without user and password: all up to the last ``@``. Paths in stores may hold one."""
    match = _WHOLE_URL.match(value)
    if match is None or match["scheme"].lower() in _STORES | _CONTAINERS:
        return value
    return f"{match['scheme']}://{hide(match['user'])}@{value[match.end() :]}"


def without_addresses(value: str, hide: Callable[[str], str]) -> str:
    """The value of an option without user and password of addresses that have no scheme."""
    return _SCHEMELESS.sub(lambda match: f"{match['before']}{hide(match['user'])}@", value) if "@" in value else value


def without_assigned(text: str, hide: Callable[[str], str]) -> str:
    """A text without what follows ``password=`` and its kin, and without the value of a header ``Authorization``."""

    def assigned(match: re.Match[str]) -> str:
        if not is_telling(match["key"]) or is_reference(match["value"].strip("'\"")):
            return match[0]
        return f"{match['key']}{match['sign']}{hide(match['value'])}"

    if not (("=" in text or ":" in text) and is_telling(text)):
        return text
    return _ASSIGNED.sub(assigned, _AUTHORIZATION.sub(lambda header: f"{header['before']}{hide(header['value'])}", text))


def _of_url(scheme: str, remainder: str, hide: Callable[[str], str]) -> str:
    """Strips what follows ``://`` of user, password and parameters."""
    authority = _AUTHORITY.match(remainder)
    assert authority is not None, "it matches the empty text"
    user, at, host = authority[0].rpartition("@")
    behind = remainder[authority.end() :]
    if at and (scheme not in _CONTAINERS or ":" in user):
        user = hide(user)
    if scheme in _STORES:
        if not at and _NO_PORT.search(host) and "@" in behind:
            # key:secret@bucket, where the secret holds a slash.
            return hide(remainder)
        return f"{user}{at}{host}{behind}"
    path = _PATH.match(behind)
    assert path is not None, "it matches the empty text"
    if not at and ("@" in path[0] or (":" in host and "@" in behind)):
        # A password that was not escaped holds a slash, or what begins parameters.
        return hide(remainder)
    if scheme in _IN_PATHS and "=" in path[0]:
        named, sign, values = path[0].partition("=")
        return f"{user}{at}{host}{named}{sign}{hide(values + behind[path.end() :])}"
    mark, parameters = behind[path.end() : path.end() + 1], behind[path.end() + 1 :]
    return f"{user}{at}{host}{path[0]}{mark}{hide(parameters) if parameters else ''}"


def stars(text: str) -> str:
    """As many ``*`` as there are characters; lines stay."""
    return "".join("\n" if character == "\n" else "*" for character in text)
