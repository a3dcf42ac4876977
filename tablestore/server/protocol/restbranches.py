"""Branches of the protocol."""

from tablestore.server.protocol.errorresponse import ErrorResponse, RequestRefused
from tablestore.server.protocol.exchange import Call, understood
from tablestore.server.protocol.restaccess import check_sees_all
from tablestore.server.protocol.restservice import RestService


def list_branches(service: RestService, call: Call) -> dict[str, object]:
    """The branches of a table but the main one."""
    return {"branches": [branch.name for branch in service.table(call.names).branches()]}


def create_branch(service: RestService, call: Call) -> None:
    """Begins a branch at a tag, or at the newest snapshot."""
    request = call.json()
    name, tag = understood(lambda: (request.text("branch"), request.optional_text("fromTag")))
    service.table(call.names).create_branch(name, tag=tag or None)


def drop_branch(service: RestService, call: Call) -> None:
    """Deletes a branch."""
    service.table(call.names).delete_branch(call.names["branch"])


def rename_branch(service: RestService, call: Call) -> None:
    """Refuses: a branch keeps its name, which other branches and clients know it by."""
    raise RequestRefused(
        ErrorResponse(code=501, message="a branch keeps its name: create another one at a tag of it, and drop this one")
    )


def forward_branch(service: RestService, call: Call) -> None:
    """Gives the table the state of a branch, whatever was committed to the table since the branch began: as the protocol has it."""
    check_sees_all(service, call, "a return to other rows")
    service.table(call.names).fast_forward(call.names["branch"], discard_newer=True)
