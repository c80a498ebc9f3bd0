//! The files that make a desired state survive a reboot.

use super::host::HostContext;
use super::setting::{SettingKey, Value};

/// Read after `99-sysctl.conf`, systemd's link to `/etc/sysctl.conf` (sysctl.d(5)).
pub(crate) const SYSCTLS: &str = "/etc/sysctl.d/99-uncork.conf";
const MODULES: &str = "/etc/modules-load.d/uncork.conf";
const UNIT: &str = "/etc/systemd/system/uncork-host.service";
/// The link that `systemctl enable` creates for `WantedBy=multi-user.target`.
pub(crate) const ENABLED: &str = "/etc/systemd/system/multi-user.target.wants/uncork-host.service";
/// The files that uncork writes.
pub(crate) const FILES: [&str; 3] = [SYSCTLS, MODULES, UNIT];
const HEAD: &str = "# Written by `uncork host apply`; `uncork host revert` removes it.\n";

/// The files that load `modules` and set `sysctls` at boot, and then apply the desired state.
pub(crate) fn files(
    modules: &[String],
    sysctls: &[(SettingKey, Value)],
    context: &HostContext,
) -> Vec<(SettingKey, Value)> {
    let mut sysctls: Vec<_> = sysctls.iter().collect();
    sysctls.sort_by_key(|(setting, value)| setting.apply_rank(value));
    let line = |(setting, value): &&(SettingKey, Value)| format!("{setting} = {value}\n");
    let mut files = Vec::new();
    if !sysctls.is_empty() {
        files.push(file(SYSCTLS, HEAD.to_owned() + &sysctls.iter().map(line).collect::<String>()));
    }
    if !modules.is_empty() {
        files.push(file(MODULES, format!("{HEAD}{}\n", modules.join("\n"))));
    }
    // The unit applies settings that sysctl.d cannot, and undoes changes that a power failure
    // interrupted.
    files.push(file(UNIT, unit(context)));
    files.push((SettingKey::Link { path: ENABLED.to_owned() }, Value::text(UNIT)));
    files
}

fn file(path: &str, text: String) -> (SettingKey, Value) {
    (SettingKey::File { path: path.to_owned() }, Value::Text { text })
}

fn unit(context: &HostContext) -> String {
    let [program, state] = [&context.program, &context.state].map(|path| quoted(path));
    format!(
        "{HEAD}[Unit]\n\
         Description=Apply the desired state of uncork host\n\
         Wants=network-online.target\n\
         After=network-online.target systemd-sysctl.service\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart={program} host apply --boot --state-dir {state}\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}

/// Quotes a word for a command line (systemd.service(5)).
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('%', "%%").replace('$', "$$"))
}
