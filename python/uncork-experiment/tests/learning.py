"""What tests of `uncork learn` have in common: settings for the made-up records of `demo`."""

from datetime import timedelta

from uncork_experiment.learn import demo
from uncork_experiment.learn.settings import Settings

KEY = "000102030405060708090a0b0c0d0e0f"
FIRST_DAY = int(demo.START.timestamp()) // 86_400
NOW = demo.START + timedelta(days=7, hours=1)
SETTINGS = Settings(
    experiment="explore",
    control="control",
    treated="bbr",
    arms={"control": {"tcp": "cubic"}, "bbr": {"tcp": "bbr"}},
    as_of=FIRST_DAY + 7,
    key=KEY,
    # Each of a dozen networks is more of the traffic than usually may be harmed.
    harmed=0.05,
)
