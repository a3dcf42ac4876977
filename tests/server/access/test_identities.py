"""Tokens: what opens the door, and that everything else gets one answer."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tablestore as ts
from tablestore.ids import SystemIds
from tablestore.server.access.denials import Forbidden, Unauthenticated
from tablestore.server.access.identities import (
    MOST_HEADER_CHARACTERS,
    Authenticator,
    Token,
    TokenTable,
    create_token,
    hash_of,
    revoke_tokens,
)
from tablestore.server.access.roles import CATALOG, Grant, Principal, Resource, Role
from tablestore.testing.deterministic import SeededIds

NOW, HOUR = 1_772_352_000_000, 3_600_000
READER = (Grant(Role.READER, Resource("shop")),)
LIVE, TEXT = create_token(SeededIds(1), name="reports", grants=READER, now_ms=NOW)
SHORT, SHORT_TEXT = create_token(SeededIds(2), name="trial", grants=READER, now_ms=NOW, expires_in_ms=HOUR)


def authenticator(*tokens: Token) -> Authenticator:
    table = TokenTable.of(tokens)
    return Authenticator(lambda: table)


def refusal(header: str | None, *tokens: Token, now_ms: int = NOW) -> Unauthenticated:
    with pytest.raises(Unauthenticated) as refused:
        authenticator(*tokens).authenticate(header, now_ms)
    return refused.value


def test_a_live_token_names_its_caller_with_its_grants() -> None:
    assert authenticator(SHORT, LIVE).authenticate(f"Bearer {TEXT}", NOW) == Principal(name="reports", grants=READER)


@pytest.mark.parametrize("header", [f"bearer {TEXT}", f"BEARER   {TEXT}", f" Bearer {TEXT}\t"])
def test_the_scheme_is_read_as_http_says(header: str) -> None:
    assert authenticator(LIVE).authenticate(header, NOW).name == "reports"


BAD_HEADERS = [
    None,
    "",
    "Bearer",
    "Bearer ",
    TEXT,
    f"Basic {TEXT}",
    f"Bearer {TEXT} {TEXT}",
    f"Bearer {TEXT}\n",
    f"Bearer {TEXT}\x00",
    f"Bearer {TEXT[:-1]}",
    f"Bearer {TEXT}A",
    f"Bearer {TEXT[:-1]}{'A' if TEXT[-1] != 'A' else 'B'}",
    f"Bearer {TEXT.upper()}",
    f"Bearer {LIVE.sha256}",
    f"Bearer {LIVE.id}",
    "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
    "Bearer " + "a" * MOST_HEADER_CHARACTERS,
]


def test_every_reason_gets_the_same_answer() -> None:
    revoked, _ = revoke_tokens([LIVE], LIVE.id, NOW)
    refusals = [refusal(header, LIVE) for header in BAD_HEADERS]
    refusals += [refusal(f"Bearer {TEXT}"), refusal(f"Bearer {TEXT}", *revoked)]
    refusals += [refusal(f"Bearer {SHORT_TEXT}", SHORT, now_ms=NOW + HOUR)]
    assert len({str(one) for one in refusals}) == 1
    assert {one.kind for one in refusals} == {"unauthenticated"}
    # The service's own record tells them apart.
    assert len({one.reason for one in refusals}) > 4
    assert not any(TEXT[4:20] in one.reason or SHORT_TEXT[4:20] in one.reason for one in refusals)


def test_a_token_opens_until_the_millisecond_in_which_it_expires() -> None:
    assert authenticator(SHORT).authenticate(f"Bearer {SHORT_TEXT}", NOW + HOUR - 1).name == "trial"
    assert "expired" in refusal(f"Bearer {SHORT_TEXT}", SHORT, now_ms=NOW + HOUR).reason
    assert [SHORT.state(NOW), SHORT.state(NOW + HOUR)] == ["live", "expired"]


def test_a_token_has_256_random_bits_and_its_text_is_not_stored() -> None:
    assert re.fullmatch(r"tsk_[A-Za-z0-9_-]{43}", TEXT)
    texts = {create_token(SystemIds(), name="n", grants=READER, now_ms=0)[1] for _ in range(100)}
    assert len(texts) == 100
    # No character of the text is the same in all, but for the prefix: nothing of it is fixed.
    assert all(len(set(characters)) > 1 for characters in zip(*(text[4:] for text in texts), strict=True))
    assert TEXT[4:] not in repr(LIVE)
    assert LIVE.sha256 == hash_of(TEXT)


def test_revoking_by_id_takes_one_and_by_name_all_of_that_name() -> None:
    other, other_text = create_token(SeededIds(3), name="reports", grants=READER, now_ms=NOW)
    one, revoked = revoke_tokens([LIVE, other, SHORT], LIVE.id, NOW)
    assert [token.id for token in revoked] == [LIVE.id]
    assert [token.state(NOW) for token in one] == ["revoked", "live", "live"]
    assert authenticator(*one).authenticate(f"Bearer {other_text}", NOW).name == "reports"
    both, revoked = revoke_tokens(one, "reports", NOW + 5)
    assert [token.state(NOW) for token in both] == ["revoked", "revoked", "live"]
    assert [token.revoked_ms for token in revoked] == [NOW, NOW + 5]
    with pytest.raises(ts.NotFoundError, match="did you mean 'reports'"):
        revoke_tokens([LIVE], "report", NOW)


@pytest.mark.parametrize("name", ["ada", "ada@example.com", "Ада", "night job-2", "a" * 128])
def test_people_and_services_have_names(name: str) -> None:
    assert create_token(SeededIds(1), name=name, grants=READER, now_ms=0)[0].name == name


@pytest.mark.parametrize(
    "name", ["", " ", "a" * 129, "oidc:ada", "a\nb", "<b>", "a\x1b[0m", "a'b", 'a"b', "a/b", "-x", "a\u202eb", "a\n"]
)
def test_a_name_is_no_markup_no_control_characters_and_nobody_of_an_issuer(name: str) -> None:
    with pytest.raises(ts.InvalidInputError, match="expected a name"):
        create_token(SeededIds(1), name=name, grants=READER, now_ms=0)


def test_a_token_has_a_role_and_a_future() -> None:
    with pytest.raises(ts.InvalidInputError, match="needs a role"):
        create_token(SeededIds(1), name="n", grants=(), now_ms=0)
    with pytest.raises(ts.InvalidInputError, match="expires later than now"):
        create_token(SeededIds(1), name="n", grants=READER, now_ms=0, expires_in_ms=0)


class Issuer:
    def authenticate(self, token: str, now_ms: int) -> Principal:
        return Principal(name=f"oidc:{token}", grants=(Grant(Role.ADMIN),))


def test_only_what_is_no_token_of_ours_goes_to_the_issuer() -> None:
    door = Authenticator(lambda: TokenTable.of([LIVE]), Issuer())
    assert door.authenticate("Bearer a.b.c", NOW).name == "oidc:a.b.c"
    assert door.authenticate(f"Bearer {TEXT}", NOW).name == "reports"
    with pytest.raises(Unauthenticated):
        door.authenticate(f"Bearer {SHORT_TEXT}", NOW)


def test_tokens_are_looked_up_as_they_are_at_each_request() -> None:
    tables: Iterator[TokenTable] = iter([TokenTable.of([LIVE]), TokenTable.of([])])
    door = Authenticator(lambda: next(tables))
    assert door.authenticate(f"Bearer {TEXT}", NOW).name == "reports"
    with pytest.raises(Unauthenticated):
        door.authenticate(f"Bearer {TEXT}", NOW)


@given(header=st.one_of(st.text(max_size=200), st.from_regex(r"Bearer tsk_[A-Za-z0-9_-]{43}", fullmatch=True)))
def test_no_other_header_opens(header: str) -> None:
    if header != f"Bearer {TEXT}":
        assert str(refusal(header, LIVE)) == str(refusal(None))


def test_errors_cross_processes_whole() -> None:
    import pickle

    missing = pickle.loads(pickle.dumps(Unauthenticated("why")))
    assert (type(missing), missing.reason) == (Unauthenticated, "why")
    small = pickle.loads(pickle.dumps(Forbidden(Role.OWNER, CATALOG)))
    assert (str(small.role), small.resource, small.kind) == ("owner", CATALOG, "forbidden")
    assert "owner on the catalog" in str(small)
