"""The devices that may decide: those pinned at pairing, and those that they added since.

The gateway only carries the statements. What was learned is kept in the state, and never forgotten.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import cast

from .durations import Deadline, wall_now
from .e2e.errors import Refusal
from .e2e.statement import read_statements
from .e2e.times import SECOND, format_time, parse_time
from .e2e.trust import DeviceTrust
from .errors import NotPaired, ProfileError
from .gateway import GatewayCall, GatewayClient, GatewayError, UnexpectedAnswer, path
from .profile import ApproverRecord, Profile, TableReader, read_record
from .state import State, read_members

# A list of devices is read again when it is older.
LIST_LIFETIME = 60 * SECOND
TRUST_FILE = "trust.json"


@dataclass(frozen=True)
class AskedDevices:
    """The devices in force of those who are asked."""

    trusts: tuple[DeviceTrust, ...]
    records: tuple[ApproverRecord, ...]

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(device.id for trust in self.trusts for device in trust.in_force)


class DeviceDirectory:
    """Reads profile and state together. Both may be changed by other processes meanwhile."""

    def __init__(
        self, load_profile: Callable[[], Profile], state: State, enforcer_id: str, tenant: str
    ) -> None:
        self._load_profile = load_profile
        self._state = state
        self._owner = (enforcer_id, tenant)

    def _profile(self) -> Profile:
        """The profile as it is now. Approvers of another enforcer do not decide for this one."""
        profile = self._load_profile()
        if (profile.enforcer_id, profile.tenant) != self._owner:
            raise ProfileError("the profile is another enforcer's now; start the program again")
        return profile

    def records(self) -> list[ApproverRecord]:
        profile = self._profile()
        learned = {record.id: record for record in self._learned()}
        return [
            record.merged(learned[record.id]) if record.id in learned else record
            for record in profile.approvers
        ]

    async def devices_of(
        self, asked: Sequence[str], gateway: GatewayClient, deadline: Deadline, *, again: bool
    ) -> AskedDevices:
        """Reads the statements if the copy is old, or if `again`."""
        tenant = self._profile().tenant
        records = [record for record in self.records() if record.id in asked]
        followed: list[ApproverRecord] = []
        unknown: set[str] = set()
        for record in records:
            if not again and _is_fresh(record):
                continue
            try:
                followed.append(await self._follow(record, tenant, gateway, deadline))
            except GatewayError as error:
                # The gateway no longer has this pairing. Others may still be asked.
                if error.status != 404:
                    raise
                unknown.add(record.id)
        if followed:
            await asyncio.to_thread(self._remember, followed)
        # As it is now: another process may have learned more than the gateway has shown here.
        current = tuple(
            record for record in self.records() if record.id in asked and record.id not in unknown
        )
        if not current:
            raise NotPaired(
                "the pairing has ended" if unknown or asked else "no approver is paired"
            )
        return AskedDevices(tuple(record.trust(tenant) for record in current), current)

    async def _follow(
        self, record: ApproverRecord, tenant: str, gateway: GatewayClient, deadline: Deadline
    ) -> ApproverRecord:
        call = GatewayCall("GET", path("v1", "approvers", record.id, "devices"))
        answer = await gateway.expect(call, (200,), deadline)
        statements = answer.members().get("statements")
        if not isinstance(statements, list):
            raise UnexpectedAnswer("the gateway's answer has no statements")
        trust = record.trust(tenant)
        try:
            trust.follow_all(read_statements(statements))
        except Refusal as error:
            raise UnexpectedAnswer(f"the gateway's answer has {error}") from error
        return replace(
            record,
            checked_at=format_time(wall_now()),
            devices=tuple(device.to_text() for device in trust.in_force),
            revoked=tuple(sorted(trust.revoked)),
            added_by=dict(trust.adders),
        )

    def _learned(self) -> list[ApproverRecord]:
        text = self._state.load(TRUST_FILE)
        if text is None:
            return []
        reader = read_members(TRUST_FILE, text)
        try:
            items = reader.array("approvers")
            reader.finish()
        except Refusal as error:
            raise ProfileError(f"{TRUST_FILE} is damaged: {error}") from error
        records: list[ApproverRecord] = []
        for item in items:
            if not isinstance(item, dict):
                raise ProfileError(f"{TRUST_FILE} is damaged")
            table = cast(dict[str, object], item)
            records.append(read_record(TableReader(table, TRUST_FILE, "approvers.")))
        return records

    def _remember(self, followed: Sequence[ApproverRecord]) -> None:
        """Merges into the state, under its lock, what the statements have led to."""
        if not self._has_news(followed):
            return
        with self._state.exclusively():
            kept = {record.id: record for record in self._learned()}
            # Read under the lock: the approver may have been paired anew since it was asked.
            tokens = {record.id: record.routing_token for record in self._profile().approvers}
            for record in followed:
                if tokens.get(record.id) != record.routing_token:
                    continue
                known = kept.get(record.id)
                kept[record.id] = record if known is None else record.merged(known)
            members = {"v": 1, "approvers": [asdict(record) for record in kept.values()]}
            self._state.store(TRUST_FILE, json.dumps(members, indent=1))

    def _has_news(self, followed: Sequence[ApproverRecord]) -> bool:
        known = {record.id: record for record in self.records()}
        for record in followed:
            other = known.get(record.id)
            if other is None or not _is_fresh(other):
                return True
            if not set(record.devices) <= set(other.devices):
                return True
            if not set(record.revoked) <= set(other.revoked):
                return True
            if not record.added_by.keys() <= other.added_by.keys():
                return True
        return False


def _is_fresh(record: ApproverRecord) -> bool:
    try:
        age = wall_now() - parse_time(record.checked_at)
    except Refusal:
        return False
    # A time in the future means that the clock was set back.
    return 0 <= age < LIST_LIFETIME
