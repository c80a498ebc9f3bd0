//! Shell commands equivalent to a change.

use super::journal::Change;
use super::route;
use super::setting::{DEFAULT_QDISC, Qdisc, Route, SettingKey, Value};

/// The commands equivalent to `change`.
pub(crate) fn commands(change: &Change) -> Vec<String> {
    let Change { setting, before, after } = change;
    match (setting, after) {
        (SettingKey::Module { name }, _) => vec![format!("modprobe {name}")],
        (SettingKey::Sysctl { key, namespace }, Value::Text { text }) => {
            let inside = namespace.as_ref().map(|name| format!("ip netns exec {} ", word(name)));
            vec![format!("{}sysctl -w {key}={}", inside.unwrap_or_default(), word(text))]
        }
        (SettingKey::Qdisc { interface }, Value::Qdisc(qdisc)) => vec![tc(interface, qdisc)],
        (SettingKey::Route { to }, after) => vec![ip(to, before, after)],
        (SettingKey::File { path }, Value::Text { text }) => {
            vec![directory(path), format!("cat > {} << 'END'\n{text}END", word(path))]
        }
        (SettingKey::Link { path }, Value::Text { text }) => {
            vec![directory(path), format!("ln -sfn {} {}", word(text), word(path))]
        }
        (SettingKey::File { path } | SettingKey::Link { path }, _) => {
            vec![format!("rm {}", word(path))]
        }
        _ => vec![format!("# {setting}: uncork host apply")],
    }
}

fn tc(interface: &str, to: &Qdisc) -> String {
    let interface = word(interface);
    match &to.installed {
        None => format!("tc qdisc del dev {interface} root"),
        // A new mq gives its queues the default discipline.
        Some(_) if to.name == "mq" => {
            format!("tc qdisc replace dev {interface} root mq    # {DEFAULT_QDISC} below it")
        }
        Some(installed) if installed.options.is_some() => {
            format!("# uncork host apply restores {} of {interface} with its options", to.name)
        }
        Some(_) => format!("tc qdisc replace dev {interface} root {}", to.name),
    }
}

fn ip(to: &str, before: &Value, after: &Value) -> String {
    if let Value::Route(route) = after
        && let beyond = route::beyond_path(route)
        && !beyond.is_empty()
    {
        return format!(
            "# route to {to}: only `uncork host apply` keeps its {}",
            beyond.join(", ")
        );
    }
    let ip = if to.contains(':') { "ip -6 route" } else { "ip route" };
    match (before, after) {
        (Value::Absent, Value::Route(after)) => format!("{ip} add {to} {}", typed(after)),
        (_, Value::Route(after)) => format!("{ip} change {to} {}", typed(after)),
        (Value::Route(before), _) => format!("{ip} del {to} {}", deletable(before)),
        _ => String::new(),
    }
}

/// The route as `ip` takes it: the algorithm comes before the next hops.
fn typed(route: &Route) -> String {
    let hops = route.path.find(" nexthop").unwrap_or(route.path.len());
    let (path, hops) = route.path.split_at(hops);
    let lock = if route.locked { "lock " } else { "" };
    let algorithm = route.congctl.as_ref().map(|name| format!(" congctl {lock}{name}"));
    format!("{path}{}{hops}", algorithm.unwrap_or_default())
}

/// The path without the names of what it does not show.
fn deletable(route: &Route) -> &str {
    route.path.split_once(" [").map_or(&route.path, |(shown, _)| shown)
}

fn directory(path: &str) -> String {
    let parent = path.rsplit_once('/').map_or("/", |(parent, _)| parent);
    format!("mkdir -p {}", word(parent))
}

/// Quotes a word for a shell.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysctl_of_several_words_is_quoted() {
        let change = Change {
            setting: SettingKey::sysctl("net.ipv4.tcp_wmem"),
            before: Value::text("4096 16384 4194304"),
            after: Value::text("4096 16384 16000000"),
        };
        assert_eq!(commands(&change), ["sysctl -w net.ipv4.tcp_wmem='4096 16384 16000000'"]);
    }

    #[test]
    fn names_cannot_become_commands() {
        let setting = SettingKey::Sysctl {
            key: "net.ipv4.tcp_congestion_control".into(),
            namespace: Some("a;b'".into()),
        };
        let change = Change { setting, before: Value::Absent, after: Value::text("bbr") };
        assert_eq!(
            commands(&change),
            [r"ip netns exec 'a;b'\''' sysctl -w net.ipv4.tcp_congestion_control=bbr"]
        );
    }
}
