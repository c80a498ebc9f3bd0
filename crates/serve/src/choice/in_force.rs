//! What is in force on a connection.

use std::sync::Arc;

use super::chosen::Chosen;

/// What is in force on a connection from some time on, for those who tell of it.
#[derive(Debug)]
pub(crate) struct InForce {
    chosen: Arc<Chosen>,
    /// The controller that was chosen, if any was.
    wanted: Option<String>,
    cc: String,
    told: String,
}

impl InForce {
    /// `chosen` wants the controller `wanted` of its transport, which has put `cc` in force.
    pub(crate) fn new(chosen: &Arc<Chosen>, wanted: Option<&str>, cc: String) -> Self {
        let told = told(&cc, chosen.arm());
        Self { chosen: Arc::clone(chosen), wanted: wanted.map(str::to_owned), cc, told }
    }

    pub(crate) fn chosen(&self) -> &Arc<Chosen> {
        &self.chosen
    }

    /// The controller, as the transport calls it.
    pub(crate) fn cc(&self) -> &str {
        &self.cc
    }

    /// What records say of who chose it.
    pub(crate) fn choice(&self) -> Option<uncork_flow::Choice> {
        self.chosen.told(self.wanted.as_deref())
    }

    /// The arm of an experiment that decided.
    pub(crate) fn assignment(&self) -> Option<&uncork_flow::Arm> {
        self.chosen.assignment()
    }

    /// What `Server-Timing` says of it: the controller, and the arm of an experiment, by which pages can tell
    /// their own measurements apart.
    pub(crate) fn told(&self) -> &str {
        &self.told
    }
}

fn told(cc: &str, arm: Option<&str>) -> String {
    let mut value = format!("cc;desc=\"{}\"", escaped(cc));
    if let Some(arm) = arm {
        value.extend([", arm;desc=\"", &escaped(arm), "\""]);
    }
    value
}

/// Text for a quoted string (RFC 9110 §5.6.4). What no header takes becomes a question mark.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            ' '..='~' => escaped.push(c),
            _ => escaped.push('?'),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn server_timing_is_a_header_whatever_arms_are_called() {
        let told = |arm| HeaderValue::try_from(told("bbr", arm)).expect("a header");
        assert_eq!(told(None), "cc;desc=\"bbr\"");
        assert_eq!(told(Some("may/b b")), "cc;desc=\"bbr\", arm;desc=\"may/b b\"");
        assert_eq!(told(Some("a\"b\\/é\n")), "cc;desc=\"bbr\", arm;desc=\"a\\\"b\\\\/??\"");
    }
}
