//! Conditions that flat tables do not support.

use thiserror::Error;

use super::{MAX_ARMS, MAX_RULES, MAX_SALT, Unit};
use crate::condition::Test;
use crate::policy::{Action, Rule};
use crate::{Policy, Settings};

/// Why a policy cannot be made flat.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {problem}; {remedy}")]
pub struct FlatError {
    /// The file and, if the error is in a rule, the line.
    pub place: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

const REMEDY: &str = "remove it, or serve with `uncork serve --policy`";

/// Looks for everything that is not known when a connection is accepted.
pub(super) fn check(policy: &Policy) -> Result<(), FlatError> {
    if policy.rules.len() > MAX_RULES {
        let problem = format!("{} rules; a kernel takes {MAX_RULES}", policy.rules.len());
        return Err(whole(policy, problem, "join rules that use the same settings"));
    }
    if !policy.has_table() {
        return Err(whole(policy, "its table was not read".to_owned(), "give its file"));
    }
    policy.rules.iter().try_for_each(|rule| check_rule(policy, rule))
}

fn check_rule(policy: &Policy, rule: &Rule) -> Result<(), FlatError> {
    for condition in &rule.conditions {
        let what = match condition.test {
            Test::Sni(_) => "the server name of the TLS handshake",
            Test::Host(_) => "the host of a request",
            Test::Path(_) => "the path of a request",
            Test::Query(_) => "the query of a request",
            Test::Header(_) => "the header of a request",
            Test::Cookie(_) => "the cookie of a request",
            Test::Size { .. } => "the size of a response",
            Test::Listener(_)
            | Test::Client(_)
            | Test::Asn(_)
            | Test::Country(_)
            | Test::Time(_) => continue,
        };
        let problem = format!("`{}`: the kernel does not know {what}", condition.written);
        return Err(in_rule(policy, rule, problem, REMEDY));
    }
    let Action::Experiment(index) = rule.action else { return Ok(()) };
    let Some(experiment) = policy.experiments.get(index) else { return Ok(()) };
    let named = |problem: &str| format!("experiment `{}`: {problem}", experiment.name);
    if experiment.unit != Unit::Prefix {
        let problem = named(&format!("the kernel does not know {}", experiment.unit));
        return Err(in_rule(policy, rule, problem, "write unit = \"prefix\""));
    }
    if experiment.salt.len() > MAX_SALT {
        let problem = named(&format!("the kernel hashes a salt of {MAX_SALT} bytes at most"));
        return Err(in_rule(policy, rule, problem, "give it a short `salt`"));
    }
    if experiment.arms.len() > MAX_ARMS {
        let problem = named(&format!("the kernel takes {MAX_ARMS} arms at most"));
        return Err(in_rule(policy, rule, problem, "use fewer arms"));
    }
    Ok(())
}

/// Refuses conditions that the client's network does not decide.
pub(super) fn check_by_network(policy: &Policy, remedy: &str) -> Result<(), FlatError> {
    let default = &policy.default;
    let window = default.initial_window.map(|_| "initial_window");
    if let Some(key) = unknown_to_routes(default).or(window) {
        let problem = format!("`{key}` in [default]: clients without a route do not get it");
        return Err(whole(policy, problem, remedy));
    }
    for rule in &policy.rules {
        for condition in &rule.conditions {
            let what = match condition.test {
                Test::Listener(_) => "the listener",
                Test::Time(_) => "the time",
                _ => continue,
            };
            let problem = format!("`{}`: a route does not know {what}", condition.written);
            return Err(in_rule(policy, rule, problem, remedy));
        }
        let key = match &rule.action {
            Action::Settings(settings) => unknown_to_routes(settings),
            Action::Experiment(index) => {
                let arms = policy.experiments.get(*index).into_iter().flat_map(|it| &it.arms);
                arms.map(|arm| &arm.settings).find_map(unknown_to_routes)
            }
            Action::Table(_) => {
                let arms = policy.table.iter().flat_map(|table| &table.arms);
                arms.map(|(_, settings)| settings).find_map(unknown_to_routes)
            }
        };
        if let Some(key) = key {
            let problem = format!("`{key}`: a route sets none");
            return Err(in_rule(policy, rule, problem, remedy));
        }
    }
    Ok(())
}

/// A setting that routes do not have.
fn unknown_to_routes(settings: &Settings) -> Option<&'static str> {
    let is_set = [
        ("pacing_cap", settings.pacing_cap.is_some()),
        ("initial_rate", settings.initial_rate.is_some()),
    ];
    is_set.into_iter().find_map(|(key, is_set)| is_set.then_some(key))
}

fn in_rule(policy: &Policy, rule: &Rule, problem: String, remedy: &str) -> FlatError {
    let place = format!("{}:{}", policy.name, rule.line);
    FlatError { place, problem, remedy: remedy.to_owned() }
}

pub(super) fn whole(policy: &Policy, problem: String, remedy: &str) -> FlatError {
    FlatError { place: policy.name.to_string(), problem, remedy: remedy.to_owned() }
}
