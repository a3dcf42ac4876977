"""Works out what a table holds on to, over all of its branches and tags, the slow and simple way.

Like the auditor it shares no code with the engine: JSON and fastavro on the files, one reference after the other.

    missing()   what some snapshot, tag or kept changelog leads to and is not there      must always be nothing
    unheld()    what is there and nothing leads to                                      nothing after a clean
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tablestore.io.filestore import FileStore
from tablestore.testing.auditor import Auditor, walk

FileKey = tuple[bytes, int, int, str]


@dataclass(frozen=True)
class Reference:
    """Something that holds on to files: ``where`` it lies, and its parsed JSON."""

    where: str
    content: dict[str, Any]


class Holdings:
    """The references of the table in ``files`` (rooted at its directory), as they are now."""

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._auditor = Auditor(files)
        self._there = frozenset(walk(files))

    def references(self) -> Iterator[Reference]:
        """Every snapshot of every history, every tag, every kept changelog."""
        for prefix in ("", *self.branches()):
            start = f"{prefix}snapshot/snapshot-"
            ids = sorted(int(path.removeprefix(start)) for path in self._there if path.startswith(start))
            hint = f"{prefix}snapshot/EARLIEST"
            earliest = int(self._files.read(hint)) if hint in self._there else 0
            for i in ids:
                unbroken = ids[-1] - i == sum(other > i for other in ids)
                if unbroken and (i >= earliest or earliest not in ids):
                    yield self._reference(f"{prefix}snapshot/snapshot-{i}")
            for path in sorted(self._there):
                if path.startswith((f"{prefix}tag/tag-", f"{prefix}changelog/changelog-")):
                    yield self._reference(path)

    def _is_quiet_fork(self, reference: Reference) -> bool:
        """True if a branch began with this snapshot after its changelog had expired: the tag that it began at keeps none."""
        directory, is_branch, _ = reference.where.partition("/snapshot/")
        if not (is_branch and directory.startswith("branch/")):
            return False
        tags = [path for path in self._there if path.startswith(f"{directory}/tag/tag-")]
        is_fork = any(json.loads(self._files.read(path))["id"] == reference.content["id"] for path in tags)
        return is_fork and f"manifest/{reference.content['changelogManifestList']}" not in self._there

    def branches(self) -> list[str]:
        """The directories of whole branches, each with a slash at its end."""
        schema = "schema/schema-0"
        return sorted(p.removesuffix(schema) for p in self._there if p.startswith("branch/") and p.endswith(f"/{schema}"))

    def held(self, reference: Reference) -> set[str]:
        """The paths that one reference leads to."""
        content, paths = reference.content, set()
        lists = [content["baseManifestList"], content["deltaManifestList"]]
        if "/changelog-" in reference.where:
            lists = [content.get("changelogManifestList") or content["deltaManifestList"]]
        elif "/tag-" not in reference.where and content.get("changelogManifestList") and not self._is_quiet_fork(reference):
            lists.append(content["changelogManifestList"])
        live: dict[FileKey, str] = {}
        for name in lists:
            paths.add(f"manifest/{name}")
            for record in self._avro(name):
                paths.add(f"manifest/{record['_FILE_NAME']}")
                for entry in self._avro(record["_FILE_NAME"]):
                    file = entry["_FILE"]
                    key = (entry["_PARTITION"], entry["_BUCKET"], file["_LEVEL"], file["_FILE_NAME"])
                    if entry["_KIND"] == 0:
                        live[key] = self._auditor.path_of(file["_FILE_NAME"])
                    else:
                        live.pop(key, None)
        paths.update(live.values())
        if content.get("indexManifest") and "/changelog-" not in reference.where:
            paths.add(f"manifest/{content['indexManifest']}")
            paths.update(f"index/{record['_FILE_NAME']}" for record in self._avro(content["indexManifest"]))
        return paths

    def all_held(self) -> set[str]:
        """The paths that anything leads to."""
        return {path for reference in self.references() for path in self.held(reference)}

    def missing(self) -> dict[str, set[str]]:
        """By reference, what it leads to and is not there."""
        found = {reference.where: self.held(reference) - self._there for reference in self.references()}
        return {where: paths for where, paths in found.items() if paths}

    def unheld(self) -> set[str]:
        """Data files and metadata that nothing leads to, and what was half published."""
        kinds = ("manifest/", "index/", "bucket-")
        found = {path for path in self._there if path.startswith(kinds) or "/bucket-" in path or "/.tmp-" in path}
        return found - self.all_held()

    def _reference(self, path: str) -> Reference:
        return Reference(path, json.loads(self._files.read(path)))

    def _avro(self, name: str) -> list[dict[str, Any]]:
        if f"manifest/{name}" not in self._there:
            return []
        return self._auditor.records(name)
