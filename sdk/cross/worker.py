"""A program with the Python library: worker.py submit|resume|ask|learn [FILE|COUNT].

worker.mjs does the same with the TypeScript library.
"""

import asyncio
import sys
from pathlib import Path

from countersign import Approved, Call, Client, Denied

CALL = Call("pay", {"amount": 7, "note": 'é\U0001f600\n"</script>', "deep": [None, 0.1]})


async def submit(client: Client, word: str) -> str:
    pending = await client.submit(CALL, timeout="10m", key="cross")
    await asyncio.to_thread(Path(word).write_text, pending.to_json())
    return pending.request_id


async def resume(client: Client, word: str) -> str:
    text = await asyncio.to_thread(Path(word).read_text)
    outcome = await client.pending(text).outcome(wait="0s")
    if isinstance(outcome, Denied):
        return outcome.cause
    if not isinstance(outcome, Approved):
        return "waiting"
    async with outcome.use(CALL) as approval:
        return f"ran {approval.arguments['amount']}"


async def ask(client: Client, word: str) -> str:
    approval = await client.ask(CALL, timeout="30s")
    return f"approved: {approval.reason}"


async def learn(client: Client, word: str) -> str:
    """Learns of devices with each request."""
    for _ in range(int(word)):
        await client.submit(CALL, timeout="10m")
    return "learned"


async def main() -> None:
    actions = {"submit": submit, "resume": resume, "ask": ask, "learn": learn}
    action, word = [*sys.argv[1:], ""][:2]
    async with Client.from_profile() as client:
        try:
            print(await actions[action](client, word))
        except Denied as denied:
            print(denied.cause)


asyncio.run(main())
