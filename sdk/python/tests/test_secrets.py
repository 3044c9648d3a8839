"""No key, credential, argument or reason in logs, errors, `repr` or pickles."""

import asyncio
import copy
import logging
import os
import pickle
import traceback

import pytest
from test_profile import TEXT

from countersign import (
    Approved,
    Call,
    Client,
    Denied,
    Expired,
    KeyReused,
    NotPaired,
    Rejected,
    Untrusted,
)
from countersign.e2e.encoding import encode
from countersign.e2e.keys import DecryptionKey, SignatureKey
from countersign.profile import parse_profile
from countersign.secret import SecretText
from countersign.testing import FakeApprover

ARGUMENT, REASON = "argument-in-plain", "reason-in-plain"


def test_a_whole_run_logs_events_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []

    async def main() -> None:
        with FakeApprover() as approver:
            approver.when(tool="pay\u202e").approve(REASON)
            approver.when(tool="no").reject(REASON)
            call = Call("pay\u202e", {"iban": ARGUMENT})
            approval = await approver.client.ask(call)
            shown.extend([repr(approval), repr(approval.record()), repr(call)])
            pending = await approver.client.submit(call, timeout="1h", key="k")
            outcome = await pending.outcome()
            assert isinstance(outcome, Approved)
            async with outcome.use(call):
                shown.extend([repr(pending), repr(outcome), repr(approver.client)])
            with pytest.raises(Rejected) as denied:
                await approver.client.ask(Call("no", {"iban": ARGUMENT}))
            shown.extend([repr(denied.value), str(denied.value)])
            shown.append("".join(traceback.format_exception(denied.value)))
            approver.gateway.down()
            with pytest.raises(Denied) as away:
                await approver.client.ask(call, timeout="200ms")
            shown.append("".join(traceback.format_exception(away.value)))
            secrets.append(encode(approver._keys._key.private_bytes_raw()))

    secrets = [ARGUMENT, REASON, "Bearer", "\u202e"]
    asyncio.run(main())
    text = "\n".join([*shown, *(record.getMessage() for record in caplog.records)])
    for secret in secrets:
        assert secret not in text
    events = [record.getMessage() for record in caplog.records if record.name == "countersign"]
    assert [event.partition(":")[0] for event in events] == [
        "asked",
        "decided",
        "asked",
        "decided",
        "asked",
        "denied",
        "gateway_away",
        "denied",
    ]
    assert all("request " in event and "tool " in event for event in events if event[0] != "g")


def test_secrets_are_not_shown_or_pickled() -> None:
    profile = parse_profile(TEXT)
    client = Client.from_profile_text(TEXT, state="/nonexistent")
    assert "csk_secret" not in repr(profile)
    assert encode(bytes(range(32))) not in repr(profile)
    assert "token" not in repr(profile).replace("routing_token", "")
    for secret in (
        client,
        SecretText("x"),
        DecryptionKey(bytes(32)),
        SignatureKey(bytes(32)),
        profile,
    ):
        assert "csk_secret" not in repr(secret)
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(secret)
        with pytest.raises(TypeError, match="pickled"):
            copy.deepcopy(secret)


def test_denials_are_pickled_without_reasons() -> None:
    denials = [
        Rejected("alice", REASON, "no", "id"),
        Expired("id"),
        KeyReused(),
        NotPaired(),
        Untrusted("a check", "id"),
    ]
    for denied in denials:
        pickled = pickle.dumps(denied)
        assert REASON.encode() not in pickled
        again = pickle.loads(pickled)
        assert type(again) is type(denied)
        assert (str(again), again.request_id) == (str(denied), denied.request_id)
        assert "Nothing was executed" in again.for_model()


def test_a_client_is_refused_after_a_fork() -> None:
    with FakeApprover() as approver:
        approver.when().approve()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                asyncio.run(approver.client.ask(Call("pay", {})))
            except Denied as denied:
                status = 0 if "fork" in str(denied) else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0


def test_no_option_turns_the_gate_off() -> None:
    import inspect

    from countersign import approval_required, sync

    known = {"fail_open", "auto_approve", "dry_run", "default", "bypass"}
    for function in (approval_required, sync.approval_required, Client.ask, Client.from_profile):
        assert not known & set(inspect.signature(function).parameters)
