"""Hands out keys to the files of one table in S3: temporary ones of a role, narrowed to the table's prefix by a session policy.

    reader    GetObject below the prefix, ListBucket of it
    writer    and PutObject, DeleteObject, AbortMultipartUpload

A key that was handed out holds until it expires, whatever becomes of the role of its caller; so it lasts an hour at most. What a
service may do itself (``tablestore serve`` has keys of its own) is never handed out. Paimon's Python and Java clients and ours take
the options by the names that they know.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tablestore.errors import InvalidInputError, StorageError
from tablestore.io.service.tablekeys import ACCESS_KEY, ENDPOINT, REGION, SECRET_KEY, SESSION_TOKEN
from tablestore.lazy import missing_package
from tablestore.memo import RecentlyUsed
from tablestore.server.access.roles import Principal, Resource, Role
from tablestore.server.protocol.restservice import TableToken

DURATION_S = 3600
_HANDED_OUT_MS = DURATION_S * 1000 // 2
_MOST_KEPT = 1024
_READ = ("s3:GetObject",)
_WRITE = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


@dataclass(slots=True)
class S3TableTokens:
    """Keys by AssumeRole of ``role_arn``. ``storage``: the options with which the service opens its own store.

    A key is handed out again until half of its time is over, to callers who may do the same to the same table.
    """

    role_arn: str
    storage: Mapping[str, Any] = field(repr=False)
    _kept: RecentlyUsed[TableToken] = field(init=False, repr=False)
    _sts: Any = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self._kept = RecentlyUsed(lambda _: 1, most=_MOST_KEPT, most_weight=_MOST_KEPT)

    def issue(self, location: str, principal: Principal, resource: Resource, now_millis: int) -> TableToken | None:
        """The keys to ``location`` for the caller's role. Raises StorageError where the store gives none."""
        bucket, prefix = _place(location)
        writes = principal.may(Role.WRITER, resource)
        half_hour = now_millis // _HANDED_OUT_MS
        return self._kept.find((bucket, prefix, writes, half_hour), lambda: self._assumed(bucket, prefix, writes))

    def _assumed(self, bucket: str, prefix: str, writes: bool) -> TableToken:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self._client().assume_role(
                RoleArn=self.role_arn,
                RoleSessionName="tablestore",
                DurationSeconds=DURATION_S,
                Policy=json.dumps(table_policy(bucket, prefix, writes=writes), separators=(",", ":")),
            )
        except (BotoCoreError, ClientError) as error:
            raise StorageError(
                f"the role {self.role_arn} gave no keys to s3://{bucket}/{prefix}: {error}; look at the role's trust policy, and "
                "at the keys that the service has",
                kind="denied",
            ) from error
        keys = answer["Credentials"]
        options = {ACCESS_KEY: keys["AccessKeyId"], SECRET_KEY: keys["SecretAccessKey"], SESSION_TOKEN: keys["SessionToken"]}
        # By the names of Java's file system.
        options |= {
            "s3.access-key": keys["AccessKeyId"],
            "s3.secret-key": keys["SecretAccessKey"],
            "s3.session.token": keys["SessionToken"],
            "s3.aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
        }
        if endpoint := self.storage.get("endpoint_url"):
            options |= {ENDPOINT: str(endpoint), "s3.endpoint": str(endpoint), "s3.path-style-access": "true"}
        if region := (self.storage.get("client_kwargs") or {}).get("region_name"):
            options |= {REGION: str(region), "s3.endpoint.region": str(region)}
        expires: datetime = keys["Expiration"]
        return TableToken(options=options, expires_at_millis=int(expires.timestamp() * 1000))

    def _client(self) -> Any:
        if self._sts is None:
            try:
                from tablestore.io.s3requests import service_client
            except ImportError as error:
                raise missing_package("keys to S3 need the package botocore", "'managed-tablestore[s3]'", error) from error
            self._sts = service_client("sts", self.storage)
        return self._sts


def table_policy(bucket: str, prefix: str, *, writes: bool) -> dict[str, object]:
    """The session policy that reaches one prefix of a bucket and nothing else (IAM policy language, 2012-10-17)."""
    actions = [*_READ, *(_WRITE if writes else ())]
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": actions, "Resource": [f"arn:aws:s3:::{bucket}/{_literal(prefix)}/*"]},
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [f"arn:aws:s3:::{bucket}"],
                "Condition": {"StringLike": {"s3:prefix": [_literal(prefix), f"{_literal(prefix)}/*"]}},
            },
        ],
    }


def _literal(prefix: str) -> str:
    """The prefix with nothing in it that a policy takes for a pattern or a variable."""
    return prefix.replace("$", "${$}").replace("*", "${*}").replace("?", "${?}")


def _place(location: str) -> tuple[str, str]:
    scheme, _, place = location.partition("://")
    bucket, _, prefix = place.rstrip("/").partition("/")
    if scheme not in ("s3", "s3a") or not bucket or not prefix:
        raise InvalidInputError(f"expected a table in S3, found {location!r:.200}; keys are for tables in S3 alone", kind="path")
    return bucket, prefix
