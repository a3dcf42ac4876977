"""Wraps a file store whose tables have their snapshots published by a catalog service.

All verbs are those of the store. Who commits looks for :attr:`ServiceFileStore.service`; files that are no snapshots are published
as ever.
"""

from dataclasses import dataclass

from tablestore.io.service.serviceclient import ServiceClient
from tablestore.io.wrapped import WrappedFileStore


@dataclass(frozen=True)
class ServiceFileStore(WrappedFileStore):
    """The file store ``inner``, of which ``service`` publishes the snapshots."""

    service: ServiceClient

    def __post_init__(self) -> None:
        self.keep_abilities()

    @property
    def can_publish(self) -> bool:
        return True

    def at(self, path: str) -> "ServiceFileStore":
        return ServiceFileStore(self.inner.at(path), self.service)
