"""A process that uses an approval, and kills itself on the way. It imports no test tools: they take longer than the rest."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from countersign import Approved, Call
from countersign.engine import Enforcer
from countersign.exchange import Exchange
from countersign.request import PreparedRequest
from countersign.state import DirectoryState, StateJournal
from countersign.testing import FakeApprover

CALL = Call("transfer", {"amount": 500})


def run_until(step: str, directory: Path) -> None:
    """Approves and uses a call, up to a step."""

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


run_until(sys.argv[1], Path(sys.argv[2]))
