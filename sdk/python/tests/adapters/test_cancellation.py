"""A run that waits in memory and is cancelled takes its question back."""

import asyncio

import pytest
from drive_langchain import LangchainDriver
from drive_openai_agents import OpenaiAgentsDriver
from drive_pydantic_ai import PydanticAiDriver
from entries import until
from harness import AdapterDriver, Scene, World, pay

from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters

CASES = [
    (driver, entry)
    for driver in (LangchainDriver(), OpenaiAgentsDriver(), PydanticAiDriver())
    for entry in driver.cancellable
]


@pytest.mark.parametrize(("driver", "entry"), CASES)
def test_a_cancelled_run_withdraws(driver: AdapterDriver, entry: str) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            running = asyncio.ensure_future(driver.run(Scene(approver, World()), [pay(7)], entry))
            await until(lambda: approver.asked, 20)
            await asyncio.sleep(0.05)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await until(lambda: approver.asked[0].state == "withdrawn")

    asyncio.run(main())
