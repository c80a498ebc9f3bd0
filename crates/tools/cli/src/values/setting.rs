//! `KEY=VALUE`, which overrides a value of a scenario.

use std::fmt;
use std::str::FromStr;

/// A key of a scenario and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    key: String,
    value: String,
}

impl Setting {
    /// The key and its value.
    pub(crate) fn pair(&self) -> (String, String) {
        (self.key.clone(), self.value.clone())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value } = self;
        write!(f, "{key}={value}")
    }
}

impl FromStr for Setting {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err("expected KEY=VALUE, such as path.loss=2%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_may_contain_more_equals_signs() {
        let setting: Setting = "path.queue=codel:target=5ms".parse().unwrap();
        assert_eq!(setting.value, "codel:target=5ms");
        for text in ["path.loss", "=2%", ""] {
            text.parse::<Setting>().unwrap_err();
        }
    }
}
