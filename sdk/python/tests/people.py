"""Several approvers of one client, and what their devices were told."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from entries import until

from countersign import Approval, Call
from countersign.e2e.keys import verifies
from countersign.testing import AskedRequest, FakeApprover

CALL = Call("transfer", {"iban": "DE02", "amount": 500})
THREE = ("alice", "bob", "carol")


class People:
    """Paired with one client. Each waits, until a test decides for them."""

    def __init__(self, *names: str, journal: Any = None) -> None:
        first, *others = names or THREE
        self.first = FakeApprover(first, journal=journal)
        approvers = [self.first, *(self.first.add_approver(name) for name in others)]
        self.by_name = {approver.name: approver for approver in approvers}
        for approver in approvers:
            approver.when().wait()
        self.gateway = self.first.gateway
        self.client = self.first.client

    def __getitem__(self, name: str) -> FakeApprover:
        return self.by_name[name]

    def request(self, name: str) -> AskedRequest:
        return self.by_name[name].asked[-1]

    def text(self, name: str) -> str:
        """The artifact that was sealed to this person."""
        return self.request(name)._artifact.text

    async def asked(self, *names: str) -> None:
        """Waits until each of them has a request to decide."""
        asked = [self.by_name[name].asked for name in names or self.by_name]
        await until(lambda: all(it and it[-1].state == "pendingApproval" for it in asked))

    async def ask(
        self, decide: Callable[["People"], object], call: Call = CALL, **options: Any
    ) -> Approval:
        """Asks for two approvals, and decides once everyone is asked."""
        options = {"approvals": 2, "timeout": "20s", **options}
        asking = asyncio.ensure_future(self.client.ask(call, **options))
        asked = options.get("from_", ())
        try:
            await self.asked(*asked)
            decide(self)
            return await asking
        finally:
            asking.cancel()

    def effect(self, name: str) -> str | None:
        """What the enforcer has signed about a person's decision; None if nothing."""
        request = self.request(name)
        if not request.outcomes or "outcome" not in request.outcomes[0]:
            return None
        (acknowledged,) = request.outcomes
        envelope = json.loads(str(acknowledged["outcome"]))
        payload = base64.b64decode(envelope["payload"])
        signature = base64.b64decode(envelope["signatures"][0]["sig"])
        key = request._artifact.outcome_key
        head = f"DSSEv1 {len(envelope['payloadType'])} {envelope['payloadType']} {len(payload)} "
        assert key is not None
        assert verifies(key, head.encode() + payload, signature)
        statement = json.loads(payload)
        assert request.rule is not None
        assert statement["predicate"]["set"] == request.rule.set_id
        assert len(statement["subject"]) == len(statement["predicate"]["decisions"])
        named = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
        assert named[request.request_id] == request._artifact.hash
        predicate = statement["predicate"]
        return str(predicate["cause"] or predicate["outcome"])


def approve(*names: str) -> Callable[[People], None]:
    def decide(people: People) -> None:
        for name in names:
            people.request(name).approve()

    return decide
