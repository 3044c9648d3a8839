"""Preparing a set: who is asked, and an artifact for each of them."""

from .approval_set import ApprovalSet
from .call import Subject
from .devices import AskedDevices, DeviceDirectory
from .durations import Deadline
from .e2e.encoding import encode
from .e2e.rule import ApprovalRule
from .exchange import EnforcerIdentity, Exchange
from .gateway import GatewayClient
from .request import RequestOptions, prepare
from .rule_options import SeveralApprovals
from .set_count import check_people
from .set_part import SetPart
from .state import UseJournal


async def prepare_set(
    subject: Subject,
    options: RequestOptions,
    several: SeveralApprovals,
    deadline: Deadline,
    *,
    identity: EnforcerIdentity,
    directory: DeviceDirectory,
    gateway: GatewayClient,
    journal: UseJournal,
) -> ApprovalSet:
    """A request for each person. Denies at once if too few of them can be asked."""
    paired = {record.id for record in directory.records()}
    terms = several.terms(paired)
    people = sorted(terms.people & paired)
    check_people(terms, people)
    # Read again however new the copies are: a device that was just added opens it too.
    devices = await directory.devices_of(people, gateway, deadline, again=True)
    seats = {
        trust.approver: AskedDevices((trust,), (record,))
        for trust, record in zip(devices.trusts, devices.records, strict=True)
        if trust.in_force
    }
    check_people(terms, seats)
    first, *others = sorted(seats)
    rule = ApprovalRule(identity.id, encode(identity.random(16)), first, terms)
    everyone = AskedDevices(
        tuple(seat.trusts[0] for seat in seats.values()),
        tuple(seat.records[0] for seat in seats.values()),
    )
    request = prepare(
        subject,
        options,
        everyone,
        deadline,
        enforcer_id=identity.id,
        tenant=identity.tenant,
        random=identity.random,
        rule=rule,
    )
    requests = [request, *(request.for_part(seat, identity.random) for seat in others)]
    parts: list[SetPart] = []
    for seat, part in zip([first, *others], requests, strict=True):
        exchange = Exchange(part, identity, directory, gateway, deadline, journal)
        parts.append(SetPart(seat, exchange, exchange.sealed(seats[seat])))
    return ApprovalSet(parts, rule, identity, journal)
