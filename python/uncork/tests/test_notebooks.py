"""The notebooks of docs/notebooks run from the first cell to the last, with the claims that they assert."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
pytestmark = [
    pytest.mark.module,
    # A run with few seeds says that its intervals are wide.
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

NOTEBOOKS = Path(__file__).parents[3] / "docs/notebooks"
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))


def cells(of: Path, kind: str) -> list[dict[str, Any]]:
    parsed = json.loads(of.read_text("utf-8"))
    return [cell for cell in parsed["cells"] if cell["cell_type"] == kind]


@pytest.fixture
def _figures() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.mark.usefixtures("_figures")
@pytest.mark.parametrize("notebook", ALL, ids=lambda path: path.stem)
def test_notebook__cells_in_order__draw_a_figure_and_assert_its_claim(notebook: Path) -> None:
    from matplotlib import pyplot

    names: dict[str, Any] = {"__name__": "__main__"}
    codes = ["".join(cell["source"]) for cell in cells(notebook, "code")]
    for nth, code in enumerate(codes):
        exec(compile(code, f"{notebook.name}, cell {nth}", "exec"), names)
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert any(axes.has_data() for figure in figures for axes in figure.axes)
    assert any(line.startswith("assert ") for line in codes[-1].splitlines())


@pytest.mark.parametrize("notebook", ALL, ids=lambda path: path.stem)
def test_notebook__in_the_repository__has_no_output_and_says_what_differs(notebook: Path) -> None:
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells(notebook, "code"))
    assert "## What differs from the" in "".join(cells(notebook, "markdown")[-1]["source"])


def test_there_is_a_notebook_for_each_paper_and_article() -> None:
    papers = {"hock-2017", "imc-2023", "pam-2024", "spang-2021", "ware-2019"}
    articles = {"linux", "litespeed", "spotify", "verizon-cdn"}
    assert {path.stem for path in ALL} >= papers | articles
