"""Helpers for the tests of programs that use this library."""
