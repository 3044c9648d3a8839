"""Approval of tool calls by people, for agents."""
