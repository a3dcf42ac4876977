"""What is shown of options, URLs, messages and statements holds no secret, however it is spelled."""

from pathlib import Path

import pytest

from tablestore.errors import StorageError
from tablestore.options import holds_no_secret
from tablestore.redaction import HARMLESS, shown_option, shown_options, without_secrets
from tablestore.sql.statementmask import masked_statement
from tests.support.attacks.canary import CANARY, SECRETS, URLS


@pytest.mark.parametrize("key", SECRETS)
def test_an_option_of_any_spelling_is_shown_only_as_that_it_is_there(key: str) -> None:
    assert shown_options({key: CANARY, "format": "csv"}) == {key: "***", "format": "csv"}
    assert not holds_no_secret(key)


def test_a_secret_that_is_named_is_shown_by_its_name() -> None:
    named = {"password": "env:DB_PASSWORD", "secret-key": "file:/run/secrets/key"}
    assert shown_options(named) == named


@pytest.mark.parametrize("url", URLS)
def test_a_url_loses_user_password_and_parameters(url: str) -> None:
    shown = without_secrets(f"cannot open {url}: refused")
    assert CANARY not in shown and shown.endswith("refused") and shown.startswith(f"cannot open {url.partition(':')[0]}")
    assert CANARY not in shown_options({"url": url})["url"]
    statement = f"CREATE TABLE t WITH ('connector' = 'jdbc', 'url' = '{url}', 'dbtable' = 'x')"
    assert CANARY not in masked_statement(statement) and len(masked_statement(statement)) == len(statement)


@pytest.mark.parametrize(
    "value",
    [
        f"me:{CANARY}@host/db",
        f"//me:{CANARY}@host/db",
        f"me:{CANARY}@h1:9092,me:{CANARY}@h2:9092",
        f"jdbc:mysql://address=(host=h)(user=me)(password={CANARY})/db",
        f"host=h user=me password={CANARY}",
        f"DRIVER={{x}};SERVER=h;UID=me;PWD={CANARY}",
        f"DRIVER={{x}};SERVER=h;UID=me;PWD={{a;{CANARY}}};",
    ],
)
def test_an_address_that_is_no_url_loses_its_password_where_it_is_an_option(value: str) -> None:
    assert CANARY not in shown_options({"url": value})["url"]
    statement = f"CREATE TABLE t WITH ('connector' = 'jdbc', 'url' = '{value}', 'dbtable' = 'x')"
    masked = masked_statement(statement)
    assert CANARY not in masked and len(masked) == len(statement) and masked.endswith(", 'dbtable' = 'x')")


@pytest.mark.parametrize("path", ["/data/a@b/c:d@e", "C:/x@y", "host-1:9092,host-2:9092", "container@account"])
def test_an_option_without_a_password_is_shown_as_it_is(path: str) -> None:
    assert shown_options({"path": path}) == {"path": path}
    statement = f"CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = '{path}')"
    assert masked_statement(statement) == statement


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a@b/t?x;y",
        "abfss://container@account.dfs.core.windows.net/t",
        "see https://docs.example/page, then repeat",
        "postgresql://host:5432/name",
        "option bucket = 4, token and password are no options",
        "jdbc:sqlite:/data/c.db",
        "SELECT a FROM t WHERE b = 'x' AND c IN ('y', 'z') /* 'password' */",
        "CREATE TABLE t WITH ('bucket' = '2', 'connector' = 'jdbc', 'password' = 'env:DB_PASSWORD')",
    ],
)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert without_secrets(text) == text == masked_statement(text, holds_no_secret)


@pytest.mark.parametrize("key", SECRETS)
@pytest.mark.parametrize(
    "option",
    [
        "'{key}' = '{canary}'",
        "'{key}'\n  /* ' */ = '{canary}'",
        "'{key}' = '''{canary}'",
        "'{key}' = 'it\\'s {canary}'",
        "'{key}' = '{canary}",
    ],
)
def test_a_statement_keeps_its_places_and_loses_the_values_of_its_options(key: str, option: str) -> None:
    statement = "CREATE TABLE t WITH ('connector' = 'jdbc', " + option.format(key=key, canary=CANARY)
    masked = masked_statement(statement, holds_no_secret)
    assert CANARY not in masked and len(masked) == len(statement)
    assert masked.startswith("CREATE TABLE t WITH ('connector' = 'jdbc', ")


@pytest.mark.parametrize(
    "text",
    [
        "login failed (Password:{canary})",
        "s3.secret-key:{canary}, region:eu",
        "sent Authorization: Bearer {canary}",
        "{{'Authorization': 'Basic {canary}'}}",
        "headers authorization=Negotiate {canary}, 401",
    ],
)
def test_a_message_has_lost_what_follows_a_telling_key_and_a_colon(text: str) -> None:
    assert CANARY not in without_secrets(text.format(canary=CANARY))


@pytest.mark.parametrize("text", ["the password: name it as env:NAME", "sasl.password:env:NAME", "token: missing", "secret::x"])
def test_prose_keeps_what_follows_a_colon(text: str) -> None:
    assert without_secrets(text) == text


def test_an_error_has_lost_what_another_library_says_of_an_address() -> None:
    error = StorageError(f"failed: no server at postgresql://me:{CANARY}@host/db, password={CANARY}, {{'token': '{CANARY}'}}")
    assert CANARY not in str(error) + repr(error) + error.message + str(error.args)
    assert "postgresql://***@host/db" in str(error)


@pytest.mark.parametrize(
    "password", ["p)canary", "p|canary", "p<canary", "p`canary", "p'canary", 'p"canary', "canary#x", "canary?x", "canary;x"]
)
def test_a_password_may_hold_what_ends_a_url(password: str) -> None:
    url = f"postgresql://u:{password}@h/d"
    assert "canary" not in shown_option("uri", url, lambda _: True)
    assert "canary" not in without_secrets(f"cannot connect to {url}, try again")
    quoted = url.replace("'", "''")
    assert "canary" not in masked_statement(f"CREATE CATALOG c WITH ('uri' = '{quoted}')", lambda _: True)


def test_a_password_may_hold_a_blank_where_the_value_is_known_to_be_a_url() -> None:
    assert shown_option("uri", "postgresql://u:p canary@h/d", lambda _: True) == "postgresql://***@h/d"
    assert "canary" not in masked_statement("CREATE CATALOG c WITH ('uri' = 'postgresql://u:p canary@h/d')", lambda _: True)
    assert shown_option("path", "s3://bucket/a@b", lambda _: True) == "s3://bucket/a@b"


def test_the_options_that_are_known_are_listed(project: Path) -> None:
    guide = (project / "docs" / "guides" / "sql.md").read_text()
    assert [one for one in sorted(HARMLESS) if f"`{one}`" not in guide] == []
