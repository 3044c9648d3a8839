"""A fake approver for the tests of programs that use this library.

Keys, encryption and signatures are real; the gateway is in memory. Nothing here can be selected by
configuration, and no profile leads to a fake approver.
"""

from .approver import AskedRequest, FakeApprover, Rule
from .device import FakeDevice
from .gateway import FakeGateway
from .memory import MemoryState

__all__ = ["AskedRequest", "FakeApprover", "FakeDevice", "FakeGateway", "MemoryState", "Rule"]
