//! A finding.

use serde::Serialize;

/// Something about a host that a person should know.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Stable name: `old-sockets`.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// How sure that is.
    pub confidence: Confidence,
    /// What it is, in one sentence.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// Commands and steps that mend it.
    pub remedy: Vec<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does not work.
    Problem,
    /// It works in part, or will stop.
    Warning,
    /// Good to know; nothing needs to be done.
    Note,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Read from the kernel or a file.
    Certain,
    /// The usual reason for what was read.
    Likely,
    /// One of several reasons.
    Possible,
}

impl Finding {
    pub(super) fn problem(id: &'static str, what: impl Into<String>) -> Self {
        Self::new(id, Severity::Problem, what)
    }

    pub(super) fn warning(id: &'static str, what: impl Into<String>) -> Self {
        Self::new(id, Severity::Warning, what)
    }

    pub(super) fn note(id: &'static str, what: impl Into<String>) -> Self {
        Self::new(id, Severity::Note, what)
    }

    fn new(id: &'static str, severity: Severity, what: impl Into<String>) -> Self {
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
