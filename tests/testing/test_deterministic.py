"""Time and ids that a test owns."""

import uuid

import pytest

from tablestore.testing.deterministic import ManualClock, SeededIds
from tests.support.browsing import why_no_browser
from tests.support.services import require_service


def test_a_manual_clock_moves_only_when_told_or_slept_on() -> None:
    woken: list[float] = []
    clock = ManualClock(start_ms=1000, on_sleep=woken.append)
    assert (clock.now_ms(), clock.steady_s()) == (1000, 0.0)
    clock.sleep(1.5)
    assert (clock.now_ms(), clock.steady_s()) == (2500, 1.5)
    assert woken == clock.slept_s == [1.5]
    clock.advance(0.5)
    clock.set_ms(10)
    assert (clock.now_ms(), clock.steady_s()) == (10, 2.0)


def test_seeded_ids_repeat_with_the_seed() -> None:
    def some(seed: int) -> list[object]:
        ids = SeededIds(seed)
        return [ids.uuid(), ids.nonce(), ids.fraction(), ids.uuid()]

    assert some(1) == some(1)
    assert some(1) != some(2)
    first, nonce, fraction, second = some(1)
    assert first != second
    assert uuid.UUID(str(first)).version == 4
    assert isinstance(nonce, bytes)
    assert len(nonce) == 16
    assert isinstance(fraction, float)
    assert 0 <= fraction < 1


def test_a_missing_service_skips_on_a_laptop_and_fails_in_ci() -> None:
    with pytest.raises(pytest.skip.Exception, match="no broker; fix: docker compose up"):
        require_service("no broker", "docker compose up", env={})
    with pytest.raises(pytest.fail.Exception, match="no broker; fix: docker compose up"):
        require_service("no broker", "docker compose up", env={"CI": "true"})


def test_a_browser_is_missed_by_the_name_of_what_is_missing() -> None:
    assert why_no_browser(lambda _: None, lambda _: "/usr/bin/chromium") == "the package playwright is not installed"
    assert why_no_browser(lambda _: object(), lambda _: None) == "there is no Chromium"
    assert why_no_browser(lambda _: object(), lambda name: name if name == "google-chrome" else None) is None
