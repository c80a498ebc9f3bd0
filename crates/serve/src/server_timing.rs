//! Who is told of the connection by `Server-Timing`.

use std::net::IpAddr;
use std::str::FromStr;

use uncork_policy::{Prefix, Prefixes};

/// The clients whose responses have `Server-Timing`, which tells round-trip time, controller and arm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerTiming {
    /// All.
    #[default]
    On,
    /// None.
    Off,
    /// Those in these networks.
    For(Prefixes),
}

impl ServerTiming {
    pub(crate) fn is_for(&self, client: IpAddr) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
            Self::For(networks) => networks.contains(client),
        }
    }
}

impl FromStr for ServerTiming {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            networks => {
                let networks = networks.split(',').map(|it| it.trim().parse::<Prefix>());
                let networks = networks.collect::<Result<Vec<_>, _>>();
                let wrong = |error| format!("{error}, or `on`, or `off`");
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
        let networks = "10.0.0.0/8, 2001:db8::/32";
        assert!(is_for(networks, "::ffff:10.1.2.3") && is_for(networks, "2001:db8::1"));
        assert!(!is_for(networks, "192.0.2.1"));
        let error = "of".parse::<ServerTiming>().unwrap_err();
        assert!(error.starts_with("not a network") && error.ends_with("or `off`"), "{error}");
    }
}
