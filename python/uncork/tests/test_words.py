import pytest

from uncork.experiment import words


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.34e6, "bit/s", "12.3 Mbit/s"),
        (0.3401, "s", "340 ms"),
        (1.2, "s", "1.20 s"),
        (0.00534, "share", "0.534 %"),
        (0.0, "share", "0 %"),
        (None, "s", "–"),
        (float("nan"), "s", "–"),
        (0.0131, "", "0.0131"),
    ],
)
def test_quantity(value: float | None, unit: str, text: str) -> None:
    assert words.quantity(value, unit) == text


def test_changes_have_signs_and_few_digits() -> None:
    assert [words.change(r) for r in (1.0614, 0.97, 2.4, 0.5, 1.0, 1.0071)] == [
        "+6.1 %", "−3.0 %", "+140 %", "−50 %", "0 %", "+0.71 %",
    ]  # fmt: skip


def test_interval_has_one_precision() -> None:
    assert words.interval(0.988, 1.05) == "−1.2 to +5.0 %"
    assert words.interval(0.9, 1.4) == "−10 to +40 %"


def test_both_ends_in_one_unit() -> None:
    assert words.pair(950_000, 2_100_000, "bit/s") == "0.950 → 2.10 Mbit/s"


def test_lists() -> None:
    assert [words.listed(some) for some in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert words.counted(1, "day") == "1 day"
    assert words.counted(1200, "unit") == "1,200 units"
