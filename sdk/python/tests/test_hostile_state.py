"""Kept state against old answers, slow processes and other people's directories."""

import asyncio
import copy
import os
import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countersign import (
    Action,
    Call,
    KeyReused,
    NotAskable,
    ProfileError,
    Unavailable,
    approval_required,
    sync,
)
from countersign.call import Subject
from countersign.private_file import locked
from countersign.state import DirectoryState
from countersign.testing import FakeApprover

CALL = Call("transfer", {"iban": "DE02", "amount": 500})


def grow_old(lock: Path) -> None:
    long_ago = time.time() - 60
    os.utime(lock, (long_ago, long_ago))


def test_a_holder_that_lost_the_lock_stores_nothing(tmp_path: Path) -> None:
    slow, fast = DirectoryState(tmp_path), DirectoryState(tmp_path)
    lock = tmp_path / "trust.lock"
    with slow.exclusively():
        grow_old(lock)
        with fast.exclusively():
            fast.store("trust.json", "with a revocation")
        with pytest.raises(ProfileError, match="lock"):
            slow.store("trust.json", "without")
    assert fast.load("trust.json") == "with a revocation"
    with slow.exclusively():
        slow.store("trust.json", "later")
    assert not list(tmp_path.glob("*lock*"))


def test_a_holder_that_lost_the_lock_does_not_release_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "trust.lock"
    slow = locked(path)
    slow.__enter__()
    grow_old(path)
    with locked(path):
        slow.__exit__(None, None, None)
        assert path.exists()
    assert not path.exists()


def test_a_lock_that_was_taken_since_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from countersign.private_file import remove_stale_lock

    path = tmp_path / "trust.lock"
    path.touch()
    grow_old(path)
    rename = os.rename

    def another_was_faster(old: Path, new: Path) -> None:
        path.unlink()
        (tmp_path / "other").touch()
        path.touch()
        rename(old, new)

    # The number of the removed file must not be given to the new one.
    with open(path):
        monkeypatch.setattr(os, "rename", another_was_faster)
        remove_stale_lock(path)
    assert path.exists()
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    "change",
    [
        {"repo_ref": "other"},
        {"actions": [Action.approve("b", "B")]},
        {"actions": ()},
        {"approver": "alice", "actions": [Action.reject("a", "A")]},
    ],
)
def test_a_key_is_for_the_same_question(change: dict[str, Any]) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            options: dict[str, Any] = {"repo_ref": "r", "actions": [Action.approve("a", "A")]}
            options |= {"timeout": "1h", "key": "k"}
            first = await approver.client.submit(CALL, **options)
            again = await approver.client.submit(CALL, **options)
            assert again.request_id == first.request_id
            with pytest.raises(KeyReused):
                await approver.client.submit(CALL, **{**options, **change})

    asyncio.run(main())


def test_a_key_is_compared_with_the_approver_that_is_named() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            first = await approver.client.submit(CALL, timeout="1h", key="k")
            directory = approver.client._enforcer._directory
            profile = directory._load_profile()
            bob = replace(profile.approvers[0], id="bob")
            both = replace(profile, approvers=(*profile.approvers, bob))
            directory._load_profile = lambda: both
            # One approver more is no other question.
            for who in ("alice", None):
                again = await approver.client.submit(CALL, timeout="1h", key="k", approver=who)
                assert again.request_id == first.request_id
            with pytest.raises(KeyReused):
                await approver.client.submit(CALL, timeout="1h", key="k", approver="bob")

    asyncio.run(main())


def test_a_process_that_resumes_in_another_directory_has_the_same_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            first = await approver.client.submit(CALL, timeout="1h", key="k")
            monkeypatch.chdir(tmp_path)
            again = await approver.new_client().submit(CALL, timeout="1h", key="k")
            assert again.request_id == first.request_id
            (asked,) = approver.asked
            assert str(tmp_path) not in asked.repository
            # A place that is named is compared.
            with pytest.raises(KeyReused):
                await approver.client.submit(CALL, timeout="1h", key="k", repo_ref="elsewhere")

    asyncio.run(main())


def test_a_late_answer_for_an_earlier_pairing_is_dropped() -> None:
    with FakeApprover() as approver:
        directory = approver.client._enforcer._directory
        profile = directory._load_profile()
        (old,) = profile.approvers
        new = replace(old, routing_token="new", devices=("of the new pairing",))
        directory._load_profile = lambda: replace(profile, approvers=(new,))
        directory._remember([new])
        kept = approver.state.load("trust.json")
        directory._remember([replace(old, revoked=("x",))])
        assert approver.state.load("trust.json") == kept


def test_a_wrapper_offers_one_way_to_approve() -> None:
    with FakeApprover() as approver:
        actions = [Action.approve("staging", "Staging"), Action.approve("live", "Live")]

        async def deploy() -> None: ...

        def deploy_now() -> None: ...

        with pytest.raises(TypeError, match="actions"):
            approval_required(approver.client, actions=actions)(deploy)
        with pytest.raises(TypeError, match="actions"):
            sync.approval_required(sync.Client(approver.client), actions=actions)(deploy_now)
        approval_required(approver.client, actions=actions[:1])(deploy)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o720, 0o702])
def test_a_directory_that_others_can_write_in(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    state = DirectoryState(tmp_path)
    with pytest.raises(ProfileError, match="others can write"):
        state.store("trust.json", "{}")
    with pytest.raises(ProfileError, match="others can write"):
        state.create("trust.json", "{}")
    with pytest.raises(ProfileError, match="others can write"), state.exclusively():
        raise AssertionError("it is locked")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
def test_a_directory_of_another_user(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, -1)
    with pytest.raises(ProfileError, match="another user"):
        DirectoryState(tmp_path).create("x", "")


def test_approvals_and_records_are_not_pickled() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve("reason")
            approval = await approver.client.ask(CALL)
            for secret in (approval, approval.record()):
                with pytest.raises(TypeError, match="pickled"):
                    pickle.dumps(secret)
                with pytest.raises(TypeError, match="pickled"):
                    copy.deepcopy(secret)

    asyncio.run(main())


def test_a_record_replaces_a_link(tmp_path: Path) -> None:
    with FakeApprover() as approver:
        approver.when().approve()
        record = asyncio.run(approver.client.ask(CALL)).record()
    target, link = tmp_path / "target", tmp_path / "decision.json"
    target.write_text("precious")
    link.symlink_to(target)
    record.save(link)
    assert target.read_text() == "precious"
    assert not link.is_symlink()
    assert link.stat().st_mode & 0o777 == 0o600
    # Also where others have files, such as /tmp.
    tmp_path.chmod(0o1777)
    record.save(link)


def test_names_of_arguments_are_visible_in_denials() -> None:
    with pytest.raises(NotAskable) as refused:
        Subject.of(Call("pay", {"a\u202eb": b"x"}))
    assert "\u202e" not in str(refused.value) + refused.value.for_model()
    assert "a\\u{202e}b" in str(refused.value)


def test_too_many_statements() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()
            approver.add_device("laptop")
            (statement,) = approver.gateway.statements
            approver.gateway.statements = [statement] * 512
            await approver.client.ask(CALL)
            approver.gateway.statements.append(statement)
            with pytest.raises(Unavailable, match="512"):
                await approver.client.ask(CALL)

    asyncio.run(main())
