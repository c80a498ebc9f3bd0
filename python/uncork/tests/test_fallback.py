"""Controllers that logs do not know, and arms that fell back to another one."""

import pytest

from uncork.experiment.facts import Traffic, controllers_relation, known_controller
from uncork.experiment.health.fallback import check_fallback


def traffic(control: dict[str | None, int], treated: dict[str | None, int]) -> Traffic:
    rows = [
        {"hour": 1, "arm": arm, "cc": cc, "n": n, "engine": "mine"}
        for arm, seen in (("a", control), ("b", treated))
        for cc, n in seen.items()
    ]
    return Traffic(tuple(rows), True)


def test_windows_are_those_of_most_records_of_each_arm() -> None:
    seen = [("a", 10, 5), ("a", 1, 2), ("b", 40, 3), ("b", None, 9)]
    rows = [{"hour": 1, "arm": arm, "cc": "cubic", "n": n, "window": window} for arm, window, n in seen]
    assert Traffic(tuple(rows), True).windows("a", "b") == (10, 40)
    assert traffic({"cubic": 1}, {"cubic": 1}).windows("a", "b") == (None, None)


@pytest.mark.parametrize("name", ["-", "unknown", "None", "n/a", "?", "", " ", "NULL", None])
def test_controller__placeholder__is_unknown(name: str | None) -> None:
    assert known_controller(name) == ""
    pair = traffic({name: 100}, {name: 100}).pair("a", "b")
    assert controllers_relation(*pair) == "unknown"


@pytest.mark.parametrize(
    ("control", "treated", "relation"),
    [
        ({"cubic": 100}, {"cubic": 100}, "equal"),
        ({"BBR": 100}, {"bbr": 100}, "equal"),
        ({"cubic": 1000}, {"cubic": 995, "bbr": 5}, "equal"),
        ({"cubic": 100}, {"cubic": 60, "bbr": 40}, "unknown"),
        ({"cubic": 100}, {"cubic": 60, None: 40}, "unknown"),
        ({"cubic": 100}, {"cubic": 40, "bbr": 60}, "different"),
    ],
)
def test_arms__of_one_controller__are_equal_only_if_nearly_all_records_agree(
    control: dict[str | None, int], treated: dict[str | None, int], relation: str
) -> None:
    assert controllers_relation(*traffic(control, treated).pair("a", "b")) == relation


@pytest.mark.parametrize(
    ("arm", "seen", "severity"),
    [
        ("bbr", {"cubic": 60, "bbr": 40}, "blocks"),
        ("bbr", {"cubic": 5, "bbr": 95}, "warning"),
        ("bbr", {"bbr": 100, "": 100}, "ok"),
        ("learned", {"cubic": 60, "bbr": 40}, "warning"),
    ],
)
def test_compliance__another_controller_than_the_arms_own__is_found(
    arm: str, seen: dict[str, int], severity: str
) -> None:
    finding = check_fallback({"cubic": {"cubic": 100}, arm: seen})
    assert finding is not None
    assert (finding.name, finding.severity) == ("compliance", severity)


def test_compliance__no_controller_known__is_not_checked() -> None:
    assert check_fallback({"a": {"": 10}, "b": {}}) is None
