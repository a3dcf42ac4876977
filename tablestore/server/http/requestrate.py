"""Bounds how often one caller may send requests, by a bucket of permits that fills again at a steady rate.

One limiter serves two keys: the address before a caller is known, so that guessing tokens is slow, and its principal behind that.
The buckets of callers that were not seen for longest are forgotten beyond a bound: they were full, or nearly.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from tablestore.clock import Clock
from tablestore.server.http.refusal import OnRefusal, Refusal, ignore_refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRate:
    """Requests a second in the long run, and as many as ``burst`` at once."""

    per_s: float = 200.0
    burst: int = 1000


class RequestLimiter:
    """Counts the requests of each key. Threads may share it."""

    def __init__(self, rate: RequestRate, clock: Clock, *, most_keys: int = 10_000) -> None:
        self._rate, self._clock, self._most_keys = rate, clock, most_keys
        self._lock = threading.Lock()
        # Key -> permits that were left, and when.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def refusal(self, key: str) -> Refusal | None:
        """Takes a permit of ``key``; the answer to its request, if there is none."""
        with self._lock:
            now_s = self._clock.steady_s()
            left, since_s = self._buckets.get(key, (float(self._rate.burst), now_s))
            left = min(float(self._rate.burst), left + (now_s - since_s) * self._rate.per_s)
            is_admitted = left >= 1
            self._buckets[key] = left - is_admitted, now_s
            self._buckets.move_to_end(key)
            if len(self._buckets) > self._most_keys:
                self._buckets.popitem(last=False)
        if is_admitted:
            return None
        wait_s = max(1, math.ceil((1 - left) / self._rate.per_s))
        return Refusal(status=429, reason="rate", message="too many requests; wait, and send fewer", retry_after_s=wait_s)


def address_key(scope: Scope) -> str:
    """The address that a request comes from; behind a proxy that which the proxy names."""
    client = scope.get("client")
    return f"address {client[0]}" if client else "address unknown"


class RequestRateLimit:
    """Middleware: refuses requests of a key that sends too many."""

    def __init__(
        self,
        app: ASGIApp,
        limiter: RequestLimiter,
        key_of: Callable[[Scope], str] = address_key,
        on_refusal: OnRefusal = ignore_refusals,
    ) -> None:
        self._app, self._limiter, self._key_of, self._on_refusal = app, limiter, key_of, on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._limiter.refusal(self._key_of(scope))) is not None:
            self._on_refusal(refusal.reason)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)
