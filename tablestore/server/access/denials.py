"""The errors of a caller who is not known, or who may not do what is wanted.

Both say as little as can be said: a caller learns neither which part of a token is wrong nor what a name that is not theirs
stands for. The reason is for the service's own record (``reason``), and holds no secret.
"""

from tablestore.errors import TablestoreError
from tablestore.server.access.roles import Resource, Role


class Unauthenticated(TablestoreError):
    """The caller shows no valid token: HTTP 401. One message for every reason."""

    default_kind = "unauthenticated"

    def __init__(self, reason: str) -> None:
        super().__init__(
            "a valid token is needed, as a bearer token in the header Authorization; `tablestore token create` makes one"
        )
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return Unauthenticated, (self.reason,)


class Forbidden(TablestoreError):
    """The caller's role is too small: HTTP 403."""

    default_kind = "forbidden"

    def __init__(self, role: Role, resource: Resource) -> None:
        super().__init__(f"the role {role} on {resource} is needed; ask whoever administers the service for a token with it")
        self.role, self.resource = role, resource

    def __reduce__(self) -> tuple[object, ...]:
        return Forbidden, (self.role, self.resource)
