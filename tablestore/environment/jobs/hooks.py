"""Defines the hooks that are told of the status of a job, in the order in which they were registered.

    on_created -> (the job runs) -> on_finished | on_failed | on_canceled

``on_created`` is called once, before anything runs; what it raises makes the job fail. Then one of the others is called once, for
each hook whose ``on_created`` was called. What these raise does not change how the job ended: the other hooks are still called.
A hook travels with its job, so it has to survive being pickled, which is checked before the job begins.
"""

import pickle
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from tablestore.errors import InvalidInputError


@runtime_checkable
class JobStatusHook(Protocol):
    """A hook that is called when the status of a job changes."""

    def on_created(self, job_id: str) -> None:
        """The job was made; nothing has run."""
        ...

    def on_finished(self, job_id: str) -> None:
        """The job ended well."""
        ...

    def on_failed(self, job_id: str, error: BaseException) -> None:
        """The job ended with an error."""
        ...

    def on_canceled(self, job_id: str) -> None:
        """The job was canceled."""
        ...


def check_hook(hook: Any) -> None:
    """Raises InvalidInputError for what is no hook."""
    if isinstance(hook, type) or not isinstance(hook, JobStatusHook):
        found = f"the class {hook.__qualname__} itself" if isinstance(hook, type) else type(hook).__qualname__
        raise InvalidInputError(
            f"expected a hook: an object with the methods on_created, on_finished, on_failed and on_canceled, found {found}",
            kind="hook",
        )


def check_serializable(hooks: Iterable[JobStatusHook]) -> None:
    """Raises InvalidInputError for a hook that does not come back from its pickled form."""
    for hook in hooks:
        if (why := why_not_serializable(hook)) is not None:
            raise InvalidInputError(
                f"the hook {type(hook).__qualname__} can not be serialized ({why}), so no job takes it: keep what cannot be "
                "pickled out of it, such as open files, locks and lambdas",
                kind="not-serializable",
            )


def why_not_serializable(value: object) -> str | None:
    """The reason why a value does not come back from its pickled form; None if it does."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception as error:  # whatever the code of a value raises
        return str(error) or type(error).__name__
    return None
