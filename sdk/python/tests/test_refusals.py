"""Nothing but an accepted approval runs a tool, and the model gets a text that says so."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from entries import ENTRIES, Effects, Entry, until

from countersign import (
    Denied,
    Ended,
    NotAskable,
    NotPaired,
    Rejected,
    TimedOut,
    Unavailable,
    Untrusted,
)
from countersign.profile import Profile
from countersign.testing import FakeApprover

pytestmark = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())


def refuse(
    entry: Entry,
    kind: type[Denied],
    prepare: Callable[[FakeApprover], object],
    timeout: str = "20s",
) -> tuple[Denied, FakeApprover]:
    """Runs one call, and asserts that it was denied in this way and had no effect."""

    async def main() -> tuple[Denied, FakeApprover]:
        effects = Effects()
        with FakeApprover() as approver:
            approver.when(tool="pay").approve()
            prepare(approver)
            with pytest.raises(kind) as denied:
                await entry(approver.client, 7, timeout, effects)
            assert effects.paid == []
            text = denied.value.for_model()
            assert "Nothing was executed" in text
            assert "Do not repeat" in text
            return denied.value, approver

    return asyncio.run(main())


def test_an_approved_call_runs_once(entry: Entry) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver:
            approver.when(tool="pay").approve()
            await entry(approver.client, 7, "20s", effects)
            assert effects.paid == [7]
            (asked,) = approver.asked
            assert (asked.tool, asked.args, asked.state) == ("pay", {"amount": 7}, "delivered")
            assert '"outcome":"allowed"' in _outcome(asked.outcomes)

    asyncio.run(main())


def _outcome(outcomes: list[Any]) -> str:
    import base64

    assert len(outcomes) == 1
    return base64.b64decode(json.loads(outcomes[0]["outcome"])["payload"]).decode()


def test_a_rejection_arrives_with_its_reason(entry: Entry) -> None:
    denied, approver = refuse(
        entry, Rejected, lambda it: it.when(tool="pay").reject("not on \u202eFriday", action="no")
    )
    assert isinstance(denied, Rejected)
    assert (denied.approver, denied.reason, denied.action_id) == (
        "alice",
        "not on \u202eFriday",
        "no",
    )
    assert 'alice rejected it, with the reason "not on \\u{202e}Friday"' in denied.for_model()
    assert "Friday" not in str(denied)
    assert '"cause":"rejected"' in _outcome(approver.asked[0].outcomes)


def test_a_call_without_a_rule_is_rejected(entry: Entry) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver, pytest.raises(Rejected):
            await entry(approver.client, 7, "20s", effects)
        assert effects.paid == []

    asyncio.run(main())


def test_no_decision_in_time(entry: Entry) -> None:
    denied, _ = refuse(entry, TimedOut, lambda it: it.when(tool="pay").wait(), "300ms")
    assert denied.cause == "timed_out"


def test_a_gateway_that_is_down_before_the_request(entry: Entry) -> None:
    _, approver = refuse(entry, Unavailable, lambda it: it.gateway.down(), "500ms")
    assert approver.asked == []


def test_a_gateway_that_goes_down_meanwhile(entry: Entry) -> None:
    def down_after_submission(approver: FakeApprover) -> None:
        approver.when(tool="pay").wait()
        requested = approver.gateway._on_request

        def on_request(exchange: Any) -> None:
            requested(exchange)
            asyncio.get_running_loop().call_later(0.1, approver.gateway.down)

        approver.gateway._on_request = on_request

    denied, approver = refuse(entry, Denied, down_after_submission, "600ms")
    assert isinstance(denied, Unavailable | TimedOut)
    assert len(approver.asked) == 1


def test_a_gateway_that_comes_back_does_not_end_the_wait(entry: Entry) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver:
            approver.when(tool="pay").wait()
            running = asyncio.ensure_future(entry(approver.client, 7, "20s", effects))
            await until(lambda: approver.asked)
            approver.gateway.down()
            await asyncio.sleep(0.2)
            approver.gateway.up()
            approver.asked[0].approve()
            await running
            assert effects.paid == [7]

    asyncio.run(main())


def test_a_silent_gateway(entry: Entry) -> None:
    refuse(entry, TimedOut, lambda it: it.gateway.silent(), "300ms")


def test_a_forged_decision(entry: Entry) -> None:
    def forge(approver: FakeApprover) -> None:
        approver.when(tool="pay").reject("no")
        approver.gateway.forge()

    denied, approver = refuse(entry, Untrusted, forge)
    assert "denied: it was not approved. " in denied.for_model()
    assert "signature" not in denied.for_model()
    assert "signature" in str(denied)
    assert '"cause":"untrusted"' in _outcome(approver.asked[0].outcomes)


def test_a_decision_of_another_artifact(entry: Entry) -> None:
    refuse(entry, Untrusted, lambda it: it.gateway.swap_artifact())


def test_a_decision_of_another_request(entry: Entry) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver:
            approver.when(tool="pay").approve()
            await entry(approver.client, 1, "20s", effects)
            approver.when(tool="pay").reject()
            approver.gateway.replay()
            with pytest.raises(Untrusted, match="about another request"):
                await entry(approver.client, 2, "20s", effects)
            assert effects.paid == [1]

    asyncio.run(main())


def test_a_decision_of_a_revoked_device(entry: Entry) -> None:
    def revoke(approver: FakeApprover) -> None:
        device = approver.add_device("laptop")
        requested = approver.gateway._on_request

        def on_request(exchange: Any) -> None:
            requested(exchange)
            asked = approver.asked[-1]
            exchange.state, exchange.decision = "pendingApproval", None
            asked.decide("approve", {}, device)

        approver.gateway._on_request = on_request
        approver.revoke_device(device)

    denied, _ = refuse(entry, Untrusted, revoke)
    assert "revoked" in str(denied)


def test_a_decision_of_an_added_device_counts(entry: Entry) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver:
            approver.when(tool="pay").wait()
            running = asyncio.ensure_future(entry(approver.client, 7, "20s", effects))
            await until(lambda: approver.asked)
            # Added after the list was read: it is read again for a device that is not known.
            device = approver.add_device("laptop")
            approver.asked[0].decide("approve", {}, device)
            await running
            assert effects.paid == [7]

    asyncio.run(main())


def test_a_decision_of_a_stranger(entry: Entry) -> None:
    def stranger(approver: FakeApprover) -> None:
        other = FakeApprover()
        approver.gateway.deliver(lambda text: other.device.signed(json.loads(text)))

    refuse(entry, Untrusted, stranger)


def test_answers_that_make_no_sense(entry: Entry) -> None:
    for text in ("[]", "null", '{"decision":"approve"}', '{"a":1,"a":1}', '"approve"', "{"):

        def deliver(approver: FakeApprover, text: str = text) -> None:
            approver.gateway.deliver(lambda _: text)

        refuse(entry, Untrusted, deliver)


def test_a_decision_with_an_unknown_addition(entry: Entry) -> None:
    def add(approver: FakeApprover) -> None:
        approver.gateway.deliver(
            lambda text: approver.device.signed(
                {**json.loads(text), "policyHints": {"if": "sunny"}}
            )
        )

    refuse(entry, Untrusted, add)


def test_an_expired_decision(entry: Entry) -> None:
    def expire(approver: FakeApprover) -> None:
        old = "2020-01-01T00:00:00Z"
        approver.gateway.deliver(
            lambda text: approver.device.signed({**json.loads(text), "expiresAt": old})
        )

    denied, _ = refuse(entry, TimedOut, expire)
    assert denied.cause == "expired"


def test_a_request_that_was_withdrawn_elsewhere(entry: Entry) -> None:
    def withdraw(approver: FakeApprover) -> None:
        approver.when(tool="pay").wait()
        requested = approver.gateway._on_request

        def on_request(exchange: Any) -> None:
            requested(exchange)
            exchange.state = "withdrawn"

        approver.gateway._on_request = on_request

    denied, _ = refuse(entry, Ended, withdraw)
    assert isinstance(denied, Ended)
    assert denied.state == "withdrawn"


def test_nobody_is_paired(entry: Entry) -> None:
    def unpair(approver: FakeApprover) -> None:
        directory = approver.client._enforcer._directory
        profile = directory._load_profile()
        alone = Profile(**{**vars(profile), "approvers": ()})
        directory._load_profile = lambda: alone

    refuse(entry, NotPaired, unpair)


def test_the_pairing_has_ended_at_the_gateway(entry: Entry) -> None:
    refuse(entry, NotPaired, lambda it: it.gateway.refusals.append((404, {})))


def test_a_gateway_that_refuses(entry: Entry) -> None:
    refuse(entry, Unavailable, lambda it: it.gateway.refusals.append((403, {})))


def test_a_redirect_is_not_followed(entry: Entry) -> None:
    target = {"Location": "http://localhost:2/elsewhere"}
    refuse(entry, Unavailable, lambda it: it.gateway.refusals.append((307, target)))


def test_a_busy_gateway_is_asked_again_when_it_says(entry: Entry) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver:
            approver.when(tool="pay").approve()
            approver.gateway.refusals += [(429, {"Retry-After": "1"}), (503, {})]
            loop = asyncio.get_running_loop()
            start = loop.time()
            await entry(approver.client, 7, "20s", effects)
            assert effects.paid == [7]
            assert loop.time() - start >= 1

    asyncio.run(main())


def test_a_busy_gateway_beyond_the_deadline(entry: Entry) -> None:
    busy = (429, {"Retry-After": "3600"})
    refuse(entry, Unavailable, lambda it: it.gateway.refusals.append(busy), "2s")


def test_an_unexpected_error_of_the_library(entry: Entry) -> None:
    def break_it(approver: FakeApprover) -> None:
        def broken() -> Profile:
            raise RuntimeError("a secret detail")

        approver.client._enforcer._directory._load_profile = broken

    denied, _ = refuse(entry, Denied, break_it)
    assert (denied.cause, str(denied)) == ("failed", "an unexpected error (RuntimeError)")


def test_a_state_that_cannot_be_read(entry: Entry) -> None:
    refuse(entry, Unavailable, lambda it: it.state.store("trust.json", '{"v":2}'))


def test_two_calls_at_once_of_which_one_is_approved(entry: Entry) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver:
            approver.when(tool="pay", args={"amount": 1}).approve()
            approver.when(tool="pay", args={"amount": 2}).reject("too much")
            calls = (entry(approver.client, amount, "20s", effects) for amount in (1, 2))
            one, two = await asyncio.gather(*calls, return_exceptions=True)
            assert one is None
            assert isinstance(two, Rejected)
            assert effects.paid == [1]

    asyncio.run(main())


@pytest.mark.parametrize(
    "amount", [b"7", float("nan"), 2**53, {1: 2}, object(), 1e300, "\ud800", "\x00"]
)
def test_arguments_that_nobody_can_be_shown(entry: Entry, amount: Any) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver:
            approver.when().approve()
            with pytest.raises(NotAskable):
                await entry(approver.client, amount, "20s", effects)
            assert effects.paid == []
            assert approver.asked == []

    asyncio.run(main())


def test_a_call_that_is_cancelled_is_withdrawn_and_never_runs(entry: Entry) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver:
            approver.when(tool="pay").wait()
            running = asyncio.ensure_future(entry(approver.client, 7, "5s", effects))
            await until(lambda: approver.asked)
            await asyncio.sleep(0.05)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            name = next(name for name, it in ENTRIES.items() if it is entry)
            # A durable request goes on; a thread cannot be cancelled from outside.
            if name in ("wrapped", "asked"):
                assert approver.asked[0].state == "withdrawn"
            approver.asked[0].approve()
            await asyncio.sleep(0.3)
            assert effects.paid == ([7] if name == "threaded" else [])

    asyncio.run(main())


def test_an_artifact_that_is_too_large(entry: Entry) -> None:
    async def main() -> None:
        effects = Effects()
        with FakeApprover() as approver:
            large: Any = "x" * 1_700_000
            with pytest.raises(NotAskable, match=r"1\.5 MiB"):
                await entry(approver.client, large, "20s", effects)
            assert effects.paid == []

    asyncio.run(main())
