//! The arguments of `uncork status`.

use clap::Args;

use crate::full::host::StateArgs;
use crate::values::TextFormat;

const EXAMPLES: &str = "\
Examples:
  sudo uncork status
  sudo uncork status --format json | jq .attention
  sudo nsenter --net=/run/netns/web uncork status  # of another network namespace";

const AFTER: &str = "\
It changes nothing. Settings are those of the current network namespace; the journals of others are listed. Without root, parts \
may not be visible: the output names them. `uncork host status`, `uncork kernel status` and `uncork steer status` have the details.

Exit status: 0 as it should be, 1 something needs attention (such as a dead guard, or a setting that another program changed), 2 wrong \
usage, 5 a bug.";

/// Show what of uncork is active on this host: settings, controllers, policies, tests, servers
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct StatusArgs {
    /// Output format
    #[arg(long, default_value = "human")]
    pub(super) format: TextFormat,
    #[command(flatten)]
    pub(super) state: StateArgs,
}
