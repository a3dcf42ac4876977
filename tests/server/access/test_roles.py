"""Every role on every scope against every role that a request needs."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.server.access.roles import CATALOG, Grant, Principal, Resource, Role

ORDERS, VISITS, SHOP = Resource("shop", "orders"), Resource("shop", "visits"), Resource("shop")
HR, STAFF = Resource("hr"), Resource("hr", "staff")
RESOURCES = (CATALOG, SHOP, ORDERS, VISITS, HR, STAFF)
# Written down by hand: what a grant on the first reaches.
REACHED = {
    CATALOG: {CATALOG, SHOP, ORDERS, VISITS, HR, STAFF},
    SHOP: {SHOP, ORDERS, VISITS},
    ORDERS: {ORDERS},
}
# The names that a role on the first lets its holder know.
SEEN = {CATALOG: set(RESOURCES), SHOP: {CATALOG, SHOP, ORDERS, VISITS}, ORDERS: {CATALOG, SHOP, ORDERS}}
INCLUDED = {
    Role.READER: {Role.READER},
    Role.WRITER: {Role.READER, Role.WRITER},
    Role.OWNER: {Role.READER, Role.WRITER, Role.OWNER},
    Role.ADMIN: {Role.READER, Role.WRITER, Role.OWNER, Role.ADMIN},
}


def holder(*grants: Grant) -> Principal:
    return Principal(name="ada", grants=grants)


@pytest.mark.parametrize(("role", "scope"), list(itertools.product(Role, REACHED)), ids=str)
def test_a_grant_reaches_what_lies_in_it_with_its_role_and_smaller_ones_and_nothing_else(role: Role, scope: Resource) -> None:
    caller = holder(Grant(role, scope))
    for resource, needed in itertools.product(RESOURCES, Role):
        expected = resource in REACHED[scope] and needed in INCLUDED[role]
        assert caller.may(needed, resource) is expected, f"{needed} on {resource}"


@pytest.mark.parametrize(("role", "scope"), list(itertools.product(Role, SEEN)), ids=str)
def test_names_are_seen_of_what_a_grant_reaches_and_of_what_it_lies_in(role: Role, scope: Resource) -> None:
    caller = holder(Grant(role, scope))
    assert {resource for resource in RESOURCES if caller.sees(resource)} == SEEN[scope]


def test_without_a_grant_nothing_is_seen_and_nothing_may_be_done() -> None:
    caller = holder()
    assert not any(caller.may(role, resource) or caller.sees(resource) for role in Role for resource in RESOURCES)
    assert caller.role_on(CATALOG) is None


def test_the_highest_of_several_grants_holds_wherever_they_were_given() -> None:
    caller = holder(Grant(Role.READER), Grant(Role.OWNER, SHOP), Grant(Role.WRITER, ORDERS))
    assert [caller.role_on(one) for one in (CATALOG, SHOP, ORDERS, HR)] == [Role.READER, Role.OWNER, Role.OWNER, Role.READER]


def test_a_database_is_no_table_of_the_same_name() -> None:
    caller = holder(Grant(Role.ADMIN, Resource("a", "b")))
    others = (Resource("b"), Resource("b", "a"), Resource("a"), Resource("a", "B"), Resource("a", "b "), Resource("a.b"))
    assert not any(caller.may(Role.READER, other) for other in others)


def test_a_resource_is_named_as_users_name_it() -> None:
    assert [str(one) for one in (CATALOG, SHOP, ORDERS)] == ["the catalog", "shop", "shop.orders"]


GRANTS = st.lists(st.builds(Grant, st.sampled_from(list(Role)), st.sampled_from(RESOURCES)), max_size=5)


@given(grants=GRANTS, more=GRANTS, resource=st.sampled_from(RESOURCES))
def test_a_further_grant_never_takes_anything_away(grants: Sequence[Grant], more: Sequence[Grant], resource: Resource) -> None:
    fewer, all_of_them = holder(*grants), holder(*grants, *more)
    for role in Role:
        assert all_of_them.may(role, resource) >= fewer.may(role, resource)
    assert all_of_them.sees(resource) >= fewer.sees(resource)


@given(grants=GRANTS, resource=st.sampled_from(RESOURCES))
def test_whoever_may_do_something_with_a_thing_sees_it_and_all_that_it_lies_in(grants: Sequence[Grant], resource: Resource) -> None:
    caller = holder(*grants)
    if caller.may(Role.READER, resource):
        assert all(caller.sees(scope) for scope in resource.scopes())
