"""Claude Agent SDK: ways around the hook, tried with its own program."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from anthropic_model import ModelServer, Turn
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)
from drive_claude import options_of, run_query
from harness import Scene, World, pay

from countersign.claude import HOOK_TIMEOUT, options_with_approval
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters
PAY: list[Turn] = [[("pay", {"amount": 7})]]
ALLOW_PAY = {"permissions": {"allow": ["mcp__bank__pay"]}}
SIMPLE_MODE = {"CLAUDE_CODE_SIMPLE": "1"}


def scene_of(verdict: str) -> Scene:
    approver = FakeApprover()
    rule = approver.when()
    rule.approve() if verdict == "approve" else rule.reject("not on Friday")
    return Scene(approver, World())


def play(
    scene: Scene,
    home: Path,
    turns: Sequence[Turn] = PAY,
    unasked: Sequence[str] = (),
    **more: Any,
) -> list[str]:
    """Runs the program. Returns the results that the model has read."""

    async def main() -> list[str]:
        with ModelServer(turns) as model:
            options = options_of(scene, model, str(home), **more)
            await run_query(options_with_approval(options, scene.client, unasked=unasked))
            return model.told()

    return asyncio.run(main())


def write_settings(home: Path, name: str, settings: dict[str, Any]) -> None:
    """The folder is both the user's home and the project; names tell the files apart."""
    folder = home / ".claude"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(settings))


def output(**members: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **members}}


def permission_hook(answer: dict[str, Any], seen: Path) -> dict[str, Any]:
    command = f"touch {seen}; echo '{json.dumps(answer)}'"
    return {"matcher": "*", "hooks": [{"type": "command", "command": command}]}


@pytest.mark.parametrize("decision", [{}, {"permissionDecision": "ask"}])
def test_the_input_of_another_hook_does_not_run(decision: dict[str, str], tmp_path: Path) -> None:
    async def rewrite(*_: Any) -> Any:
        await asyncio.sleep(0.3)
        return output(**decision, updatedInput={"amount": 99})

    scene = scene_of("approve")
    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[rewrite])]}
    (text,) = play(scene, tmp_path, hooks=hooks)
    assert scene.world.ran == []
    assert "the call is not the one that was approved. Nothing was executed" in text


def test_a_hook_that_allows_does_not_outrank_a_rejection(tmp_path: Path) -> None:
    async def allow(*_: Any) -> Any:
        return output(permissionDecision="allow", updatedInput={"amount": 99})

    scene = scene_of("reject")
    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[allow])]}
    (text,) = play(scene, tmp_path, hooks=hooks)
    assert scene.world.ran == []
    assert "not on Friday" in text


def test_hooks_of_settings_files_are_off(tmp_path: Path) -> None:
    allow = {"behavior": "allow", "updatedInput": {"amount": 99}}
    answer = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": allow}}
    seen = tmp_path / "seen"
    hooks = {
        event: [permission_hook(answer, seen)] for event in ("PermissionRequest", "PreToolUse")
    }
    write_settings(tmp_path, "settings.json", {"disableAllHooks": False, "hooks": hooks})
    write_settings(tmp_path, "settings.local.json", {"disableAllHooks": False, "hooks": hooks})
    scene = scene_of("approve")
    play(scene, tmp_path)
    assert scene.world.ran == [pay(7)]
    assert not seen.exists()


@pytest.mark.parametrize("place", ["settings.json", "settings.local.json", "options", "process"])
def test_the_simple_mode_is_off(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In it, the program calls no hook, and allowed tools run."""
    more: dict[str, Any] = {}
    write_settings(tmp_path, "settings.json", ALLOW_PAY)
    match place:
        case "options":
            more = {"env": SIMPLE_MODE, "settings": json.dumps({"env": SIMPLE_MODE})}
        case "process":
            monkeypatch.setenv("CLAUDE_CODE_SIMPLE", "1")
        case _:
            write_settings(tmp_path, place, {**ALLOW_PAY, "env": SIMPLE_MODE})
    scene = scene_of("reject")
    (text,) = play(scene, tmp_path, **more)
    assert scene.world.ran == []
    assert "not on Friday" in text


@pytest.mark.parametrize("mode", ["acceptEdits", "auto", "dontAsk", "plan", "default"])
def test_every_other_permission_mode_is_gated(mode: Any, tmp_path: Path) -> None:
    scene = scene_of("reject")
    (text,) = play(scene, tmp_path, permission_mode=mode)
    assert scene.world.ran == []
    assert "not on Friday" in text


def test_a_mode_that_is_set_later_is_refused(tmp_path: Path) -> None:
    scene = scene_of("approve")

    async def main() -> list[str]:
        with ModelServer(PAY) as model:
            options = options_of(scene, model, str(tmp_path))
            async with ClaudeSDKClient(options_with_approval(options, scene.client)) as client:
                try:
                    await client.set_permission_mode("bypassPermissions")
                except Exception as error:
                    return [f"Nothing was executed: {error}"]
                await client.query("go")
                async for _ in client.receive_response():
                    pass
            return model.told()

    (text,) = asyncio.run(main())
    assert scene.world.ran == []
    assert "Nothing was executed" in text


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_tools_of_the_program_are_gated(verdict: str, tmp_path: Path) -> None:
    scene = scene_of(verdict)
    turn: Turn = [("Bash", {"command": f"touch {tmp_path}/made", "description": "makes"})]
    play(scene, tmp_path, [turn])
    assert (tmp_path / "made").exists() == (verdict == "approve")
    (asked,) = scene.approver.asked
    assert asked.tool == "Bash"


@pytest.mark.parametrize("is_allowed", [True, False, None])
def test_unasked_tools_keep_their_own_permissions(is_allowed: bool | None, tmp_path: Path) -> None:
    seen: list[str] = []

    async def decide(name: str, given: dict[str, Any], _: Any) -> Any:
        seen.append(name)
        return PermissionResultAllow() if is_allowed else PermissionResultDeny(message="mine")

    scene = scene_of("reject")
    turn: Turn = [("Bash", {"command": f"touch {tmp_path}/made", "description": "makes"})]
    can_use_tool = None if is_allowed is None else decide
    (text,) = play(scene, tmp_path, [turn], ["Bash"], can_use_tool=can_use_tool)
    assert (tmp_path / "made").exists() == (is_allowed is True)
    assert scene.approver.asked == []
    assert seen == ([] if is_allowed is None else ["Bash"])
    if not is_allowed:
        assert ("There is no permission to use Bash." if is_allowed is None else "mine") in text


def options(**more: Any) -> ClaudeAgentOptions:
    return options_with_approval(ClaudeAgentOptions(**more), FakeApprover().client)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"permission_mode": "bypassPermissions"}, "permission_mode"),
        (
            {"agents": {"a": AgentDefinition("d", "p", permissionMode="bypassPermissions")}},
            "permission_mode",
        ),
        ({"extra_args": {"bare": None}}, "extra_args"),
        ({"extra_args": {"dangerously-skip-permissions": None}}, "extra_args"),
        ({"hooks": {"PermissionRequest": []}}, "PermissionRequest"),
        ({"settings": '{"hooks": {}}'}, "settings"),
    ],
)
def test_options_that_let_calls_pass_are_refused(given: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        options(**given)


@pytest.mark.parametrize("given", [{"unasked": "Bash"}, {"timeout": "13h"}])
def test_options_of_the_approval_are_checked(given: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        options_with_approval(ClaudeAgentOptions(), FakeApprover().client, **given)


def test_the_hook_blocks_if_it_fails_and_outlasts_the_question() -> None:
    hooks: Any = options(hooks={"PreToolUse": [HookMatcher()], "Stop": []}).hooks
    assert set(hooks) == {"PreToolUse", "Stop"}
    matcher = hooks["PreToolUse"][-1]
    assert (matcher.matcher, matcher.on_failure, matcher.timeout) == (None, "block", HOOK_TIMEOUT)


def test_settings_of_the_caller_are_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(
        '{"model": "m", "env": {"A": "b"}, "permissions": {"allow": ["Read", "Bash"], "deny": ["X"]}}'
    )
    given = ClaudeAgentOptions(
        settings="mine.json", cwd=tmp_path, allowed_tools=["Read(a)", "Edit"]
    )
    found = options_with_approval(given, FakeApprover().client, unasked=["Read"])
    assert found.allowed_tools == []
    assert found.env == {"CLAUDE_CODE_SIMPLE": "0"}
    assert json.loads(found.settings or "") == {
        "model": "m",
        "env": {"A": "b", "CLAUDE_CODE_SIMPLE": "0"},
        "permissions": {"allow": ["Read", "Read(a)"], "deny": ["X"]},
        "disableAllHooks": True,
    }


async def _permission(made: ClaudeAgentOptions, amount: int, call: str) -> Any:
    assert made.can_use_tool is not None
    context = ToolPermissionContext(tool_use_id=call)
    return await made.can_use_tool("pay", {"amount": amount}, context)


def test_a_call_without_its_own_approval_has_no_permission() -> None:
    async def main() -> None:
        scene = scene_of("approve")
        made = options_with_approval(ClaudeAgentOptions(), scene.client, timeout="2s")
        hooks: Any = made.hooks
        ask = hooks["PreToolUse"][-1].hooks[0]
        event = {"tool_name": "pay", "tool_input": {"amount": 7}}

        async def approve(call: str) -> None:
            answer = await ask(event, call, {})
            assert answer["hookSpecificOutput"]["permissionDecision"] == "ask"

        assert isinstance(await _permission(made, 7, "a"), PermissionResultDeny)
        await approve("a")
        assert isinstance(await _permission(made, 7, "b"), PermissionResultDeny)
        assert isinstance(await _permission(made, 7, "a"), PermissionResultAllow)
        # Once.
        assert isinstance(await _permission(made, 7, "a"), PermissionResultDeny)
        await approve("c")
        assert isinstance(await _permission(made, 8, "c"), PermissionResultDeny)
        await approve("d")
        await asyncio.sleep(2.1)
        late = await _permission(made, 7, "d")
        assert isinstance(late, PermissionResultDeny)
        assert "has expired" in late.message
        bypass = await ask({**event, "permission_mode": "bypassPermissions"}, "e", {})
        assert bypass["hookSpecificOutput"]["permissionDecision"] == "deny"

    asyncio.run(main())
