"""A twin's predictions held to measurements, where the truth is drawn."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from learning import KEY
from pages import WIDTHS, assert_fits
from uncork.learn import demo
from uncork.learn.cli import main
from uncork.learn.lift import Estimate
from uncork.learn.twin import Trial, calibrate, controllers, in_kernel, predicted
from uncork.learn.twinpage import page
from uncork.measure.errors import InputError


def drawn(
    systems: int, slope: float, noise: float, seed: int = 1
) -> tuple[dict[str, Estimate], dict[str, Estimate], dict[str, float]]:
    """Predictions, measurements and truths of ASes: truth = 0.02 + slope * prediction + noise."""
    rng = np.random.default_rng(seed)
    of_twin, of_records, truth = {}, {}, {}
    for at in range(systems):
        name, prediction = f"AS{64_512 + at}", float(rng.normal(0.2, 0.3))
        true = 0.02 + slope * prediction + float(rng.normal(0, noise))
        of_twin[name] = Estimate(prediction, 0.02)
        of_records[name] = Estimate(true + float(rng.normal(0, 0.05)), 0.05)
        truth[name] = true
    return of_twin, of_records, truth


def test_a_twin_that_predicts_earns_its_prior() -> None:
    of_twin, of_records, _ = drawn(20, slope=0.8, noise=0.05)
    fit = calibrate(of_twin, of_records)
    assert fit.earned
    assert fit.skill > 0.8
    assert fit.rank_low > 0.7
    assert abs(fit.slope - 0.8) < 3 * fit.slope_error < 0.3


@pytest.mark.parametrize(
    ("systems", "slope", "noise"), [(20, 0.0, 0.2), (20, -0.8, 0.05), (7, 0.8, 0.02), (20, 0.3, 0.4)]
)
def test_a_twin_that_does_not_predict_earns_nothing(systems: int, slope: float, noise: float) -> None:
    """Unrelated, misleading, too few ASes, and hardly related."""
    of_twin, of_records, _ = drawn(systems, slope, noise)
    assert calibrate(of_twin, of_records).earned is False, "JSON has it, too"


def test_unrelated_twins_earn_nothing_by_chance() -> None:
    """At most 1 of 100."""
    earned = [calibrate(*drawn(12, 0.0, 0.2, seed)[:2]).earned for seed in range(100)]
    assert sum(earned) <= 1


def test_the_prior_covers_the_truth() -> None:
    """ASes that the line was not fitted to lie around it as far as it says."""
    scores = []
    for seed in range(40):
        of_twin, of_records, truth = drawn(24, 0.8, 0.1, seed)
        names = sorted(of_twin)
        fit = calibrate(of_twin, {name: of_records[name] for name in names[:16]})
        for name in names[16:]:
            expected = fit.prior(of_twin[name])
            scores.append((truth[name] - expected.lift) / expected.error)
    assert 0.9 < np.std(scores) < 1.25


def flows(groups: Sequence[str], clients: int, ccs: Mapping[str, float]) -> pa.Table:
    """A twin's runs of twenty: clients with the same path, and how fast each controller is on it."""
    rng = np.random.default_rng(1)
    rows = []
    for group in groups:
        for client in range(clients):
            rate = 2e7 * math.exp(rng.normal(0, 0.4))
            for nth, (cc, factor) in enumerate(ccs.items()):
                rows.append(
                    {
                        "group": group,
                        "cc": cc,
                        "seed": 1 + client // 20,
                        "flow": 3 * (client % 20) + nth,
                        "bytes_acked": 5_000_000,
                        "busy_ns": int(5e6 * 8e9 / (rate * factor)),
                        "completion_ns": 1,
                    }
                )
    return pa.Table.from_pylist(rows)


OF_QUIC = {"cubic": 1.0, "bbr3": 1.3, "bbr3:loss_floor": 1.1}


def test_pairs_of_clients_predict() -> None:
    found = predicted(flows(["as64512", "2001:db8::/48"], 60, OF_QUIC), "cubic", "bbr3")
    assert sorted(found) == ["2001:db8::/48", "AS64512"]
    one = found["AS64512"]
    assert one.lift == pytest.approx(math.log(1.3), abs=1e-6)
    assert one.error < 1e-6, "the same clients have both, so their spread cancels"


def test_too_few_clients_are_refused() -> None:
    with pytest.raises(InputError, match="--clients 40"):
        predicted(flows(["as64512"], 30, OF_QUIC), "cubic", "bbr3")
    of_twin, of_records, _ = drawn(2, 1.0, 0.1)
    with pytest.raises(InputError, match="2 ASes"):
        calibrate(of_twin, of_records)


@pytest.mark.parametrize(
    ("name", "controller"),
    [("bbr", "bbr1"), ("cubic", "cubic:linux"), ("reno", "reno"), ("uncork_bbr3", "bbr3"), ("htcp", "htcp")],
)
def test_the_kernels_controllers_are_the_librarys(name: str, controller: str) -> None:
    assert in_kernel(name) == controller


def test_arms_have_controllers_by_transport() -> None:
    arms = {"control": {"quic": "cubic", "tcp": "cubic"}, "bbr": {"quic": "bbr3", "tcp": "bbr"}}
    both = {"quic": ("cubic", "bbr3"), "tcp": ("cubic:linux", "bbr1")}
    assert controllers(arms, "control", "bbr") == both
    arms["bbr"] = {"tcp": "uncork_bbr3"}
    assert controllers(arms, "control", "bbr") == {"tcp": ("cubic:linux", "bbr3")}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version of records as `uncork steer record` writes them: whole connections, without sizes."""
    table = demo.table()
    for name, values in (
        ("engine", ["watch"] * len(table)),
        ("service_scope", ["connection"] * len(table)),
        ("size_bytes", pa.nulls(len(table), pa.int64())),
    ):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(values, table.schema.field(at).type))
    directory = tmp_path_factory.mktemp("steered")
    pq.write_table(table, directory / "records.parquet")
    words = [
        "plan",
        directory / "records.parquet",
        "-o",
        directory / "learned",
        "--key",
        KEY,
        "--only",
        "large",
    ]
    assert main([str(word) for word in words]) == 0
    assert main(["apply", str(directory / "learned")]) == 0
    return directory / "learned"


SYSTEMS = [f"as{number}" for number in (64501, 64502, 64511, 64512, 64521, 64522)]
OF_TCP = {"cubic:linux": 1.0, "bbr1": 1.3, "bbr3": 1.2}


def calibrated(store: Path, table: pa.Table, *words: str) -> int:
    pq.write_table(table, store / "flows.parquet")
    flows, page = str(store / "flows.parquet"), str(store / "twin.html")
    prior = ["--prior", str(store / "prior.json")]
    return main(["calibrate", str(store), flows, "-o", page, *prior, *words])


def test_records_of_the_kernel_calibrate_by_the_controllers_of_tcp(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrated(store, flows(SYSTEMS, 40, OF_TCP), "--transport", "tcp") == 0
    assert "6 ASes, bbr1 over cubic:linux: " in capsys.readouterr().out
    found = json.loads((store / "prior.json").read_text())
    assert (found["control"], found["treated"]) == ("cubic:linux", "bbr1")
    assert 'id="untried"' in (store / "twin.html").read_text(), "bbr3 over cubic:linux"
    # What cannot be written has been printed.
    wrong = ["calibrate", str(store), str(store / "flows.parquet"), "--transport", "tcp"]
    assert main([*wrong, "-o", str(store / "flows.parquet" / "below")]) == 3
    assert "6 ASes, bbr1 over cubic:linux: " in capsys.readouterr().out


def test_a_twin_that_moved_nothing_or_lacks_a_column_is_named() -> None:
    table = flows(["as64512"], 60, OF_QUIC)
    at = table.column_names.index("bytes_acked")
    nothing = table.set_column(at, "bytes_acked", pa.array([0] * len(table)))
    with pytest.raises(InputError, match="as64512: clients with cubic that moved nothing"):
        predicted(nothing, "cubic", "bbr3")
    with pytest.raises(InputError, match="has no column busy_ns"):
        predicted(table.drop_columns(["busy_ns"]), "cubic", "bbr3")
    with pytest.raises(InputError, match="column bytes_acked: it has null"):
        predicted(table.set_column(at, "bytes_acked", pa.nulls(len(table), pa.int64())), "cubic", "bbr3")


def test_a_twin_without_the_controllers_says_how_to_make_one(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = flows(SYSTEMS, 40, OF_TCP)
    assert calibrated(store, table) == 2
    assert "make the twin with --cc cubic --cc bbr3, or say --transport tcp" in capsys.readouterr().err


def test_networks_are_held_to_their_own_measurements(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Networks with lines of their own, against the predictions of the lines of their ASes."""
    networks = [f"198.18.{at}.0/24" for at in range(12)]
    assert calibrated(store, flows([*SYSTEMS, *networks], 40, OF_TCP), "--transport", "tcp") == 0
    printed = capsys.readouterr().out
    assert "6 ASes, bbr1 over" in printed, "networks are none of them"
    number = re.search(r"^(\d+) networks: rank correlation", printed, flags=re.M)
    assert number is not None, printed
    assert 8 <= int(number[1]) <= 12
    text = (store / "twin.html").read_text()
    ElementTree.fromstring(text.split("\n", 1)[1])
    assert 'id="by-network"' in text
    assert not any("/" in name for name in json.loads((store / "prior.json").read_text())["systems"])


def trial(slope: float) -> Trial:
    of_twin, of_records, _ = drawn(14, slope, 0.05)
    known = {name: of_records[name] for name in sorted(of_records)[:12]}
    others = {name: Estimate(one.lift / 2, 0.03) for name, one in of_twin.items()}
    fit = calibrate(of_twin, known)
    return Trial("cubic", "bbr3", fit, {"bbr3": of_twin, "bbr3:loss_floor": others})


def test_the_prior_is_of_other_systems_and_only_if_earned() -> None:
    found = json.loads(trial(0.8).prior())
    assert found["earned"]
    assert sorted(found["systems"]) == ["AS64524", "AS64525"]
    assert 0.03 < found["systems"]["AS64524"]["sd"] < 0.2
    assert json.loads(trial(0.0).prior())["systems"] == {}


def test_the_page_shows_predicted_and_measured_lifts() -> None:
    text = page(trial(0.8))
    ElementTree.fromstring(text.split("\n", 1)[1])
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<style>.*?</style>", "", text, flags=re.S))
    for words in ("may stand for", "AS64512", "bbr3:loss_floor", "ASes without data", "rank correlation"):
        assert words in text, words
    assert "may not stand for" in page(trial(0.0))


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_leaves_the_page(width: int, tmp_path: Path) -> None:
    assert_fits(page(trial(0.8)), width, tmp_path)
