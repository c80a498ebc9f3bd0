"""bench/incident.py without a network: its scenario, and how a run becomes days."""

import json
import sys
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import incident

SECOND = 10**9


def test_a_tenth_of_the_upstream_is_left_in_the_middle() -> None:
    found = tomllib.loads(incident.scenario())
    assert len(found["path"]) == len(found["flow"]) == incident.LISTENERS + incident.OTHERS
    rates = [float(found["path"][f"listener-{n}"]["rate"].removesuffix("kbit")) for n in range(80)]
    assert 250 < min(rates) < 500
    assert 15_000 < max(rates) < 46_500
    assert rates == sorted(rates)
    (begin, left), (end, full) = found["link"]["upstream"]["rate_steps"]
    assert (left, full) == (incident.LEFT, found["link"]["upstream"]["rate"])
    seconds = [float(text.removesuffix("s")) for text in (begin, end, found["run"]["end"])]
    before, during = (days * incident.DAY_SECONDS for _, days in incident.PHASES[:2])
    assert seconds[:2] == [incident.LEAD_SECONDS + before, incident.LEAD_SECONDS + before + during]
    assert seconds[2] >= incident.LEAD_SECONDS + incident.DAYS * incident.DAY_SECONDS


def served(name: str, at: int, arm: str) -> dict[str, Any]:
    """What the server writes of a response, as far as it matters here."""
    service = {"start_unix_ns": at, "host": name, "listener": "lima", "scope": "response"}
    return {"engine": "serve", "group": "peru/x", "flow": 7, "start_ns": 5, "service": service,
            "choice": {"arm": {"arm": arm}}}  # fmt: skip


def test_a_song_has_the_arm_of_its_listener_and_the_middle_of_a_day_stays_its_middle(tmp_path: Path) -> None:
    began = int(time.time()) * SECOND
    (tmp_path / "began").write_text(str(began))
    day = incident.DAY_SECONDS * SECOND
    lines = [served("a.lima", began + day // 2, "bbr"), served("b.lima", began + 5 * day, "control")]
    # What comes later of the same listener does not move it.
    lines += [served("a.lima", began + 3 * day, "bbr")]
    (tmp_path / "served.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "players").mkdir()
    for name in ("a.lima", "b.lima", "unknown.lima"):
        request = {"group": "request", "bytes_delivered": 1}
        song = {"group": "listener", "flow": 0, "start_ns": 1, "bytes_delivered": 9, "bytes_acked": 0}
        text = json.dumps(request) + "\n" + json.dumps(song) + "\n"
        (tmp_path / "players" / f"{name}.jsonl").write_text(text)
    incident.stretch(tmp_path)
    songs = list(incident.lines_of(tmp_path / "played" / "records.jsonl"))
    assert [song["choice"]["arm"]["arm"] for song in songs] == ["bbr", "control"]
    assert [song["group"] for song in songs] == ["before", "during"]
    assert [(song["flow"], song["bytes_acked"]) for song in songs] == [(7, 9), (7, 9)]
    times = [datetime.fromtimestamp(song["service"]["start_unix_ns"] / SECOND, UTC) for song in songs]
    assert [(at.hour, at.minute) for at in times] == [(12, 0), (0, 0)]
    assert (times[1].date() - times[0].date()).days == 5
    ago = datetime.now(UTC).date() - times[0].date()
    assert ago.days == incident.DAYS
    assert len(list(incident.lines_of(tmp_path / "served" / "records.jsonl"))) == 3
