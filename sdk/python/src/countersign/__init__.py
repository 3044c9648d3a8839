"""Approval of tool calls by people, for agents.

A call waits until a paired approver has signed exactly this call. Anything that is not an accepted
approval raises `Denied`.

| module | contents |
|---|---|
| `client`, `sync` | what programs use; the same without an event loop |
| `wrapper` | `approval_required` |
| `pending` | durable requests: submit now, resume elsewhere |
| `adk`, `claude`, `fastmcp`, `langchain`, `openai_agents`, `pydantic_ai` | adapters |
| `tool_gate`, `pending_calls` | what the adapters share; calls whose client comes back later |
| `testing` | a fake approver for tests, with real keys |
| `engine`, `exchange`, `request`, `devices` | the enforcer: prepare, submit, wait, judge |
| `rule_options`, `set_request`, `approval_set`, `set_part`, `set_count` | a call for several |
| `gateway`, `profile`, `state` | the gateway, the profile, and what survives restarts |
| `call`, `durations`, `errors` | arguments as JSON, deadlines, denials |
| `e2e` | the cryptography, without I/O |
"""

from .approval import Approval
from .call import Action, Call, Content
from .client import Client
from .e2e.record import DecisionRecord
from .errors import (
    AlreadyUsed,
    Changed,
    CountersignError,
    Denied,
    Ended,
    Expired,
    KeyReused,
    NotAskable,
    NotPaired,
    ProfileError,
    Rejected,
    TimedOut,
    TooFewApprovals,
    Unavailable,
    Untrusted,
)
from .pending import Approved, Outcome, Pending, StillWaiting
from .rule_options import RuleOptions
from .state import DirectoryState, State, UseJournal
from .version import VERSION
from .wrapper import approval_required

__version__ = VERSION

__all__ = [
    "Action",
    "AlreadyUsed",
    "Approval",
    "Approved",
    "Call",
    "Changed",
    "Client",
    "Content",
    "CountersignError",
    "DecisionRecord",
    "Denied",
    "DirectoryState",
    "Ended",
    "Expired",
    "KeyReused",
    "NotAskable",
    "NotPaired",
    "Outcome",
    "Pending",
    "ProfileError",
    "Rejected",
    "RuleOptions",
    "State",
    "StillWaiting",
    "TimedOut",
    "TooFewApprovals",
    "Unavailable",
    "Untrusted",
    "UseJournal",
    "__version__",
    "approval_required",
]
