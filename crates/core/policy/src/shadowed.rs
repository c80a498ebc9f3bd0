//! Rules that can never decide.

use crate::condition::Test;
use crate::policy::{Action, Rule};
use crate::window::TimeWindow;
use crate::{Policy, UnixTime};

impl Policy {
    /// A warning for each rule behind one that decides for all of its connections. Rules that only together have all of them
    /// are not found, nor patterns that contain others.
    pub(crate) fn shadowed(&self) -> impl Iterator<Item = String> {
        self.rules.iter().enumerate().filter_map(|(index, rule)| {
            let before = self.rules[..index].iter().find(|before| before.decides_for_all_of(rule))?;
            Some(format!(
                "{}:{}: this rule never decides: the rule in line {} decides for all of its connections; write this rule before \
                 that one, or remove it",
                self.name, rule.line, before.line
            ))
        })
    }

    /// A warning for each rule of a time window that has ended before `now`.
    pub fn expired_rules(&self, now: UnixTime) -> Vec<String> {
        let warning = |rule: &Rule| {
            let written = rule.conditions.iter().find_map(|it| match it.test {
                Test::Time(TimeWindow { until: Some(until), .. }) if until <= now => {
                    Some(&it.written)
                }
                _ => None,
            })?;
            let (name, line) = (&self.name, rule.line);
            Some(format!(
                "{name}:{line}: this rule never decides: `{written}` is past; remove it, or write a later time"
            ))
        };
        self.rules.iter().filter_map(warning).collect()
    }
}

impl Rule {
    /// Whether it decides for all connections that match the later rule. An experiment or a table may pass them on.
    fn decides_for_all_of(&self, later: &Self) -> bool {
        let is_implied = |test: &Test| later.conditions.iter().any(|it| it.test.implies(test));
        matches!(self.action, Action::Settings(_))
            && self.conditions.iter().all(|condition| is_implied(&condition.test))
    }
}

impl Test {
    /// Whether all connections that pass this test pass the other one.
    fn implies(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Client(own), Self::Client(all)) => all.contains_all(own),
            (Self::Listener(own), Self::Listener(all))
            | (Self::Sni(own), Self::Sni(all))
            | (Self::Host(own), Self::Host(all))
            | (Self::Path(own), Self::Path(all)) => is_subset(own, all),
            (Self::Asn(own), Self::Asn(all)) => is_subset(own, all),
            (Self::Country(own), Self::Country(all)) => is_subset(own, all),
            (Self::Time(own), Self::Time(all)) => own.is_within(all),
            (Self::Query(own), Self::Query(all)) | (Self::Cookie(own), Self::Cookie(all)) => {
                own.name == all.name && is_subset(&own.values, &all.values)
            }
            (Self::Header(own), Self::Header(all)) => {
                own.name.eq_ignore_ascii_case(&all.name) && is_subset(&own.values, &all.values)
            }
            (Self::Size { min, below }, Self::Size { min: least, below: most }) => {
                least <= min && below <= most
            }
            _ => false,
        }
    }
}

impl TimeWindow {
    /// Whether all of its times are in the other window, as far as their spans show.
    fn is_within(&self, all: &Self) -> bool {
        let same_hours = (all.hours, all.days, all.ahead) == (self.hours, self.days, self.ahead);
        let always = all.hours.is_none() && all.days == 0x7f;
        let since = all.since.is_none_or(|all| self.since.is_some_and(|own| all <= own));
        let until = all.until.is_none_or(|all| self.until.is_some_and(|own| own <= all));
        (same_hours || always) && since && until
    }
}

fn is_subset<T: PartialEq>(own: &[T], all: &[T]) -> bool {
    own.iter().all(|it| all.contains(it))
}
