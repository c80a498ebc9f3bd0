"""What options are where none is given. It imports no engine, so that help and errors come at once."""

from __future__ import annotations

from collections.abc import Mapping

LARGE, SMALL = "large", "small"
CLASSES = (LARGE, SMALL)
GUARDRAILS = ("retransmitted=2pp", "aborted=0.5pp", "failed=1pp")
"""Those of `uncork experiment analyze` that are about all traffic, and add up over networks."""
OF_WINDOWS = ("early_resent=2pp", "start_resent=2pp", "queued=5pp")
"""More guardrails by default, if arms start connections in other ways. `start_resent` is the first one's
substitute in records without it."""
SITES = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
"""Networks between sites. Their traffic keeps the control arm by default."""
ROUNDS = 168
"""Rounds without a change that keep their inputs: a week of one each hour."""
QUIC, TCP = "quic", "tcp"
TRANSPORTS = (QUIC, TCP)

Value = str | int | float | list[str]

DEFAULTS: Mapping[str, Value] = {
    "experiment": "explore",
    "control": "control",
    "treated": "bbr",
    "arm": [],
    "share": "",
    "worth": "1%",
    "tolerate": "2%",
    "sure": "95%",
    "harmed": "0.2%",
    "half_life": 14.0,
    "dwell": 3,
    "changed": "20%",
    "confirm": "100%",
    "guardrail": list(GUARDRAILS),
    "prior": "",
    "control_settings": "quic=cubic,tcp=cubic",
    "treated_settings": "quic=bbr3,tcp=bbr",
    "unit": "cookie:uid",
    "rules": "",
    "listener": "",
    "place": "",
    "places": 100,
    "only": "",
    "random": "10%",
    "holdback": "1%",
    "ttl": 7,
    "site": list(SITES),
}
"""By the name in the namespace of argparse. Empty: none."""
