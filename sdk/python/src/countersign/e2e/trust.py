"""The devices that speak for an approver.

An enforcer starts from the devices that it pinned at pairing, follows signed statements from there,
and trusts nothing else. Revoked ids are kept for ever: an old statement brings none of them back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .bundle import DeviceBundle
from .errors import Refusal, UnknownDevice
from .statement import MAX_DEVICES, SignedStatement


@dataclass
class DeviceTrust:
    tenant: str
    approver: str
    in_force: list[DeviceBundle] = field(default_factory=list[DeviceBundle])
    revoked: set[str] = field(default_factory=set[str])
    # By which device each was added that was not pinned.
    adders: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.in_force = [device for device in self.in_force if device.id not in self.revoked]

    def device(self, device_id: str) -> DeviceBundle:
        """The device, if it is in force."""
        if device_id in self.revoked:
            raise Refusal(f"the device {device_id} is revoked")
        for device in self.in_force:
            if device.id == device_id:
                return device
        raise UnknownDevice(f"the device {device_id} is not known")

    def follow_all(self, statements: Sequence[SignedStatement]) -> None:
        """Follows a list in its order, and again while that adds devices.

        The statements of a device may stand before the one that makes it known. A statement that
        cannot be followed changes nothing, and does not stop the rest.
        """
        has_added = True
        # An id is added once at most, so this ends.
        while has_added:
            has_added = False
            for statement in statements:
                try:
                    has_added |= self.follow(statement)
                except Refusal:
                    continue

    def follow(self, signed: SignedStatement) -> bool:
        """Follows one statement. Returns whether it added a device."""
        if (signed.tenant, signed.approver) != (self.tenant, self.approver):
            raise Refusal("a statement about another approver")
        if signed.added is not None:
            return self._follow_addition(signed, signed.added)
        if signed.revoked is not None:
            self._follow_revocation(signed, signed.revoked)
        return False

    def _follow_addition(self, signed: SignedStatement, bundle: DeviceBundle) -> bool:
        if self._has(bundle):
            return False
        self._check_signer(signed)
        if not signed.is_possessed_by(bundle.signing_key):
            raise Refusal("the new device has not signed")
        if bundle.id in self.revoked:
            raise Refusal("a revoked device does not return")
        # An attacker who finds two keys with the same id must not replace one by the other.
        if any(device.id == bundle.id for device in self.in_force):
            raise Refusal("the id is that of another device")
        if len(self.in_force) >= MAX_DEVICES:
            raise Refusal(f"more than {MAX_DEVICES} devices are in force")
        self.in_force.append(bundle)
        self.adders[bundle.id] = signed.by
        return True

    def _follow_revocation(self, signed: SignedStatement, device_id: str) -> None:
        # A list is read again as a whole, and may begin with statements of devices that were
        # revoked since. A device may have revoked itself, to keep those that it has added.
        if device_id in self.revoked and signed.keeps is None:
            return
        self._check_signer(signed)
        # Also one that is not known here: it must not be added later.
        self._revoke(device_id)
        if signed.keeps is not None:
            self._revoke_added_by(device_id, signed.keeps)

    def _check_signer(self, signed: SignedStatement) -> None:
        if not signed.is_signed_by(self.device(signed.by).signing_key):
            raise Refusal("the statement's signature is wrong")

    def _revoke(self, device_id: str) -> None:
        self.in_force = [device for device in self.in_force if device.id != device_id]
        self.revoked.add(device_id)

    def _revoke_added_by(self, device_id: str, keeps: Iterable[str]) -> None:
        """Revokes what a revoked device has added, and what that has added, but for `keeps`.

        It goes on through devices that were revoked before: one may have been revoked to hide its
        additions.
        """
        kept, adders, gone = set(keeps), [device_id], set[str]()
        while adders:
            adder = adders.pop()
            for added, by in self.adders.items():
                if by == adder and added not in kept and added not in gone:
                    gone.add(added)
                    adders.append(added)
        for added in gone & {device.id for device in self.in_force}:
            self._revoke(added)

    def _has(self, bundle: DeviceBundle) -> bool:
        return any(device.has_keys_of(bundle) for device in self.in_force)
