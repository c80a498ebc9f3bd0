//! Shell commands equivalent to a change.

use super::journal::Change;
use super::knob::{DEFAULT_QDISC, Knob, Qdisc, Value};

/// The commands equivalent to `change`.
pub(crate) fn commands(change: &Change) -> Vec<String> {
    let Change { knob, before, after } = change;
    match (knob, after) {
        (Knob::Module { name }, _) => vec![format!("modprobe {name}")],
        (Knob::Sysctl { key, namespace }, Value::Text { text }) => {
            let inside = namespace.as_ref().map(|name| format!("ip netns exec {} ", word(name)));
            vec![format!("{}sysctl -w {key}={}", inside.unwrap_or_default(), word(text))]
        }
        (Knob::Qdisc { interface }, Value::Qdisc(qdisc)) => vec![tc(interface, qdisc)],
        (Knob::Route { to }, after) => vec![ip(to, before, after)],
        (Knob::File { path }, Value::Text { text }) => {
            vec![directory(path), format!("cat > {} << 'END'\n{text}END", word(path))]
        }
        (Knob::Link { path }, Value::Text { text }) => {
            vec![directory(path), format!("ln -sfn {} {}", word(text), word(path))]
        }
        (Knob::File { path } | Knob::Link { path }, _) => vec![format!("rm {}", word(path))],
        _ => vec![format!("# {knob}: uncork host apply")],
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
    let ip = if to.contains(':') { "ip -6 route" } else { "ip route" };
    match (before, after) {
        (Value::Absent, Value::Route(_)) => format!("{ip} add {to} {after}"),
        (_, Value::Route(_)) => format!("{ip} change {to} {after}"),
        (Value::Route(before), _) => format!("{ip} del {to} {}", before.path),
        _ => String::new(),
    }
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
            knob: Knob::sysctl("net.ipv4.tcp_wmem"),
            before: Value::text("4096 16384 4194304"),
            after: Value::text("4096 16384 16000000"),
        };
        assert_eq!(commands(&change), ["sysctl -w net.ipv4.tcp_wmem='4096 16384 16000000'"]);
    }

    #[test]
    fn names_cannot_become_commands() {
        let knob = Knob::Sysctl {
            key: "net.ipv4.tcp_congestion_control".into(),
            namespace: Some("a;b'".into()),
        };
        let change = Change { knob, before: Value::Absent, after: Value::text("bbr") };
        assert_eq!(
            commands(&change),
            [r"ip netns exec 'a;b'\''' sysctl -w net.ipv4.tcp_congestion_control=bbr"]
        );
    }
}
