"""What `pin` and `explain` print."""

from pathlib import Path

import pytest

from uncork.learn.cli import main
from uncork.learn.explain import _bounds


def test_a_pin_prints_its_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pin", str(tmp_path), "11.2.0.0/16", "bbr"]) == 0
    assert "11.2.0.0/16: pinned to bbr" in capsys.readouterr().out
    assert main(["pin", str(tmp_path), "11.2.0.0/16"]) == 0
    assert "no longer pinned" in capsys.readouterr().out


def test_a_country_that_is_unknown_everywhere_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", str(tmp_path), "XX", "bbr"]) == 2
    assert "is not an entry" in capsys.readouterr().err


def test_bounds_have_the_unit_of_their_limit() -> None:
    assert _bounds("at most +20.00 pp", 0.0329, 0.13) == "+3.29 to +13.0 pp"
    assert _bounds("at most 5 % worse", -0.37, 0.117).endswith("%")
