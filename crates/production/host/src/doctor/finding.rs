//! A finding.

use serde::Serialize;

use super::FindingId;

/// A fact about a host that its operator should know.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// What it is about.
    pub id: FindingId,
    /// The severity.
    pub severity: Severity,
    /// The confidence.
    pub confidence: Confidence,
    /// The finding in one sentence.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// Commands and steps that fix it.
    pub remedy: Vec<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does not work.
    Problem,
    /// It works partly, or will stop working.
    Warning,
    /// For information; no action needed.
    Note,
}

/// The confidence in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Read from the kernel or a file.
    Certain,
    /// The usual reason for the values read.
    Likely,
    /// One of several possible reasons.
    Possible,
}

impl Finding {
    pub(super) fn problem(id: FindingId, what: impl Into<String>) -> Self {
        Self::new(id, Severity::Problem, what)
    }

    pub(super) fn warning(id: FindingId, what: impl Into<String>) -> Self {
        Self::new(id, Severity::Warning, what)
    }

    pub(super) fn note(id: FindingId, what: impl Into<String>) -> Self {
        Self::new(id, Severity::Note, what)
    }

    fn new(id: FindingId, severity: Severity, what: impl Into<String>) -> Self {
        debug_assert!(id.severities().contains(&severity), "{id} is listed with this severity");
        let (confidence, remedy) = (Confidence::Certain, Vec::new());
        Self { id, severity, confidence, what: what.into(), why: String::new(), remedy }
    }

    pub(super) fn likely(self) -> Self {
        Self { confidence: Confidence::Likely, ..self }
    }

    pub(super) fn possible(self) -> Self {
        Self { confidence: Confidence::Possible, ..self }
    }

    pub(super) fn why(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), ..self }
    }

    pub(super) fn remedy(mut self, step: impl Into<String>) -> Self {
        self.remedy.push(step.into());
        self
    }
}

/// `1 connection`, `2 connections`.
pub(super) fn connections(count: usize) -> String {
    format!("{count} connection{}", if count == 1 { "" } else { "s" })
}
