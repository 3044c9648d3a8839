"""A gateway of its own with a database, and the program as the approver."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("COUNTERSIGN_PROGRAM", str(ROOT / "target" / "debug" / "countersign"))
START_TIMEOUT = 120.0


@dataclass(frozen=True)
class RealGateway:
    profiles: str
    # Of each node.
    urls: tuple[str, ...] = ()
    processes: tuple[int, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        paths = os.pathsep.join(path for path in sys.path if path)
        return {**os.environ, "COUNTERSIGN_PROFILES": self.profiles, "PYTHONPATH": paths}

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            [PROGRAM, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert not check or ran.returncode == 0, ran.stderr
        return ran

    def approver(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run(*arguments, "--profile", "approver", check=check)

    def inbox(self) -> list[Any]:
        listed: list[Any] = json.loads(self.approver("inbox", "--json").stdout)
        return listed

    async def asked(self) -> str:
        """The id of the only request that waits."""
        async with asyncio.timeout(30):
            while True:
                items = await asyncio.to_thread(self.inbox)
                if items:
                    (item,) = items
                    return str(item["requestId"])
                await asyncio.sleep(0.1)

    async def decide(self, *arguments: str) -> Any:
        """Approves or rejects what waits. Returns what the program says about it."""
        verdict, *more = arguments
        request_id = await self.asked()
        ran = await asyncio.to_thread(self.approver, verdict, request_id, *more, "--json")
        return json.loads(ran.stdout)

    def pair(self) -> None:
        """Pairs the enforcer with the approver's device."""
        command = [PROGRAM, "pair"]
        with subprocess.Popen(
            command,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        ) as pairing:
            assert pairing.stdout is not None
            for line in pairing.stdout:
                link = re.search(r"https?://\S+/#/pair/[^\s']+", line)
                if link:
                    self.approver("pair", link.group())
                    break
            pairing.stdout.read()
            assert pairing.wait(30) == 0


@contextmanager
def running(directory: Path, *options: str) -> Generator[RealGateway]:
    ready = directory / "ready.json"
    command = [PROGRAM, "dev", "--ephemeral", "--listen", "127.0.0.1:0", "--ready-file", str(ready)]
    command += options
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_TIMEOUT
        while not ready.exists() or not ready.read_text():
            assert process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < until, "the gateway was not ready in time"
            time.sleep(0.1)
        said = json.loads(ready.read_text())
        gateway = RealGateway(said["profiles"], tuple(said["nodes"]), tuple(said["pids"]))
        gateway.approver("join", said["invitation"])
        gateway.pair()
        yield gateway
    finally:
        process.terminate()
        process.wait(60)
