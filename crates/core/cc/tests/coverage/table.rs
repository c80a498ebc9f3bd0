//! The table, in Markdown.

use super::{Level, Reason, Rule, Spec, Tag, claims};

const HEAD: &str = "\
# Coverage of the specifications

Written by `tests/spec_coverage.rs` from the rules in `spec/*.txt` and the tags in the source; do not edit.
`UPDATE_DOCS=1 cargo test -p uncork-cc --test spec_coverage` updates it.

A rule is covered when code and a test of it are named. The host's rules bind the program that drives a controller. Paths are
below `src`, those of the simulator below `crates`.
";

/// Counts of the rules of one level.
#[derive(Clone, Copy, Default)]
struct Count {
    all: usize,
    covered: usize,
    host: usize,
    exceptions: usize,
}

impl Count {
    fn of<'a>(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let mut count = Self::default();
        for rule in rules {
            count.all += 1;
            match rule.reason {
                None => count.covered += 1,
                Some(Reason::Host(_)) => count.host += 1,
                Some(Reason::Exception(_)) => count.exceptions += 1,
            }
        }
        count
    }

    fn show(self) -> String {
        let Self { all, covered, host, exceptions } = self;
        if all == 0 {
            return "–".to_owned();
        }
        let mut parts = vec![format!("{covered} of {all}")];
        for (number, what) in [(host, "host"), (exceptions, "exc.")] {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        parts.join(", ")
    }
}

pub(crate) fn render(specs: &[Spec], tags: &[Tag]) -> String {
    let mut lines = vec![
        HEAD.to_owned(),
        "| specification | tag | MUST covered | SHOULD covered | MAY taken |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for spec in specs {
        let count = |level| Count::of(spec.rules().filter(|rule| rule.level == level)).show();
        let counts = Level::ALL.map(count).join(" | ");
        lines.push(format!("| {} | `{}` | {counts} |", spec.title, spec.key));
    }
    for spec in specs {
        lines.push(format!("\n## {}", spec.title));
        for section in &spec.sections {
            lines.push(format!("\n### § {}\n", section.title));
            lines.push("| | level | rule | code | tests |\n|---|---|---|---|---|".to_owned());
            lines.extend(section.rules.iter().map(|rule| row(tags, spec, rule)));
        }
    }
    lines.join("\n") + "\n"
}

fn row(tags: &[Tag], spec: &Spec, rule: &Rule) -> String {
    let (code, tests) = match &rule.reason {
        Some(Reason::Host(reason)) => (format!("host: {reason}"), String::new()),
        Some(Reason::Exception(reason)) => (format!("exception: {reason}"), String::new()),
        None => {
            let items = |is_test| claims(tags, spec, rule, is_test);
            let code = items(false).map(|tag| format!("`{}: {}`", tag.file, tag.item));
            let tests = items(true).map(|tag| format!("`{}`", tag.item));
            (code.collect::<Vec<_>>().join(", "), tests.collect::<Vec<_>>().join(", "))
        }
    };
    let text = rule.text.replace('|', "\\|");
    format!("| {} | {} | {text} | {code} | {tests} |", rule.id, rule.level.name())
}
