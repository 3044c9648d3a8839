"""Every refusal, through every adapter: the tool has no effect, and the model is told so."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from entries import until
from expected_gaps import EXPECTED_GAPS
from harness import (
    AdapterDriver,
    RunReport,
    Scene,
    StillSuspended,
    World,
    load_drivers,
    look,
    pay,
)

from countersign import Client, Denied, ProfileError
from countersign.devices import DeviceDirectory
from countersign.pending import Pending
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters

DRIVERS = load_drivers()
COVERED: set[str] = set()
# Some frameworks start a program of their own first.
ASK_TIMEOUT = 20.0

Run: TypeAlias = Callable[[Scene], Awaitable[RunReport]]


def refusal(case: str) -> pytest.MarkDecorator:
    """Over the drivers that do not declare a gap."""
    COVERED.add(case)
    drivers = [driver for driver in DRIVERS if case not in driver.gaps]
    return pytest.mark.parametrize("driver", drivers, ids=lambda driver: driver.name)


def variants(case: str, attribute: str) -> pytest.MarkDecorator:
    """Over the drivers, and their entries or nestings."""
    COVERED.add(case)
    found = [
        pytest.param(driver, variant, id=f"{driver.name}-{variant}")
        for driver in DRIVERS
        if case not in driver.gaps
        for variant in getattr(driver, attribute)
    ]
    return pytest.mark.parametrize(("driver", "variant"), found)


def everywhere() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)


def play(
    prepare: Callable[[Scene], object], run: Run, timeout: str = "20s"
) -> tuple[RunReport, Scene]:
    """Runs one scene. All calls of `pay` are approved, unless `prepare` says otherwise."""

    async def main() -> tuple[RunReport, Scene]:
        with FakeApprover() as approver:
            approver.when(tool="pay").approve()
            scene = Scene(approver, World(), timeout)
            prepare(scene)
            return await run(scene), scene

    return asyncio.run(main())


def refuse(
    prepare: Callable[[Scene], object],
    run: Run,
    timeout: str = "20s",
    also: type[Exception] = Denied,
    told: str = "Nothing was executed",
) -> tuple[str, Scene]:
    """Asserts that nothing ran. Returns the text that the model got, empty if the run ended."""
    report, scene = play(prepare, run, timeout)
    assert scene.world.ran == []
    if report.error is not None:
        assert any(isinstance(error, Denied | also) for error in chain(report.error)), report.error
        return "", scene
    assert told in report.texts[0]
    assert "Do not repeat" in report.texts[0]
    return report.texts[0], scene


def chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def one_call(driver: AdapterDriver, entry: str = "async", amount: Any = 7) -> Run:
    return lambda scene: driver.run(scene, [pay(amount)], entry)


def rejecting(scene: Scene) -> None:
    scene.approver.when(tool="pay").reject("not on Friday")


def waiting(scene: Scene) -> None:
    scene.approver.when(tool="pay").wait()


def nothing(_: Scene) -> None:
    pass


@everywhere()
def test_gaps_are_the_expected_ones(driver: AdapterDriver) -> None:
    assert set(driver.gaps) == EXPECTED_GAPS[driver.name]
    assert all(len(reason) > 20 for reason in driver.gaps.values())
    assert driver.entries
    assert bool(driver.nestings) == ("18" not in driver.gaps)
    assert bool(driver.cancellable) == ("15" not in driver.gaps)
    assert set(driver.cancellable) <= set(driver.entries)


def test_every_refusal_has_a_test() -> None:
    assert {str(number) for number in range(1, 20)} | {"10 hook"} == COVERED
    assert len({driver.name for driver in DRIVERS}) == len(DRIVERS) > 0


# Controls.


@everywhere()
def test_an_approved_call_runs_once_with_its_own_result(driver: AdapterDriver) -> None:
    report, scene = play(nothing, one_call(driver))
    assert report.error is None
    assert scene.world.ran == [pay(7)]
    (asked,) = scene.approver.asked
    assert (asked.tool, asked.args, asked.state) == ("pay", {"amount": 7}, "delivered")

    def without_gate(scene: Scene) -> None:
        scene.is_gated = False

    plain, other = play(without_gate, one_call(driver))
    assert plain.error is None
    assert other.approver.asked == []
    assert report.texts == plain.texts
    assert report.results == plain.results
    assert [type(it) for it in report.results] == [type(it) for it in plain.results]
    assert len(plain.results) == 1


@everywhere()
def test_a_tool_that_is_not_gated_is_untouched(driver: AdapterDriver) -> None:
    report, scene = play(rejecting, lambda scene: driver.run(scene, [look("home")]))
    assert report.error is None
    assert scene.world.ran == [look("home")]
    assert scene.approver.asked == []
    assert "saw home" in report.texts[0]


@everywhere()
def test_a_rejection_leaves_other_tools_alone(driver: AdapterDriver) -> None:
    report, scene = play(rejecting, lambda scene: driver.run(scene, [pay(7), look("home")]))
    assert scene.world.ran in ([look("home")], [])
    if report.error is None:
        assert "not on Friday" in report.texts[0]
        assert "saw home" in report.texts[1]
        assert scene.world.ran == [look("home")]


# Refusals.


@refusal("1")
def test_1_a_rejection_arrives_with_its_reason(driver: AdapterDriver) -> None:
    text, scene = refuse(rejecting, one_call(driver))
    assert len(scene.approver.asked) == 1
    assert 'alice rejected it, with the reason "not on Friday"' in text


@refusal("2")
def test_2_no_decision_in_time(driver: AdapterDriver) -> None:
    text, scene = refuse(waiting, one_call(driver), "300ms")
    assert len(scene.approver.asked) == 1
    assert "nobody decided in time" in text


@refusal("3")
def test_3_a_gateway_that_is_down(driver: AdapterDriver) -> None:
    _, scene = refuse(lambda it: it.approver.gateway.down(), one_call(driver), "500ms")
    assert scene.approver.asked == []


@refusal("4")
def test_4_a_gateway_that_goes_down_meanwhile(driver: AdapterDriver) -> None:
    def down_after_submission(scene: Scene) -> None:
        waiting(scene)
        gateway = scene.approver.gateway
        requested = gateway._on_request

        def on_request(exchange: Any) -> None:
            requested(exchange)
            asyncio.get_running_loop().call_later(0.1, gateway.down)

        gateway._on_request = on_request

    _, scene = refuse(down_after_submission, one_call(driver), "800ms")
    assert len(scene.approver.asked) == 1


@refusal("5")
def test_5_a_forged_decision(driver: AdapterDriver) -> None:
    def forge(scene: Scene) -> None:
        rejecting(scene)
        scene.approver.gateway.forge()

    text, scene = refuse(forge, one_call(driver))
    assert len(scene.approver.asked) == 1
    assert "signature" not in text


@refusal("6")
def test_6_a_decision_of_a_revoked_device(driver: AdapterDriver) -> None:
    def revoke(scene: Scene) -> None:
        approver = scene.approver
        device = approver.add_device("laptop")
        approver.revoke_device(device)
        requested = approver.gateway._on_request

        def on_request(exchange: Any) -> None:
            requested(exchange)
            exchange.state, exchange.decision = "pendingApproval", None
            approver.asked[-1].decide("approve", {}, device)

        approver.gateway._on_request = on_request

    _, scene = refuse(revoke, one_call(driver))
    assert len(scene.approver.asked) == 1


@refusal("7")
def test_7_a_decision_about_another_request(driver: AdapterDriver) -> None:
    async def twice(scene: Scene) -> RunReport:
        await driver.run(scene, [pay(1)])
        assert scene.world.ran == [pay(1)]
        scene.world.ran.clear()
        rejecting(scene)
        scene.approver.gateway.replay()
        return await driver.run(scene, [pay(2)])

    _, scene = refuse(nothing, twice)
    assert len(scene.approver.asked) == 2


@refusal("7")
def test_7_a_decision_about_another_artifact(driver: AdapterDriver) -> None:
    refuse(lambda it: it.approver.gateway.swap_artifact(), one_call(driver))


def _damaged(_: DeviceDirectory) -> Any:
    raise ProfileError("the profile is damaged")


def _broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a secret detail")


async def _broken_later(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a secret detail")


async def _none(*_: Any, **__: Any) -> Any:
    return None


@refusal("8")
@pytest.mark.parametrize("records", [_damaged, lambda _: ()], ids=["damaged", "not paired"])
def test_8_a_profile_that_cannot_be_used(
    driver: AdapterDriver, records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(_: Scene) -> None:
        monkeypatch.setattr(DeviceDirectory, "records", records)

    _, scene = refuse(spoil, one_call(driver), also=ProfileError)
    assert scene.approver.asked == []


@refusal("8")
def test_8_there_is_no_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, driver: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(ProfileError):
        Client.from_profile("missing")


@refusal("9")
@pytest.mark.parametrize(
    ("owner", "names", "by"),
    [
        (DeviceDirectory, ["records"], _broken),
        (Client, ["ask", "ask_about", "submit"], _broken_later),
        (Client, ["ask", "ask_about", "submit"], _broken),
        (Pending, ["outcome"], _broken_later),
    ],
    ids=["inside", "at the client", "before the client", "at the outcome"],
)
def test_9_an_unexpected_error_of_the_library(
    driver: AdapterDriver,
    owner: Any,
    names: list[str],
    by: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spoil(scene: Scene) -> None:
        # An adapter that does not look for an outcome is not hurt by it.
        if owner is Pending and not driver.name.endswith("_durable"):
            rejecting(scene)
        for name in names:
            monkeypatch.setattr(owner, name, by)

    text, _ = refuse(spoil, one_call(driver))
    assert "secret detail" not in text


@refusal("10")
@pytest.mark.parametrize(
    ("owner", "names"),
    [(Client, ["ask", "ask_about", "submit"]), (Pending, ["outcome"])],
    ids=["the client", "the outcome"],
)
def test_10_an_answer_that_is_none(
    driver: AdapterDriver, owner: Any, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(scene: Scene) -> None:
        if owner is Pending and not driver.name.endswith("_durable"):
            rejecting(scene)
        for name in names:
            monkeypatch.setattr(owner, name, _none)

    refuse(spoil, one_call(driver))


@refusal("10 hook")
def test_10_a_hook_of_the_framework_that_answers_none(driver: AdapterDriver) -> None:
    refuse(rejecting, lambda scene: driver.run_with_silent_hook(scene, pay(7)))


@refusal("11")
@pytest.mark.parametrize("approved", [0, 1])
def test_11_of_two_calls_only_the_approved_one_runs(driver: AdapterDriver, approved: int) -> None:
    calls = [pay(1), pay(2)]

    def decide(scene: Scene) -> None:
        for number, call in enumerate(calls):
            rule = scene.approver.when(tool="pay", args=call.args)
            rule.approve() if number == approved else rule.reject("too much")

    report, scene = play(decide, lambda scene: driver.run(scene, calls))
    if report.error is None:
        assert scene.world.ran == [calls[approved]]
        assert "too much" in report.texts[1 - approved]
        assert "Nothing was executed" not in report.texts[approved]
    else:
        assert scene.world.ran in ([], [calls[approved]])
    assert len(scene.approver.asked) == 2


@refusal("11")
def test_11_calls_with_the_same_arguments_are_two_requests(driver: AdapterDriver) -> None:
    report, scene = play(nothing, lambda scene: driver.run(scene, [pay(1), pay(1)]))
    assert report.error is None
    assert scene.world.ran == [pay(1), pay(1)]
    assert len({asked.request_id for asked in scene.approver.asked}) == 2


@refusal("12")
def test_12_arguments_that_change_while_a_person_thinks(driver: AdapterDriver) -> None:
    async def changing(scene: Scene) -> RunReport:
        running = asyncio.ensure_future(driver.run(scene, [pay(7)]))
        await until(lambda: scene.approver.asked, ASK_TIMEOUT)
        await asyncio.sleep(0.05)
        assert scene.tampers
        for tamper in scene.tampers:
            tamper(99)
        scene.approver.asked[0].approve()
        await until(lambda: running.done() or len(scene.approver.asked) > 1, ASK_TIMEOUT)
        if not running.done():
            scene.approver.asked[1].reject("changed")
        return await running

    report, scene = play(waiting, changing)
    # With the approved arguments, or not at all.
    assert scene.world.ran in ([], [pay(7)])
    if not scene.world.ran:
        assert report.error is not None or "Nothing was executed" in report.texts[0]


@refusal("13")
def test_13_a_stored_state_that_was_edited(driver: AdapterDriver) -> None:
    async def edit(scene: Scene) -> RunReport:
        state = await driver.suspend(scene, [pay(7)])
        assert scene.world.ran == []
        scene.approver.asked[0].approve()
        text = driver.edited(state, 99)
        assert text != state
        return await driver.resume(scene, text)

    refuse(waiting, edit, also=StillSuspended)


@refusal("14")
def test_14_a_run_that_is_resumed_twice(driver: AdapterDriver) -> None:
    async def twice(scene: Scene) -> RunReport:
        state = await driver.suspend(scene, [pay(7)])
        first = await driver.resume(scene, state)
        assert isinstance(first.error, StillSuspended)
        assert scene.world.ran == []
        scene.approver.asked[0].approve()
        second = await driver.resume(scene, state)
        assert second.error is None
        assert scene.world.ran == [pay(7)]
        scene.world.ran.clear()
        return await driver.resume(scene, state)

    # The model must not report it as not done.
    text, scene = refuse(waiting, twice, told="It may have been executed before")
    assert "Nothing was executed" not in text
    assert "not done" not in text
    assert len(scene.approver.asked) == 1


@refusal("14")
def test_14_a_run_that_is_resumed_twice_at_once(driver: AdapterDriver) -> None:
    async def twice(scene: Scene) -> RunReport:
        state = await driver.suspend(scene, [pay(7)])
        scene.approver.asked[0].approve()
        return (await asyncio.gather(*(driver.resume(scene, state) for _ in range(3))))[0]

    _, scene = play(waiting, twice)
    assert scene.world.ran == [pay(7)]


@variants("15", "cancellable")
def test_15_a_cancelled_run_never_runs_its_tool(driver: AdapterDriver, variant: str) -> None:
    async def cancel(scene: Scene) -> RunReport:
        running = asyncio.ensure_future(driver.run(scene, [pay(7)], variant))
        await until(lambda: scene.approver.asked, ASK_TIMEOUT)
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        scene.approver.asked[0].approve()
        await asyncio.sleep(0.4)
        return RunReport(error=Denied("the run was cancelled"))

    refuse(waiting, cancel)


@variants("15", "cancellable")
def test_15_a_run_that_times_out_never_runs_its_tool(driver: AdapterDriver, variant: str) -> None:
    async def time_out(scene: Scene) -> RunReport:
        async def run_with_timeout() -> None:
            async with asyncio.timeout(None) as limit:
                limits.append(limit)
                await driver.run(scene, [pay(7)], variant)

        limits: list[asyncio.Timeout] = []
        running = asyncio.ensure_future(run_with_timeout())
        await until(lambda: scene.approver.asked, ASK_TIMEOUT)
        limits[0].reschedule(asyncio.get_running_loop().time() + 0.1)
        with pytest.raises(TimeoutError):
            await running
        scene.approver.asked[0].approve()
        await asyncio.sleep(0.4)
        return RunReport(error=Denied("the run timed out"))

    refuse(waiting, time_out)


@refusal("16")
@pytest.mark.parametrize("is_approved", [False, True])
def test_16_a_tool_that_is_added_later(driver: AdapterDriver, is_approved: bool) -> None:
    def late(scene: Scene) -> Awaitable[RunReport]:
        return driver.run_with_late_tool(scene, pay(7))

    if is_approved:
        report, scene = play(nothing, late)
        assert report.error is None
        assert scene.world.ran == [pay(7)]
    else:
        text, scene = refuse(rejecting, late)
        assert "not on Friday" in text
    assert len(scene.approver.asked) == 1


@variants("17", "entries")
@pytest.mark.parametrize("is_approved", [False, True])
def test_17_every_entry_is_gated(driver: AdapterDriver, variant: str, is_approved: bool) -> None:
    _both_ways(lambda scene: driver.run(scene, [pay(7)], variant), is_approved)


@variants("18", "nestings")
@pytest.mark.parametrize("is_approved", [False, True])
def test_18_inner_agents_are_gated(driver: AdapterDriver, variant: str, is_approved: bool) -> None:
    _both_ways(lambda scene: driver.run_nested(scene, pay(7), variant), is_approved)


def _both_ways(run: Run, is_approved: bool) -> None:
    if is_approved:
        report, scene = play(nothing, run)
        assert report.error is None
        assert scene.world.ran == [pay(7)]
    else:
        text, scene = refuse(rejecting, run)
        assert "not on Friday" in text
    assert len(scene.approver.asked) == 1


@refusal("19")
@pytest.mark.parametrize("amount", [float("nan"), 2**53, "\x00"], ids=["nan", "large", "zero"])
def test_19_arguments_that_nobody_can_be_shown(driver: AdapterDriver, amount: Any) -> None:
    _, scene = refuse(nothing, one_call(driver, amount=amount))
    assert scene.approver.asked == []
