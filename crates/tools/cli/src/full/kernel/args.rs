//! The arguments of `uncork kernel`.

use clap::{Args, Subcommand};
use uncork_kernel::{Algorithm, ResumeNetworks};

use crate::values::TextFormat;

const EXAMPLES: &str = "\
Examples:
  sudo uncork kernel status
  sudo uncork kernel load
  sudo uncork kernel unload";

const LIST_EXAMPLES: &str = "\
Example:
  uncork kernel list";

const LOAD_EXAMPLES: &str = "\
Examples:
  sudo uncork kernel load
  sudo sysctl net.ipv4.tcp_congestion_control=uncork_bbr3
  sudo uncork kernel load --default uncork_bbr3 uncork_cubic
  sudo uncork kernel load --resume uncork_cubic";

const LOAD_AFTER: &str = "\
It needs Linux 6.1 or newer with BTF, CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (root has them), and a BPF file system at \
/sys/fs/bpf. Without --default it changes no default: programs, sysctls and routes choose the controller by its name. It stays until \
`uncork kernel unload` or a reboot.

Exit status: 0 loaded, 1 it was loaded before, 2 wrong usage, 3 not possible on this machine, 5 a bug.";

const UNLOAD_EXAMPLES: &str = "\
Examples:
  sudo uncork kernel unload
  sudo uncork kernel unload uncork_prague";

const UNLOAD_AFTER: &str = "\
Connections that use it keep it until they end. A controller that is named is unregistered also if its pin is not there: another \
user may have moved it (this needs CAP_SYS_ADMIN, and Linux 6.11). If it is the default of this network namespace, \
the default before `load --default` is restored, or else cubic (or reno). Another network namespace that has it as its default keeps an old copy for new connections, until its \
default is set.

Exit status: 0 unloaded, 1 it was not loaded, 2 wrong usage, 3 not possible on this machine, 5 a bug.";

const UPGRADE_EXAMPLES: &str = "\
Examples:
  sudo uncork kernel upgrade
  sudo uncork kernel upgrade uncork_bbr3";

const UPGRADE_AFTER: &str = "\
New connections get the controller of this program; open ones keep theirs. One that was loaded with --resume still resumes, but \
forgets what it has observed. It is always available, but \
before Linux 6.4 it cannot be chosen by name for a moment. A network namespace with this default keeps its copy until the \
default is set: this is done in the current namespace, and as root in those of all processes and of `ip netns`. Others are reported.

Exit status: 0 upgraded, 1 none is loaded, 2 wrong usage, 3 not possible on this machine, 5 a bug.";

const STATUS_EXAMPLES: &str = "\
Examples:
  sudo uncork kernel status
  sudo uncork kernel status --format json";

const STATUS_AFTER: &str = "\
Connections are those of all network namespaces that this user may enter; the default is that of the current one.

Exit status: 0 shown, 2 wrong usage, 3 this machine cannot load controllers (the reason is shown), 5 a bug.";

/// Run the library's controllers in the Linux kernel, by BPF (docs/reference/kernel.md)
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct KernelArgs {
    #[command(subcommand)]
    pub(super) command: KernelCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum KernelCommand {
    /// List the controllers that this program can load
    #[command(before_help = LIST_EXAMPLES)]
    List,
    /// Load controllers, so that sockets can choose them
    #[command(before_help = LOAD_EXAMPLES, after_help = LOAD_AFTER)]
    Load {
        /// Controllers
        #[arg(value_name = "NAME", default_value = "uncork_bbr3", value_parser = parse)]
        names: Vec<Algorithm>,
        /// Make the first the default of this network namespace
        #[arg(long)]
        default: bool,
        /// Careful Resume (RFC 9959): register NAME_r, too, with connections that begin with what an earlier one of the client network
        /// observed, for this many networks [default: off; without a number: 65536]
        #[arg(long, value_name = "NETWORKS", num_args = 0..=1, require_equals = true, default_missing_value = "65536")]
        resume: Option<ResumeNetworks>,
    },
    /// Replace loaded controllers by those of this program
    #[command(before_help = UPGRADE_EXAMPLES, after_help = UPGRADE_AFTER)]
    Upgrade {
        /// Controllers; default: all that are loaded
        #[arg(value_name = "NAME", value_parser = parse)]
        names: Vec<Algorithm>,
    },
    /// Unload controllers
    #[command(before_help = UNLOAD_EXAMPLES, after_help = UNLOAD_AFTER)]
    Unload {
        /// Controllers; default: all that are loaded
        #[arg(value_name = "NAME", value_parser = parse)]
        names: Vec<Algorithm>,
    },
    /// Show which controllers are loaded, and who uses them
    #[command(before_help = STATUS_EXAMPLES, after_help = STATUS_AFTER)]
    Status {
        /// Output format
        #[arg(long, default_value = "human")]
        format: TextFormat,
    },
}

fn parse(name: &str) -> Result<Algorithm, String> {
    name.parse().map_err(|error: uncork_kernel::Error| error.to_string())
}
