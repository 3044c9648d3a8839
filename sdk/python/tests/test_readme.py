"""The examples of the README run. The first one needs a gateway: see `test_real_gateway`."""

import ast
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()
SOURCE = str(Path(__file__).resolve().parents[1] / "src")


def test_the_example_of_a_test_runs() -> None:
    (example,) = re.findall(r"<!-- testing -->\n```python\n(.*?)```", README, re.S)
    script = f"import sys; sys.path.insert(0, {SOURCE!r})\n{example}"
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, timeout=60)


def test_every_example_is_python() -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(examples) == 5
    for example in examples:
        compile(example, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_every_denial_is_in_the_table() -> None:
    import countersign

    for name in countersign.__all__:
        kind = getattr(countersign, name)
        if isinstance(kind, type) and issubclass(kind, countersign.Denied):
            assert f"`{name}`" in README
            assert f"`{kind.cause}`" in README or kind is countersign.Denied
