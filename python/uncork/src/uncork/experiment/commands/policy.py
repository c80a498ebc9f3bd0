"""`policy`: from a verdict to the policy that rolls it out in steps."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from uncork.experiment.commands.common import share
from uncork.experiment.commands.design import connection_settings
from uncork.experiment.commands.output import deliver
from uncork.experiment.policyfile import Arm
from uncork.experiment.ramp import Ramp, ramp_policy
from uncork.measure.errors import InputError
from uncork.measure.files import read_json


def run_policy(arguments: argparse.Namespace, _: str) -> int:
    result = read_json(arguments.result, "name the result.json of analyze")
    if not isinstance(result, dict) or "facts" not in result:
        raise InputError(str(arguments.result), "not a result of analyze", "name the result.json of analyze")
    facts = result["facts"]
    arms = [
        Arm(facts[name], _settings(text, f"--{name}", controller))
        for name, text, controller in zip(
            ("control", "treated"), (arguments.control, arguments.treated), facts["controllers"], strict=True
        )
    ]
    step = share(arguments.step, "--step")
    ramp = Ramp(arms[0], arms[1], arguments.key, step, arguments.unit, arguments.result.name)
    text = ramp_policy(result, ramp)
    deliver(text, arguments.output, "policy")
    return 0


def _settings(text: str | None, option: str, controller: str) -> Mapping[str, str]:
    """`quic=bbr3,tcp=bbr` as a mapping; by default the kernel's controller of the records."""
    if text is None:
        if not controller:
            raise InputError(option, "the records do not name the controller", f"write {option} tcp=NAME")
        return {"tcp": controller}
    return connection_settings(text, option)
