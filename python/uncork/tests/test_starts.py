"""Metrics of the start of connections, and Careful Resume as a setting of arms."""

from __future__ import annotations

import ibis
import pytest

from uncork.experiment.commands.design import connection_settings
from uncork.experiment.measures import GUARDRAILS
from uncork.measure.assignment import settings_lines
from uncork.measure.errors import InputError
from uncork.measure.metrics import METRICS, available, missing
from uncork.measure.schema import Columns

START = {"start_early_sent_bytes", "start_early_resent_bytes", "start_lost_bytes", "start_sent_bytes"}


def test_records_without_a_start_have_the_proxy_alone() -> None:
    old = {"bytes_sent", "bytes_retransmitted"}
    assert missing(METRICS["early_resent"], old) == ("start_early_resent_bytes", "start_early_sent_bytes")
    assert "early_resent" not in available(old)
    assert {"early_resent", "start_lost"} <= set(available(old | START))
    assert missing(METRICS["start_resent"], old) == ()


def test_the_first_round_trips_are_a_guardrail() -> None:
    assert [limit.points for limit in GUARDRAILS if limit.measure.metric == "early_resent"] == [0.02]


def test_a_record_without_a_start_counts_for_neither_side_of_the_ratio() -> None:
    rows = ibis.memtable(
        {
            "start_early_sent_bytes": [40_000, None],
            "start_early_resent_bytes": [2_000, None],
            "start_rounds_to_100kb": [3, None],
        },
        schema={
            "start_early_sent_bytes": "int64",
            "start_early_resent_bytes": "int64",
            "start_rounds_to_100kb": "int64",
        },
    )
    columns, metric = Columns(rows), METRICS["early_resent"]
    assert metric.per is not None
    found = rows.select(of=metric.value(columns), per=metric.per(columns)).to_pandas()
    assert found.sum().to_list() == [2_000, 40_000]
    rounds = rows.select(rounds=METRICS["start_rounds"].value(columns)).to_pandas()["rounds"]
    assert rounds.dropna().to_list() == [3.0]


def test_resume_is_a_flag_of_a_policy() -> None:
    settings = connection_settings("quic=cubic,resume=true", "--arm resume:")
    assert settings_lines(settings) == ['quic = "cubic"', "resume = true"]
    with pytest.raises(InputError, match="write resume=true or resume=false"):
        connection_settings("quic=cubic,resume=yes", "--arm resume:")
