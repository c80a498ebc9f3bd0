"""Controllers in Python next to those of uncork."""

from typing import Any

import pyarrow as pa
import pytest

import uncork

pytestmark = pytest.mark.module

LINK = {"rate": "20mbit", "rtt": "40ms", "loss": "0%", "duration": "10s", "host_jitter": "none"}
MSS = 1448


class Answers:
    """Gives the same answer to each acknowledgement."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.acks: list[Any] = []

    def on_ack(self, ack: Any) -> Any:
        self.acks.append(ack)
        return self.answer


class Reno:
    """RFC 5681, with slow start and one reduction for each round trip."""

    def __init__(self) -> None:
        self.window, self.threshold, self.reduced = 10.0 * MSS, float("inf"), 0.0

    def on_ack(self, ack: Any) -> float:
        if ack.lost_bytes and ack.time - self.reduced > ack.smoothed_rtt:
            self.threshold = self.window = self.window / 2
            self.reduced = ack.time
        elif self.window < self.threshold:
            self.window += ack.acked_bytes
        else:
            self.window += ack.mss * ack.acked_bytes / self.window
        return self.window


def flows(*controllers: Any, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(uncork.race(controllers, **{**LINK, **options})).to_pylist()
    return found


def mbit(flow: dict[str, Any]) -> float:
    return float(flow["bytes_delivered"]) * 8 / 10 / 1e6


def test_an_object_with_two_flows_is_refused() -> None:
    """Both would have one state, and so one window."""
    one = Reno()
    with pytest.raises(uncork.InputError, match=r"flows\[2\]: this object has another flow"):
        uncork.race([one, "cubic", one], **LINK)


def test_a_window_is_kept_in_flight() -> None:
    fixed = Answers(20 * MSS)
    (flow,) = flows(fixed)
    assert flow["cc"] == "Answers"
    assert mbit(flow) == pytest.approx(20 * MSS * 8 / 0.040 / 1e6, rel=0.05)
    assert max(ack.in_flight for ack in fixed.acks) <= 20 * MSS
    assert sum(ack.acked_bytes for ack in fixed.acks) == flow["bytes_acked"]


def test_a_rate_is_paced() -> None:
    (flow,) = flows(Answers((10**6, 5e6)))
    assert mbit(flow) == pytest.approx(5, rel=0.05)
    assert flow["rtt_p95_ms"] < 45


def test_none_keeps_the_initial_window() -> None:
    (flow,) = flows(Answers(None))
    assert mbit(flow) == pytest.approx(10 * MSS * 8 / 0.040 / 1e6, rel=0.05)


def test_a_window_of_nothing_is_two_packets() -> None:
    (flow,) = flows(Answers(0))
    assert mbit(flow) == pytest.approx(2 * MSS * 8 / 0.040 / 1e6, rel=0.1)


def test_reno_in_python_is_reno() -> None:
    (own,) = flows(Reno(), loss="0.1%")
    (theirs,) = flows("reno", loss="0.1%")
    assert 0.75 < mbit(own) / mbit(theirs) < 1.33


def test_it_shares_a_link_with_others() -> None:
    own, cubic = flows(Reno(), "cubic", duration="30s")
    assert [own["cc"], cubic["cc"]] == ["Reno", "cubic"]
    assert min(own["bytes_delivered"], cubic["bytes_delivered"]) > 5e6
    assert own["bytes_delivered"] + cubic["bytes_delivered"] > 0.85 * 20e6 * 30 / 8


def test_equal_races_are_equal() -> None:
    found = [pa.table(uncork.race([Reno(), "bbr3"], seed=7).series) for _ in range(2)]
    assert found[0].equals(found[1])
    assert found[0].num_rows > 500


def test_an_exception_of_a_controller_ends_the_race() -> None:
    class Fails:
        def on_ack(self, ack: Any) -> None:
            raise ZeroDivisionError(f"at {ack.time:.0f} s")

    with pytest.raises(ZeroDivisionError, match="at 0 s"):
        flows(Fails())


@pytest.mark.parametrize(
    "answer",
    [
        "20",
        -1,
        float("nan"),
        float("inf"),
        1e16,
        (1,),
        (1, 2, 3),
        (1e4, -1),
        (1e4, 0),
        (1e4, None),
        [1e4, 1e6],
        {},
    ],
)
def test_an_answer_of_another_form_is_named(answer: Any) -> None:
    with pytest.raises(uncork.InputError) as caught:
        flows(Answers(answer))
    assert caught.value.place == "Answers.on_ack"
    assert repr(answer) in caught.value.problem
    assert "return a window in bytes" in caught.value.remedy


@pytest.mark.parametrize(
    ("controllers", "options", "place"),
    [
        ([], {}, "flows=[]"),
        ("cubic", {}, "flows='cubic'"),
        ([3], {}, "flows[0]"),
        ([Reno], {}, "flows[0]"),
        (["cubic", "bbr3\ud800"], {}, "flows[1]"),
        (["cubic", "bbr4"], {}, "flows: bbr4"),
        ([Reno()], {"rate": "5mbit,10mbit"}, "path"),
        ([Reno()], {"rate": 20e6}, "rate=20000000.0"),
        ([Reno()], {"duration": None}, "duration"),
        ([Reno()], {"duration": "0s"}, "duration=0s"),
        ([Reno()], {"duration": "1d", "rate": "10gbit"}, "duration=1d"),
        ([Reno()], {"seed": "x"}, "seed='x'"),
    ],
)
def test_wrong_races_are_exceptions_with_place_and_remedy(
    controllers: Any, options: dict[str, Any], place: str
) -> None:
    with pytest.raises(uncork.InputError) as caught:
        uncork.race(controllers, **{**LINK, **options})
    assert caught.value.place == place
    assert caught.value.remedy
