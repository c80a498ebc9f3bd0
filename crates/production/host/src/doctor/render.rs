//! A diagnosis as text.

use std::fmt;

use super::finding::{Confidence, Finding, Severity};
use super::{Diagnosis, Summary};

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, default, connections, connections_wanted, wanted, .. } = self;
        write!(f, "Linux {kernel}; default: {default}")?;
        if let Some(version) = self.bbr_version {
            write!(f, "; bbr is BBRv{version}")?;
        }
        let (own, unread) = (self.namespaces, self.namespaces_unread);
        write!(
            f,
            "\n{connections_wanted} of {connections} connections run {wanted}; {own} network namespace"
        )?;
        f.write_str(if own == 1 { " examined" } else { "s examined" })?;
        if unread > 0 { write!(f, ", {unread} not") } else { Ok(()) }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let confidence = match self.confidence {
            Confidence::Certain => "",
            Confidence::Likely => ", likely",
            Confidence::Possible => ", possibly",
        };
        writeln!(f, "{}{confidence}: {} [{}]", self.severity, self.what, self.id)?;
        if !self.why.is_empty() {
            writeln!(f, "  why: {}", self.why)?;
        }
        self.remedy.iter().try_for_each(|step| writeln!(f, "  do:  {step}"))
    }
}

impl Diagnosis {
    /// The diagnosis as text: three lines if no action is needed and notes are not wanted.
    pub fn text(&self, with_notes: bool) -> String {
        let mut text = format!("{}\n", self.summary);
        let is_shown = |finding: &&Finding| with_notes || finding.severity != Severity::Note;
        if !self.needs_action() && !with_notes {
            let notes = match self.findings.len() {
                0 => String::new(),
                1 => " 1 note: --notes shows it.".to_owned(),
                notes => format!(" {notes} notes: --notes shows them."),
            };
            text.extend(["Nothing needs to be done.", &notes, "\n"]);
        }
        let shown = self.findings.iter().filter(is_shown).map(|finding| format!("\n{finding}"));
        text.extend(shown);
        text
    }
}
