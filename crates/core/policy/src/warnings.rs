//! Conditions that never match on a server, and rules that never decide.

use std::collections::{BTreeSet, HashSet};

use uncork_cc::{InLinux, Missing};

use crate::Policy;
use crate::condition::Test;
use crate::glob::Glob;

impl Policy {
    /// A warning for each condition that never matches on a server with these listeners (`None`: any), with
    /// or without databases of client origins. In a policy shared by several servers such conditions are
    /// normal. A rule behind one that decides for all of its connections is a warning, too, and a controller that Linux calls by another name.
    pub fn warnings(&self, listeners: Option<&[&str]>, has_databases: bool) -> Vec<String> {
        let unmatched = |globs: &[Glob]| {
            let listeners = listeners?;
            let is_matched = listeners.iter().any(|name| matches(globs, name));
            let known = || format!("there is `{}`", listeners.join("`, `"));
            (!is_matched).then(known)
        };
        self.warnings_of(unmatched, has_databases)
    }

    /// The same for a server with local ports as listeners. A port without a name has its number as its name.
    pub fn warnings_by_port(&self, named: &[(String, u16)], has_databases: bool) -> Vec<String> {
        let ports: HashSet<u16> = named.iter().map(|(_, port)| *port).collect();
        let unmatched = |globs: &[Glob]| {
            let mut unnamed = (1..=u16::MAX).filter(|port| !ports.contains(port));
            let is_matched = named.iter().any(|(name, _)| matches(globs, name))
                || unnamed.any(|port| matches(globs, &port.to_string()));
            (!is_matched).then(|| match named {
                [] => "ports have their numbers as names; name one with --listener NAME=PORT"
                    .to_owned(),
                named => {
                    let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
                    format!("there is `{}`, and other ports by their numbers", names.join("`, `"))
                }
            })
        };
        self.warnings_of(unmatched, has_databases)
    }

    /// `unmatched` says which listeners there are, if none of them matches.
    fn warnings_of(
        &self,
        unmatched: impl Fn(&[Glob]) -> Option<String>,
        has_databases: bool,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        for rule in &self.rules {
            for condition in &rule.conditions {
                let reason = match &condition.test {
                    Test::Listener(globs) => unmatched(globs)
                        .map(|known| format!(" never matches: no such listener; {known}")),
                    Test::Asn(_) | Test::Country(_) if !has_databases => {
                        Some(" never matches without a database: use one with --geo".to_owned())
                    }
                    _ => None,
                };
                let (name, line, written) = (&self.name, rule.line, &condition.written);
                warnings.extend(reason.map(|reason| format!("{name}:{line}: `{written}`{reason}")));
            }
        }
        warnings.extend(self.shadowed());
        warnings.extend(self.names_of_others());
        warnings.extend(self.without_resume());
        warnings
    }

    /// A warning for initial windows: a server cannot set them over TCP.
    pub fn window_warning(&self) -> Option<String> {
        let sets = self.settings().any(|settings| settings.initial_window.is_some());
        sets.then(|| {
            format!(
                "{}: `initial_window` holds for HTTP/3 only: over TCP apply the policy to this server's cgroup with `uncork \
                 steer apply`, too",
                self.name
            )
        })
    }

    /// Controllers that do not resume, although `resume` is set.
    fn without_resume(&self) -> BTreeSet<String> {
        let resuming = self.settings().filter(|settings| settings.resume);
        let others = resuming
            .filter_map(|settings| settings.tcp.as_deref())
            .filter(|tcp| InLinux::with_resume(tcp).is_none());
        let warning = |tcp| {
            format!(
                "{}: `resume` holds for QUIC only with `tcp = {tcp}`; write a controller of `uncork kernel load --resume`, such \
                 as uncork_cubic",
                self.name
            )
        };
        others.map(warning).collect()
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

fn matches(globs: &[Glob], name: &str) -> bool {
    globs.iter().any(|glob| glob.matches(name.as_bytes()))
}
