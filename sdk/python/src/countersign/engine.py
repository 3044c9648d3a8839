"""The enforcer behind the clients: prepares requests, and takes nothing but accepted approvals."""

import asyncio
import json
import logging
import os
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256

from .approval import Approval
from .call import Call, Content, Subject
from .devices import DeviceDirectory
from .durations import Deadline, wall_now
from .e2e.outcome import CHANGED
from .e2e.text import visible
from .errors import (
    AlreadyUsed,
    Changed,
    Denied,
    Expired,
    KeyReused,
    NotPaired,
    ProfileError,
    Unavailable,
)
from .exchange import DeliveredDecision, EnforcerIdentity, Exchange, denial_of
from .gateway import GatewayClient, GatewayError, GatewayLocation, TransportFactory
from .permits import MAX_WAITS, SetPermits, permit
from .profile import Profile
from .request import PreparedRequest, RequestOptions, Submission, prepare
from .set_request import prepare_set
from .state import State, StateJournal, UseJournal, read_members
from .tracing import OperationSpan, operation

LOG = logging.getLogger("countersign")


@dataclass(frozen=True)
class LoopResources:
    """Connections and permits, which belong to one event loop."""

    gateway: GatewayClient
    waits: asyncio.Semaphore


class Enforcer:
    def __init__(
        self,
        load_profile: Callable[[], Profile],
        state: State,
        journal: UseJournal | None,
        transport: TransportFactory | None,
    ) -> None:
        profile = load_profile()
        self.identity = EnforcerIdentity(profile.enforcer_id, profile.tenant, profile.keys)
        self._location = GatewayLocation(
            profile.urls, profile.ca, profile.allow_http, profile.api_key
        )
        # Refuses a wrong address now, not at the first call.
        self._location.nodes()
        self._directory = DeviceDirectory(load_profile, state, profile.enforcer_id, profile.tenant)
        self._directory.records()
        self._state = state
        self._journal = journal or StateJournal(state)
        self._transport = transport
        self._process = os.getpid()
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopResources] = (
            weakref.WeakKeyDictionary()
        )
        self._withdrawals: set[asyncio.Task[None]] = set()

    def check_process(self) -> None:
        if os.getpid() != self._process:
            raise Denied("this client was made before a fork; make one in each process")

    def _resources(self) -> LoopResources:
        self.check_process()
        loop = asyncio.get_running_loop()
        resources = self._loops.get(loop)
        if resources is None:
            transport = None if self._transport is None else self._transport()
            gateway = GatewayClient(self._location, transport)
            resources = LoopResources(gateway, asyncio.Semaphore(MAX_WAITS))
            self._loops[loop] = resources
        return resources

    async def close(self) -> None:
        resources = self._loops.pop(asyncio.get_running_loop(), None)
        if resources is not None:
            await resources.gateway.close()

    async def ask(
        self,
        subject: Subject,
        options: RequestOptions,
        timeout: float,
        check: Callable[[], None] = lambda: None,
    ) -> Approval:
        """`check` raises `Changed` if the call is not the one any more that was asked about."""
        deadline = Deadline.after(timeout)
        async with _denying("ask", subject.tool) as span:
            resources = self._resources()
            if options.several is not None:
                return await self._ask_several(subject, options, deadline, resources, check, span)
            async with permit(resources.waits, deadline):
                return await self._ask(subject, options, deadline, resources.gateway, check, span)

    async def _ask(
        self,
        subject: Subject,
        options: RequestOptions,
        deadline: Deadline,
        gateway: GatewayClient,
        check: Callable[[], None],
        span: OperationSpan,
    ) -> Approval:
        request, submission = await self._prepare(subject, options, deadline, gateway)
        exchange = self._exchange(request, gateway, deadline)
        try:
            await exchange.submit(submission)
            _log("asked", request, span)
            delivered = None
            while delivered is None:
                delivered = await exchange.wait(deadline.left())
            await self._take_once(request)
            await _check_before_running(exchange, delivered, check)
            await exchange.acknowledge(delivered.message_id, delivered.digest)
        except Denied:
            raise
        except BaseException:
            await self._shielded(exchange.withdraw("the caller no longer waits"))
            raise
        _check_end(delivered.approval, deadline)
        _log("decided", request, span, delivered.approval.approver)
        return delivered.approval

    async def _ask_several(
        self,
        subject: Subject,
        options: RequestOptions,
        deadline: Deadline,
        resources: LoopResources,
        check: Callable[[], None],
        span: OperationSpan,
    ) -> Approval:
        if options.several is None:
            raise Denied("there is no rule")
        asking = await prepare_set(
            subject,
            options,
            options.several,
            deadline,
            identity=self.identity,
            directory=self._directory,
            gateway=resources.gateway,
            journal=self._journal,
        )
        for part in asking.parts:
            _log("asked", part.exchange.request, span)
        try:
            approval = await asking.decision(SetPermits(resources.waits), check)
        except BaseException:
            await self._shielded(asking.give_up())
            raise
        _check_end(approval, deadline)
        for part in asking.parts:
            if part.is_approved:
                _log("decided", part.exchange.request, span, part.seat)
        return approval

    async def submit(
        self, subject: Subject, options: RequestOptions, timeout: float, key: str | None
    ) -> PreparedRequest:
        deadline = Deadline.after(timeout)
        async with _denying("submit", subject.tool) as span:
            gateway = self._resources().gateway
            stored = None if key is None else await self._stored(key, subject, options)
            if stored is None:
                stored = await self._prepare(subject, options, deadline, gateway)
                if key is not None:
                    stored = await self._keep(key, subject, options, *stored)
            request, submission = stored
            exchange = self._exchange(request, gateway, request.deadline())
            await exchange.submit(submission)
            _log("asked", request, span)
            return request

    async def outcome(self, request: PreparedRequest, time_left: float) -> DeliveredDecision | None:
        """The approval, if there is one by then. A denial raises."""
        async with _denying("outcome", request.tool) as span:
            span.note("request_id", request.id)
            resources = self._resources()
            deadline = request.deadline()
            exchange = self._exchange(request, resources.gateway, deadline)
            async with permit(resources.waits, deadline):
                delivered = await exchange.wait(time_left)
            if delivered is not None:
                _log("decided", request, span, delivered.approval.approver)
            return delivered

    async def take(
        self, request: PreparedRequest, delivered: DeliveredDecision, asked: Call | Content
    ) -> None:
        """The steps before an approved call may run. Nothing runs twice."""
        async with _denying("use", request.tool) as span:
            span.note("request_id", request.id)
            gateway = self._resources().gateway
            exchange = self._exchange(request, gateway, request.deadline())
            # Nothing is signed about it: the unchanged call may still run.
            request.check(asked)
            # A device that was revoked since does not count any more.
            await exchange.judge_again(delivered)
            _check_end(delivered.approval, exchange.deadline)
            await self._take_once(request)
            await _check_before_running(exchange, delivered, lambda: request.check(asked))
            await exchange.acknowledge(delivered.message_id, delivered.digest)
            _check_end(delivered.approval, exchange.deadline)
            # Once more: the caller's objects could change during each of these steps.
            request.check(asked)

    async def _take_once(self, request: PreparedRequest) -> None:
        # Nothing but True: a journal that forgets to return something has not taken it.
        if (await self._journal.take(request.id)) is not True:
            raise AlreadyUsed(request.id)

    async def withdraw(self, request: PreparedRequest, reason: str) -> None:
        async with _denying("withdraw", request.tool) as span:
            span.note("request_id", request.id)
            gateway = self._resources().gateway
            # Before the gateway is told: it could deliver an approval all the same.
            await self._journal.take(request.id)
            await self._exchange(request, gateway, request.deadline()).withdraw(reason)

    async def _prepare(
        self,
        subject: Subject,
        options: RequestOptions,
        deadline: Deadline,
        gateway: GatewayClient,
    ) -> tuple[PreparedRequest, Submission]:
        # One decision settles this request. It must not be taken for several.
        if options.several is not None:
            raise Denied("a durable request cannot ask several people")
        records = self._directory.records()
        asked = [it.id for it in records if options.approver in (None, it.id)]
        if not asked:
            raise NotPaired
        # Read again however new the copy is: a device that was just added opens it too.
        devices = await self._directory.devices_of(asked, gateway, deadline, again=True)
        identity = self.identity
        request = prepare(
            subject,
            options,
            devices,
            deadline,
            enforcer_id=identity.id,
            tenant=identity.tenant,
            random=identity.random,
        )
        return request, self._exchange(request, gateway, deadline).sealed(devices)

    def _exchange(
        self, request: PreparedRequest, gateway: GatewayClient, deadline: Deadline
    ) -> Exchange:
        return Exchange(request, self.identity, self._directory, gateway, deadline, self._journal)

    async def _shielded(self, withdrawal: Coroutine[object, object, None]) -> None:
        """Withdraws even if this task is cancelled once more meanwhile."""
        task = asyncio.ensure_future(withdrawal)
        self._withdrawals.add(task)
        task.add_done_callback(self._withdrawals.discard)
        await asyncio.shield(task)

    async def _stored(
        self, key: str, subject: Subject, options: RequestOptions
    ) -> tuple[PreparedRequest, Submission] | None:
        name = _key_name(key)
        text = await asyncio.to_thread(self._state.load, name)
        if text is None:
            return None
        reader = read_members("the stored submission", text)
        recipients = frozenset(str(device) for device in reader.array("recipients"))
        submission = Submission(reader.text("envelope"), recipients)
        identity = self.identity
        text = reader.text("request")
        request = PreparedRequest.parse(text, identity.keys, identity.id, identity.tenant)
        reader.finish()
        if not request.is_about(subject) or not request.has_options(options):
            raise KeyReused
        return request, submission

    async def _keep(
        self,
        key: str,
        subject: Subject,
        options: RequestOptions,
        request: PreparedRequest,
        submission: Submission,
    ) -> tuple[PreparedRequest, Submission]:
        """Keeps a submission before it is sent. If another process was faster, returns its own."""
        members = {
            "v": 1,
            "request": request.to_json(self.identity.keys),
            "envelope": submission.envelope,
            "recipients": sorted(submission.recipients),
        }
        text = json.dumps(members)
        is_first = await asyncio.to_thread(self._state.create, _key_name(key), text)
        if is_first:
            return request, submission
        stored = await self._stored(key, subject, options)
        if stored is None:
            raise ProfileError("the stored submission has disappeared")
        return stored


async def _check_before_running(
    exchange: Exchange, delivered: DeliveredDecision, check: Callable[[], None]
) -> None:
    """Tells the approver if the call is not the one that was approved."""
    try:
        check()
    except Changed:
        await exchange.acknowledge(delivered.message_id, delivered.digest, CHANGED)
        raise


def _key_name(key: str) -> str:
    return f"requests/{sha256(key.encode()).hexdigest()}.json"


def _check_end(approval: Approval, deadline: Deadline) -> None:
    if deadline.left() == 0 or approval.expires_at <= wall_now():
        raise Expired(approval.request_id)


@asynccontextmanager
async def _denying(name: str, tool: str | None) -> AsyncGenerator[OperationSpan]:
    """Turns every error into a denial, and logs it without arguments or reasons."""
    try:
        with operation(name, tool) as span:
            try:
                yield span
            except Denied:
                raise
            except Exception as error:
                raise _denial(error) from error
    except Denied as denied:
        _log_denied(denied, tool)
        raise
    except Exception as error:
        # Of the tracing itself.
        raise _denial(error) from error


def _denial(error: Exception) -> Denied:
    if isinstance(error, GatewayError):
        return denial_of(error, None)
    if isinstance(error, ProfileError):
        return Unavailable(str(error))
    return Denied(f"an unexpected error ({type(error).__name__})")


def _log(
    event: str, request: PreparedRequest, span: OperationSpan, approver: str | None = None
) -> None:
    span.note("request_id", request.id)
    span.note("approver", approver)
    who = visible(approver or ", ".join(request.asked))
    LOG.info("%s: request %s, tool %s, approver %s", event, request.id, _shown(request.tool), who)


def _log_denied(denied: Denied, tool: str | None) -> None:
    if denied._is_logged:
        return
    denied._is_logged = True
    about = (denied.request_id or "-", _shown(tool), denied.cause)
    LOG.warning("denied: request %s, tool %s, cause %s: %s", *about, denied)


def _shown(tool: str | None) -> str:
    return "-" if tool is None else visible(tool)[:200]
