"""`kill -9` at every step of `use`: the call runs at most once, and never after a crash that took it."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from countersign import AlreadyUsed, Approved, Call
from countersign.state import DirectoryState
from countersign.testing import FakeApprover

STEPS = [
    "before compare",
    "before judge",
    "before journal",
    "before link",
    "after link",
    "after journal",
    "before acknowledge",
    "after acknowledge",
    "before effect",
    "after effect",
]
CALL = Call("transfer", {"amount": 500})


def run_until(step: str, directory: Path) -> None:
    """Approves and uses a call, in a process of its own, which kills itself at a step."""
    from countersign.engine import Enforcer
    from countersign.exchange import Exchange
    from countersign.request import PreparedRequest
    from countersign.state import StateJournal

    def die(at: str) -> None:
        if at == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(owner: object, name: str, label: str) -> None:
        inner = getattr(owner, name)

        if asyncio.iscoroutinefunction(inner):

            async def changed(*args: object, **kwargs: object) -> object:
                die(f"before {label}")
                result = await inner(*args, **kwargs)
                die(f"after {label}")
                return result

            setattr(owner, name, changed)
        else:

            def plain(*args: object, **kwargs: object) -> object:
                die(f"before {label}")
                result = inner(*args, **kwargs)
                die(f"after {label}")
                return result

            setattr(owner, name, plain)

    async def main() -> None:
        with FakeApprover(state=DirectoryState(directory / "state")) as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="24h")
            outcome = await pending.outcome()
            assert isinstance(outcome, Approved)
            (directory / "request").write_text(pending.request_id)
            around(PreparedRequest, "is_about", "compare")
            around(Exchange, "judge_again", "judge")
            around(StateJournal, "take", "journal")
            around(os, "link", "link")
            around(Exchange, "acknowledge", "acknowledge")
            assert isinstance(approver.client._enforcer, Enforcer)
            async with outcome.use(CALL):
                die("before effect")
                with (directory / "effects").open("a") as file:
                    file.write("ran\n")
                die("after effect")

    asyncio.run(main())


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_process_never_leads_to_a_second_run(step: str, tmp_path: Path) -> None:
    script = f"import sys; sys.path[:0] = {sys.path!r}; import test_kill; from pathlib import Path; test_kill.run_until({step!r}, Path({str(tmp_path)!r}))"
    died = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    effects = tmp_path / "effects"
    ran = effects.read_text().count("ran") if effects.exists() else 0
    assert ran == (1 if step == "after effect" else 0)
    is_taken = (tmp_path / "state" / "used" / (tmp_path / "request").read_text()).exists()
    first_half = STEPS.index(step) < STEPS.index("after link")
    assert is_taken == (not first_half)

    async def resume() -> int:
        """The same journal, another process: what was taken is not taken again."""
        from countersign.state import StateJournal

        journal = StateJournal(DirectoryState(tmp_path / "state"))
        request_id = (tmp_path / "request").read_text()
        return int(await journal.take(request_id)) + int(await journal.take(request_id))

    assert asyncio.run(resume()) == (1 if first_half else 0)
    assert AlreadyUsed.cause == "already_used"
