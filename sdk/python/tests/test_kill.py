"""`kill -9` at every step of `use`: the call runs at most once, and never after a crash that took it."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from countersign import AlreadyUsed
from countersign.state import DirectoryState, StateJournal

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


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_process_never_leads_to_a_second_run(step: str, tmp_path: Path) -> None:
    words = [sys.executable, str(Path(__file__).with_name("killed_use.py")), step, str(tmp_path)]
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run(words, capture_output=True, text=True, env=os.environ | paths)
    assert died.returncode == -signal.SIGKILL, died.stderr
    effects = tmp_path / "effects"
    ran = effects.read_text().count("ran") if effects.exists() else 0
    assert ran == (1 if step == "after effect" else 0)
    is_taken = (tmp_path / "state" / "used" / (tmp_path / "request").read_text()).exists()
    first_half = STEPS.index(step) < STEPS.index("after link")
    assert is_taken == (not first_half)

    async def resume() -> int:
        """The same journal, another process: what was taken is not taken again."""
        journal = StateJournal(DirectoryState(tmp_path / "state"))
        request_id = (tmp_path / "request").read_text()
        return int(await journal.take(request_id)) + int(await journal.take(request_id))

    assert asyncio.run(resume()) == (1 if first_half else 0)
    assert AlreadyUsed.cause == "already_used"
