"""Every adapter is small, has a driver, and names the versions it is tested with."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from harness import load_drivers
from packaging.requirements import Requirement

pytestmark = pytest.mark.adapters

ROOT = Path(__file__).resolve().parents[2]
RANGE = re.compile(r'^TESTED_VERSIONS = "(.+)"$', re.M)
ADAPTERS = {
    path.stem: match.group(1)
    for path in sorted((ROOT / "src" / "countersign").glob("*.py"))
    if (match := RANGE.search(path.read_text()))
}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter(name: str) -> None:
    tested = Requirement(ADAPTERS[name])
    assert EXTRAS[name.replace("_", "-")][0] == ADAPTERS[name]
    # Both ends: a framework changes too fast for an open one.
    assert {part.operator for part in tested.specifier} == {">=", "<"}
    assert version(tested.name) in tested.specifier
    lines = (ROOT / "src" / "countersign" / f"{name}.py").read_text().splitlines()
    # Thin, with the checks that nothing stands between an approval and its tool.
    assert len(lines) <= 150


def test_every_adapter_has_a_driver() -> None:
    driven = {driver.name.removesuffix("_durable") for driver in load_drivers()}
    assert driven == set(ADAPTERS)
