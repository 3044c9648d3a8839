"""The refusals that a framework cannot have. Drivers give the reasons; a new gap needs a line here."""

EXPECTED_GAPS: dict[str, set[str]] = {
    "langchain": {"10 hook", "13", "14"},
    "langchain_durable": {"10 hook"},
    "openai_agents": {"13", "14", "16"},
    "openai_agents_durable": {"16"},
    "pydantic_ai": {"10 hook", "13", "14"},
    "pydantic_ai_durable": {"10 hook"},
    "claude": {"13", "14"},
    "fastmcp": {"10 hook", "13", "14"},
    "adk": {"13", "14"},
}
