//! Conditions that never match on a server.

use std::collections::BTreeSet;

use uncork_cc::{InLinux, Missing};

use crate::Policy;
use crate::condition::Test;

impl Policy {
    /// A warning for each condition that never matches on a server with these listeners (`None`: any), with
    /// or without databases of client origins. In a policy shared by several servers such conditions are
    /// normal. A controller that Linux calls by another name is a warning, too.
    pub fn warnings(&self, listeners: Option<&[&str]>, has_databases: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        for rule in &self.rules {
            for condition in &rule.conditions {
                let place = format!("{}:{}: `{}`", self.name, rule.line, condition.written);
                match &condition.test {
                    Test::Listener(globs) => {
                        let Some(listeners) = listeners else { continue };
                        let is_matched =
                            |name: &&str| globs.iter().any(|it| it.matches(name.as_bytes()));
                        if !listeners.iter().any(is_matched) {
                            let known = listeners.join("`, `");
                            warnings.push(format!(
                                "{place} never matches: no such listener; there is `{known}`"
                            ));
                        }
                    }
                    Test::Asn(_) | Test::Country(_) if !has_databases => {
                        warnings.push(format!(
                            "{place} never matches without a database: use one with --geo"
                        ));
                    }
                    _ => {}
                }
            }
        }
        warnings.extend(self.names_of_others());
        warnings
    }

    /// Controllers that Linux calls by another name, such as `bbr3`. A vendor's kernel may have them.
    fn names_of_others(&self) -> BTreeSet<String> {
        let written = self.settings().filter_map(|settings| settings.tcp.as_deref());
        let is_another =
            |written: &&str| InLinux::named(written).is_some_and(|it| it.name() != *written);
        let warning = |tcp| format!("{}: `tcp = {tcp}`: {}", self.name, Missing(tcp));
        written.filter(is_another).map(warning).collect()
    }
}
