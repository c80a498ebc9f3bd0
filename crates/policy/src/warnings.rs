//! What in a policy can hold for nobody on a server.

use crate::Policy;
use crate::condition::Test;

impl Policy {
    /// What holds for nobody on a server whose listeners have these names, and that has databases of
    /// where clients are or not: each in a line with what to do. A policy that is for several servers may
    /// well have such rules.
    pub fn warnings(&self, listeners: &[&str], has_databases: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        for rule in &self.rules {
            for condition in &rule.conditions {
                let place = format!("{}:{}: `{}`", self.name, rule.line, condition.written);
                match &condition.test {
                    Test::Listener(globs) => {
                        let heard =
                            |name: &&str| globs.iter().any(|it| it.matches(name.as_bytes()));
                        if !listeners.iter().any(heard) {
                            let known = listeners.join("`, `");
                            warnings
                                .push(format!("{place} holds for no listener: there is `{known}`"));
                        }
                    }
                    Test::Asn(_) | Test::Country(_) if !has_databases => {
                        warnings
                            .push(format!("{place} holds for nobody: give a database with --geo"));
                    }
                    _ => {}
                }
            }
        }
        warnings
    }
}
