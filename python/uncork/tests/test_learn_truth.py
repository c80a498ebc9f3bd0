"""The truth of a simulated Internet, where groups are looked at again."""

from pathlib import Path

import numpy as np
import pytest

from uncork.learn.truth import Oracle, Truth

COLUMNS = "network,asn,country,kind,profile,share,class,lift,error,alone,resent\n"


def truth(rows: list[str], tmp_path: Path) -> Truth:
    small = "".join(row.replace("large", "small") + "\n" for row in rows)
    (tmp_path / "oracle.csv").write_text(COLUMNS + "\n".join(rows) + "\n" + small, encoding="utf-8")
    return Oracle.load(tmp_path / "oracle.csv").truths["large"]


def test_groups_near_the_limit_get_the_lift_of_the_second_look(tmp_path: Path) -> None:
    first = truth(
        [
            "2001:db8:1::/48,AS1,XA,dsl,0,0.5,large,-0.03,0.01,0,0",
            "2001:db8:2::/48,AS1,XA,dsl,1,0.2,large,0.2,0.05,0,0",
            "2001:db8:3::/48,AS1,XA,dsl,0,0.2,large,-0.03,0.01,0,0",
            "2001:db8:4::/48,AS2,XA,dsl,0,0.1,large,-0.9,0.01,0,0",
        ],
        tmp_path,
    )
    on = np.array([True, True, False, False])
    assert first.score(on).harmed == pytest.approx(0.5)
    assert first.near_the_limit(on, 2.5) == ["AS1:0"], "the others are far from it, or off"
    again = truth(["2001:db8:1::/48,AS1,XA,dsl,0,0.5,large,-0.01,0.002,0,0"], tmp_path)
    mended = first.mended(again)
    assert mended.lift.tolist() == [-0.01, 0.2, -0.01, -0.9]
    assert mended.error.tolist() == [0.002, 0.05, 0.002, 0.01]
    assert mended.score(on).harmed == 0
