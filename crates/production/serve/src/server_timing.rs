//! The clients that receive `Server-Timing`.

use std::net::IpAddr;
use std::str::FromStr;

use uncork_policy::{Prefix, Prefixes};

/// The clients that get `Server-Timing`: round-trip time, controller and arm.
///
/// A client that knows its arm can choose it, by another cookie. So `On` withholds the arm, and the
/// controller where an experiment decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerTiming {
    /// All, without the arms of experiments.
    #[default]
    On,
    /// All, with the arms of experiments.
    Arms,
    /// None.
    Off,
    /// Those in these networks, with the arms of experiments.
    For(Prefixes),
}

impl ServerTiming {
    pub(crate) fn is_for(&self, client: IpAddr) -> bool {
        match self {
            Self::On | Self::Arms => true,
            Self::Off => false,
            Self::For(networks) => networks.contains(client),
        }
    }

    /// Whether clients learn which arm of an experiment they are in.
    pub(crate) fn has_arms(&self) -> bool {
        matches!(self, Self::Arms | Self::For(_))
    }
}

impl FromStr for ServerTiming {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Self::On),
            "arms" => Ok(Self::Arms),
            "off" => Ok(Self::Off),
            networks => {
                let networks = networks.split(',').map(|it| it.trim().parse::<Prefix>());
                let networks = networks.collect::<Result<Vec<_>, _>>();
                let wrong = |error| format!("{error}, or `on`, or `arms`, or `off`");
                networks.map(|it| Self::For(Prefixes::new(it))).map_err(wrong)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_for_all_or_none_or_some() {
        let is_for = |text: &str, client: &str| {
            text.parse::<ServerTiming>().unwrap().is_for(client.parse().unwrap())
        };
        assert!(is_for("on", "192.0.2.1") && !is_for("off", "192.0.2.1"));
        assert!(is_for("arms", "192.0.2.1"));
        let has_arms = |text: &str| text.parse::<ServerTiming>().unwrap().has_arms();
        assert!(has_arms("arms") && has_arms("192.0.2.0/24") && !has_arms("on"));
        assert!(!ServerTiming::default().has_arms());
        let networks = "10.0.0.0/8, 2001:db8::/32";
        assert!(is_for(networks, "::ffff:10.1.2.3") && is_for(networks, "2001:db8::1"));
        assert!(!is_for(networks, "192.0.2.1"));
        let error = "of".parse::<ServerTiming>().unwrap_err();
        assert!(error.starts_with("not a network") && error.ends_with("or `off`"), "{error}");
    }
}
