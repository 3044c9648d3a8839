"""Profiles: who may read them, and what they may contain."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from countersign import Call, Client, Denied, NotPaired, ProfileError
from countersign.e2e.encoding import encode
from countersign.profile import parse_profile, profile_path
from countersign.testing import FakeApprover

DEVICE = FakeApprover().device.bundle.to_text()
TEXT = f"""
[enforcer]
id = "build-bot"
key = "{encode(bytes(range(32)))}"

[enforcer.gateway]
urls = ["https://gateway.example.org"]
tenant = "acme"
api_key = "csk_secret"

[[enforcer.approvers]]
id = "alice"
paired_at = "2026-02-21T12:00:00Z"
routing_token = "token"
checked_at = "2026-02-21T12:00:00Z"
devices = ["{DEVICE}"]
"""


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COUNTERSIGN_PROFILES", str(tmp_path))
    monkeypatch.delenv("COUNTERSIGN_PROFILE", raising=False)
    return tmp_path


def write(directory: Path, text: str = TEXT, mode: int = 0o600, name: str = "default") -> Path:
    path = directory / f"{name}.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_profile_is_opened(profiles: Path) -> None:
    write(profiles)
    assert Client.from_profile().enforcer_id == "build-bot"
    write(profiles, TEXT.replace('id = "build-bot"', 'id = "build-bot"\noperators = ["dave"]', 1))
    assert Client.from_profile().enforcer_id == "build-bot"


def test_names(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(profiles, name="other")
    monkeypatch.setenv("COUNTERSIGN_PROFILE", "other")
    assert Client.from_profile().enforcer_id == "build-bot"
    for name in ("../other", ".hidden", "a/b", "", "a" * 65, "a\n"):
        monkeypatch.setenv("COUNTERSIGN_PROFILE", "x/y")
        with pytest.raises(ProfileError):
            profile_path(name)
    monkeypatch.delenv("COUNTERSIGN_PROFILES")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/tmp/xdg")
    assert profile_path("a") == Path("/tmp/xdg/countersign/a.toml")


def test_no_profile(profiles: Path) -> None:
    with pytest.raises(ProfileError, match="there is no profile"):
        Client.from_profile()


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o601, 0o620])
def test_a_profile_that_others_can_use(profiles: Path, mode: int) -> None:
    write(profiles, mode=mode)
    with pytest.raises(ProfileError, match="others can read it"):
        Client.from_profile()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_profile_of_another_user(profiles: Path) -> None:
    os.chown(write(profiles), 12345, -1)
    with pytest.raises(ProfileError, match="another user"):
        Client.from_profile()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('id = "build-bot"', 'id = "build-bot"\nfuture = 1'),
        ('id = "build-bot"', 'id = "build-bot"\noperators = "dave"'),
        ('tenant = "acme"', 'tenant = "acme"\nmode = "open"'),
        ('paired_at = "', 'fail_open = true\npaired_at = "'),
        ('id = "build-bot"', ""),
        ('tenant = "acme"', "tenant = 7"),
        ('urls = ["https://gateway.example.org"]', "urls = []"),
        ('urls = ["https://gateway.example.org"]', 'urls = "https://gateway.example.org"'),
        ('"https://gateway.example.org"', '"http://gateway.example.org"'),
        ('"https://gateway.example.org"', '"https://user@gateway.example.org"'),
        ('"https://gateway.example.org"', '"https://gateway.example.org/?a=b"'),
        ('"https://gateway.example.org"', '"ftp://gateway.example.org"'),
        ('"https://gateway.example.org"', '"gateway.example.org"'),
        ('key = "', 'key = "A'),
        (f'devices = ["{DEVICE}"]', 'devices = ["nonsense"]'),
        ("[enforcer]", "[approver]"),
        ("[enforcer]", "version = 2\n[enforcer]"),
        ("[enforcer]", "[enforcer"),
    ],
)
def test_a_damaged_profile(profiles: Path, old: str, new: str) -> None:
    assert old in TEXT
    write(profiles, TEXT.replace(old, new, 1))
    with pytest.raises(ProfileError) as refused:
        Client.from_profile()
    assert "csk_secret" not in repr(refused.value)
    assert encode(bytes(range(32))) not in repr(refused.value)


def test_an_approver_in_the_same_file_is_carried_over_untouched(profiles: Path) -> None:
    text = TEXT + '\n[approver]\nid = "me"\nsigning_key = "x"\n'
    path = write(profiles, text)
    Client.from_profile()
    assert path.read_text() == text


def test_plain_http_beyond_this_machine_needs_a_word(profiles: Path) -> None:
    plain = TEXT.replace("https://", "http://")
    with pytest.raises(ProfileError, match="plain http"):
        Client.from_profile_text(plain, state=profiles)
    allowed = plain.replace('tenant = "acme"', 'tenant = "acme"\nallow_http = true')
    assert Client.from_profile_text(allowed, state=profiles).enforcer_id == "build-bot"
    local = plain.replace("gateway.example.org", "127.0.0.1:8080")
    assert Client.from_profile_text(local, state=profiles).enforcer_id == "build-bot"


def test_a_text_needs_a_state(profiles: Path) -> None:
    with pytest.raises(TypeError):
        Client.from_profile_text(TEXT)  # type: ignore[call-arg]


def test_nobody_is_paired(profiles: Path) -> None:
    text = TEXT.partition("[[enforcer.approvers]]")[0]
    client = Client.from_profile_text(text, state=profiles)
    with pytest.raises(NotPaired):
        asyncio.run(client.ask(Call("pay", {})))


def test_a_profile_that_is_damaged_while_the_program_runs(profiles: Path) -> None:
    path = write(profiles)
    client = Client.from_profile()
    path.write_text("[enforcer")
    with pytest.raises(Denied, match="nobody could be asked"):
        asyncio.run(client.ask(Call("pay", {})))
    path.unlink()
    with pytest.raises(Denied, match="there is no profile"):
        asyncio.run(client.ask(Call("pay", {})))


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"v":2,"approvers":[]}', '{"v":1}', '{"v":1,"approvers":[1]}']
)
def test_a_damaged_file_of_devices(profiles: Path, text: str) -> None:
    write(profiles)
    trust = profiles / "default.trust.json"
    trust.write_text(text)
    trust.chmod(0o600)
    with pytest.raises(ProfileError, match=r"trust\.json"):
        Client.from_profile()


def test_a_file_of_devices_that_others_can_read(profiles: Path) -> None:
    write(profiles)
    trust = profiles / "default.trust.json"
    trust.write_text('{"v":1,"approvers":[]}')
    trust.chmod(0o644)
    with pytest.raises(ProfileError, match="others can read it"):
        Client.from_profile()


def test_of_an_earlier_pairing_only_revocations_count() -> None:
    (record,) = parse_profile(TEXT).approvers
    (other,) = parse_profile(TEXT.replace('"token"', '"older"')).approvers
    stolen = FakeApprover().device.bundle.to_text()
    revoked = ("AAAAAAAAAAAAAAAAAAAAAA",)
    earlier = type(other)(other.id, "older", "", (stolen,), revoked, {"A": "B"})
    assert record.merged(earlier) == replace(record, revoked=revoked)
    same = type(other)(other.id, "token", "", (), ("AAAAAAAAAAAAAAAAAAAAAA",))
    assert record.merged(same).revoked == same.revoked
    assert record.merged(same).devices == record.devices
