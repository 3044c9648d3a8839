"""The profile that `countersign join` and `countersign pair` write. It is only read here."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, cast

from .e2e.bundle import DeviceBundle, read_device_id
from .e2e.encoding import decode
from .e2e.errors import Refusal
from .e2e.keys import DecryptionKey
from .e2e.text import is_id
from .e2e.times import parse_time
from .e2e.trust import DeviceTrust
from .errors import ProfileError
from .private_file import FileProblem, read_private
from .secret import SecretText

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_T = TypeVar("_T")


@dataclass(frozen=True)
class ApproverRecord:
    """An approver that this enforcer is paired with."""

    id: str
    # New with each pairing.
    routing_token: str = field(repr=False)
    checked_at: str
    # Bundles of the devices in force.
    devices: tuple[str, ...] = field(repr=False)
    # Ids of devices that were ever revoked.
    revoked: tuple[str, ...] = ()
    # By which device each was added.
    added_by: Mapping[str, str] = field(default_factory=dict[str, str])

    def trust(self, tenant: str) -> DeviceTrust:
        try:
            devices = [DeviceBundle.parse(text) for text in self.devices]
            revoked = {read_device_id(text) for text in self.revoked}
            adders = {read_device_id(id): read_device_id(by) for id, by in self.added_by.items()}
        except Refusal as error:
            raise ProfileError(f"the devices of an approver are damaged: {error}") from error
        return DeviceTrust(tenant, self.id, devices, revoked, adders)

    def merged(self, other: "ApproverRecord") -> "ApproverRecord":
        """With what another copy of this record knows. Nothing is forgotten.

        Of a copy from before the pairing was made anew, only the revocations count: its devices
        could bring back a lost one.
        """
        revoked = tuple(dict.fromkeys((*self.revoked, *other.revoked)))
        if self.routing_token != other.routing_token:
            return replace(self, revoked=revoked)
        return ApproverRecord(
            self.id,
            self.routing_token,
            _later(self.checked_at, other.checked_at),
            tuple(dict.fromkeys((*self.devices, *other.devices))),
            revoked,
            {**other.added_by, **self.added_by},
        )


def _later(one: str, other: str) -> str:
    """The later time. One that cannot be read counts as the earliest."""

    def at(text: str) -> int:
        try:
            return parse_time(text)
        except Refusal:
            return -1

    return max((one, other), key=at)


@dataclass(frozen=True)
class Profile:
    enforcer_id: str
    tenant: str
    urls: tuple[str, ...]
    ca: str | None
    allow_http: bool
    api_key: SecretText
    keys: DecryptionKey
    approvers: tuple[ApproverRecord, ...]


def profile_path(name: str | None = None) -> Path:
    """The file of a profile; of `$COUNTERSIGN_PROFILE` or `default` without a name."""
    chosen = name or os.environ.get("COUNTERSIGN_PROFILE") or "default"
    if not _NAME.match(chosen):
        raise ProfileError(
            "a profile's name consists of letters, digits, dots, dashes and underscores, "
            "and begins with a letter or digit"
        )
    directory = os.environ.get("COUNTERSIGN_PROFILES")
    if not directory:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        directory = os.path.join(base, "countersign")
    return Path(directory) / f"{chosen}.toml"


def read_profile(path: Path) -> Profile:
    try:
        text = read_private(path)
    except FileProblem as problem:
        raise ProfileError(f"the profile {path} is not used: {problem}") from problem
    if text is None:
        raise ProfileError(
            f"there is no profile {path}; "
            "join with the link that your administrator sent: countersign join LINK"
        )
    return parse_profile(text, f"the profile {path}")


def parse_profile(text: str, what: str = "the profile") -> Profile:
    try:
        root = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # The decoder's message could quote a secret.
        raise ProfileError(f"{what} is not TOML") from error.__cause__
    reader = TableReader(root, what, "")
    # The other role is not read: an enforcer has no use for an approver's keys.
    reader.table("approver")
    enforcer = reader.table("enforcer")
    reader.finish()
    if enforcer is None:
        raise ProfileError(
            f"{what} has no enforcer; "
            "join with an invitation for an enforcer: countersign join LINK"
        )
    return _read_enforcer(TableReader(enforcer, what, "enforcer."))


def _read_enforcer(enforcer: "TableReader") -> Profile:
    gateway = TableReader(enforcer.table("gateway") or {}, enforcer.what, "enforcer.gateway.")
    ca, allow_http = gateway.optional("ca", str), gateway.optional("allow_http", bool)
    key = enforcer.required("key", str)
    try:
        keys = DecryptionKey(decode("the key", key, 32))
    except Refusal:
        raise enforcer.damaged("key") from None
    # Only rules use it, and the library asks without one.
    enforcer.optional("operators", list)
    records = cast(list[object], enforcer.optional("approvers", list) or [])
    profile = Profile(
        enforcer_id=enforcer.id("id"),
        tenant=gateway.id("tenant"),
        urls=gateway.texts("urls"),
        ca=ca,
        allow_http=bool(allow_http),
        api_key=SecretText(gateway.required("api_key", str)),
        keys=keys,
        approvers=tuple(_read_approver(item, enforcer.what) for item in records),
    )
    gateway.finish()
    enforcer.finish()
    if not profile.urls:
        raise gateway.damaged("urls")
    if len({record.id for record in profile.approvers}) != len(profile.approvers):
        raise enforcer.damaged("approvers")
    for record in profile.approvers:
        record.trust(profile.tenant)
    return profile


def _read_approver(item: object, what: str) -> ApproverRecord:
    if not isinstance(item, dict):
        raise ProfileError(f"{what} is damaged: enforcer.approvers")
    reader = TableReader(cast(dict[str, object], item), what, "enforcer.approvers.")
    return read_record(reader)


def read_record(reader: "TableReader") -> ApproverRecord:
    reader.optional("paired_at", str)
    added_by = reader.table("added_by") or {}
    if not all(isinstance(by, str) for by in added_by.values()):
        raise reader.damaged("added_by")
    record = ApproverRecord(
        id=reader.id("id"),
        routing_token=reader.required("routing_token", str),
        checked_at=reader.required("checked_at", str),
        devices=reader.texts("devices"),
        revoked=reader.texts("revoked") if reader.has("revoked") else (),
        added_by=cast(dict[str, str], added_by),
    )
    reader.finish()
    return record


class TableReader:
    """Reads the members of a table, and refuses those that were not asked for."""

    def __init__(self, table: dict[str, object], what: str, path: str) -> None:
        self.members, self.what, self.path = table, what, path
        self.rest = set(table)

    def damaged(self, name: str) -> ProfileError:
        return ProfileError(f"{self.what} is damaged: {self.path}{name}")

    def has(self, name: str) -> bool:
        return name in self.members

    def optional(self, name: str, kind: type[_T]) -> _T | None:
        self.rest.discard(name)
        value = self.members.get(name)
        if value is not None and type(value) is not kind:
            raise self.damaged(name)
        return value

    def table(self, name: str) -> dict[str, object] | None:
        return cast(dict[str, object] | None, self.optional(name, dict))

    def required(self, name: str, kind: type[_T]) -> _T:
        value = self.optional(name, kind)
        if value is None:
            raise self.damaged(name)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        items = cast(list[object], self.required(name, list))
        texts = tuple(item for item in items if isinstance(item, str))
        if len(texts) != len(items):
            raise self.damaged(name)
        return texts

    def id(self, name: str) -> str:
        text = self.required(name, str)
        if not is_id(text):
            raise self.damaged(name)
        return text

    def finish(self) -> None:
        if self.rest:
            raise ProfileError(
                f"{self.what} has members that this version does not know "
                f"({self.path}{min(self.rest)}); update the library"
            )


ProfileSource = Callable[[], Profile]
