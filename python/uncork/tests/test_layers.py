"""The package has three layers, which import one way only: `learn` → `experiment` → `measure`."""

import ast
from pathlib import Path

import pytest

import uncork

ROOT = Path(uncork.__file__).parent
MAY_IMPORT = {
    "measure": {"measure", "_native", "__version__"},
    "experiment": {"measure", "experiment", "program", "__version__"},
    "learn": {"measure", "experiment", "learn", "program", "_native", "__version__"},
}
FACE = {
    "__init__.py",
    "__main__.py",
    "experiments.py",
    "gym.py",
    "laboratory.py",
    "options.py",
    "plots.py",
    "program.py",
    "races.py",
    "toml.py",
}
"""What users and the program start with. It may import every layer."""


def imported(path: Path) -> set[str]:
    """The layers that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [
        f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]
    parts = [name.split(".") for name in names if name.startswith("uncork.")]
    return {part[1] for part in parts}


@pytest.mark.parametrize("layer", sorted(MAY_IMPORT))
def test_a_layer_imports_no_layer_above_it(layer: str) -> None:
    files = sorted((ROOT / layer).rglob("*.py"))
    assert files
    wrong = {str(path.relative_to(ROOT)): imported(path) - MAY_IMPORT[layer] for path in files}
    assert {path: layers for path, layers in wrong.items() if layers} == {}


def test_all_modules_are_in_a_layer() -> None:
    modules = {path.relative_to(ROOT).parts[0] for path in ROOT.rglob("*.py")}
    assert modules == FACE | {*MAY_IMPORT}
