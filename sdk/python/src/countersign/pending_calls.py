"""Calls whose caller cannot wait as long as a person: it gets a request id, and comes back."""

import asyncio
import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

from .approval import Approval
from .call import Call
from .durations import Deadline, timeout_seconds
from .errors import AlreadyUsed, Denied
from .exchange import ACK_TIMEOUT, LOG
from .pending import Approved, Pending, StillWaiting
from .tool_gate import ToolGate, _check_awaited, _denying


class NotDecidedYet(Denied):
    """The call has not run, and still can: the caller is told how."""

    cause = "waiting"
    # It is no denial.
    _is_logged = True

    def for_model(self) -> str:
        return (
            "This call waits for an approval. Nothing was executed yet. Do not repeat this call: "
            f'call result_of with request_id "{self.request_id}" to wait on and to get its result.'
        )


class UnknownCall(AlreadyUsed):
    """No call waits under this id: it has ended, by its execution or otherwise."""

    cause = "ended"

    def _why(self) -> str:
        return "no call waits under this id"


@dataclass(frozen=True)
class PendingCall:
    """A submitted call. It is no approval: the signed decision is checked when it is used."""

    pending: Pending
    name: str
    arguments: dict[str, object] = field(repr=False)
    deadline: Deadline


class PendingCalls:
    """The calls of one process that wait. Each attempt to get one approved takes up to `wait`."""

    def __init__(self, gate: ToolGate, wait: float) -> None:
        self._gate = gate
        self._wait = wait
        self._calls: dict[str, PendingCall] = {}
        self._withdrawals: set[asyncio.Task[None]] = set()

    def find(self, request_id: str) -> PendingCall | None:
        self._forget_ended()
        return self._calls.get(request_id)

    def _forget_ended(self) -> None:
        self._calls = {id: call for id, call in self._calls.items() if call.deadline.left() > 0}

    async def ask(self, name: str, args: Mapping[str, object]) -> dict[str, object]:
        """Returns the arguments to run the call with, or raises `NotDecidedYet`."""
        async with _denying(name):
            gate, arguments = self._gate, copy.deepcopy(dict(args))
            deadline = Deadline.after(timeout_seconds(gate.timeout))
            submission = asyncio.ensure_future(
                gate.client.submit(
                    Call(name, arguments),
                    timeout=gate.timeout,
                    approver=gate.approver,
                    repo_ref=gate.repo_ref,
                    metadata={"framework": gate.framework},
                )
            )
            try:
                pending = await asyncio.shield(submission)
                if type(pending) is not Pending:
                    raise Denied("there is no request")
                call = PendingCall(pending, name, arguments, deadline)
                return await self.resume(call, name, arguments)
            except asyncio.CancelledError:
                # Nobody else knows its id. A second cancellation does not stop the withdrawal.
                task = asyncio.ensure_future(_withdraw(submission))
                self._withdrawals.add(task)
                task.add_done_callback(self._withdrawals.discard)
                await asyncio.wait({task}, timeout=ACK_TIMEOUT)
                raise

    async def resume(
        self, call: PendingCall, name: str, args: Mapping[str, object]
    ) -> dict[str, object]:
        """The same for a call that has waited before. It is approved once."""
        async with _denying(name):
            request_id, arguments = call.pending.request_id, copy.deepcopy(dict(args))
            outcome = await call.pending.outcome(wait=self._wait)
            if isinstance(outcome, StillWaiting):
                self._forget_ended()
                self._calls[request_id] = call
                raise NotDecidedYet("nobody has decided yet", request_id)
            self._calls.pop(request_id, None)
            if isinstance(outcome, Denied):
                raise outcome
            if type(outcome) is not Approved:
                raise Denied("there is no approval")
            async with outcome.use(Call(name, arguments)) as approval:
                if type(approval) is not Approval:
                    raise Denied("there is no approval")
                _check_awaited()
                return arguments


async def _withdraw(submission: "asyncio.Future[Pending]") -> None:
    """After its submission, of which the caller has not seen the end."""
    try:
        await (await submission).withdraw()
    except Exception as error:
        # The caller is cancelled, not denied.
        LOG.debug("a cancelled call was not withdrawn: %s", type(error).__name__)
