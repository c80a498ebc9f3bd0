//! The settings in effect on a connection.

use std::sync::Arc;

use super::chosen::Chosen;

/// The settings in effect on a connection from a certain time on, for records and headers.
#[derive(Debug)]
pub(crate) struct ActiveSettings {
    chosen: Arc<Chosen>,
    /// The chosen controller, if one was chosen.
    wanted: Option<String>,
    cc: String,
    timing: String,
}

impl ActiveSettings {
    /// `chosen` asked the transport for the controller `wanted`; `cc` is in effect.
    pub(crate) fn new(chosen: &Arc<Chosen>, wanted: Option<&str>, cc: String) -> Self {
        let timing = timing(&cc, chosen.arm());
        Self { chosen: Arc::clone(chosen), wanted: wanted.map(str::to_owned), cc, timing }
    }

    pub(crate) fn chosen(&self) -> &Arc<Chosen> {
        &self.chosen
    }

    /// The controller in effect, by the transport's name.
    pub(crate) fn cc(&self) -> &str {
        &self.cc
    }

    /// The choice as recorded.
    pub(crate) fn choice(&self) -> Option<uncork_flow::Choice> {
        self.chosen.recorded(self.wanted.as_deref())
    }

    /// The experiment's arm, if an experiment decided.
    pub(crate) fn assignment(&self) -> Option<&uncork_flow::Arm> {
        self.chosen.assignment()
    }

    /// The metrics of the `Server-Timing` header: the controller and the experiment's arm. Without
    /// `has_arms` nothing where an experiment decides, because the controller gives the arm away.
    pub(crate) fn server_timing(&self, has_arms: bool) -> &str {
        if has_arms || self.assignment().is_none() { &self.timing } else { "" }
    }
}

fn timing(cc: &str, arm: Option<&str>) -> String {
    let mut value = format!("cc;desc=\"{}\"", escaped(cc));
    if let Some(arm) = arm {
        value.extend([", arm;desc=\"", &escaped(arm), "\""]);
    }
    value
}

/// Escapes text for a quoted string (RFC 9110 §5.6.4). Characters that headers do not allow become
/// question marks.
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
    fn server_timing_is_a_valid_header_for_any_arm_name() {
        let value = |arm| HeaderValue::try_from(timing("bbr", arm)).expect("a header");
        assert_eq!(value(None), "cc;desc=\"bbr\"");
        assert_eq!(value(Some("may/b b")), "cc;desc=\"bbr\", arm;desc=\"may/b b\"");
        assert_eq!(value(Some("a\"b\\/é\n")), "cc;desc=\"bbr\", arm;desc=\"a\\\"b\\\\/??\"");
    }
}
