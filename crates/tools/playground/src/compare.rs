//! All runs of a comparison.

use std::sync::atomic::AtomicBool;

use uncork_lab::{Engine, FinishedRun, Item, Scenario, SweepResults, items, run_items};
use uncork_terminal::Style;

use crate::options::{Options, Refusal};

/// The results of a comparison in two forms.
pub struct Comparison {
    /// What `uncork compare --format json` prints.
    pub json: String,
    /// What `uncork compare` prints.
    pub text: String,
}

/// Runs all seeds.
///
/// # Errors
///
/// The option that cannot be used.
pub fn compare(text: &str) -> Result<Comparison, Refusal> {
    let Options { spec, scenario, .. } = Options::parse(text)?;
    let runs = play(&scenario, &items(&scenario))?;
    let document = SweepResults::new(runs).comparison_document(&scenario, spec.command(), false);
    Ok(Comparison { json: document.to_json(), text: document.short_text(Style::Plain) })
}

/// The runs of the first seed.
pub(crate) fn first_seed(scenario: &Scenario) -> Vec<Item> {
    items(scenario).into_iter().filter(|item| item.seed == scenario.first_seed).collect()
}

/// Runs `items` one after the other: a page has one thread for it.
pub(crate) fn play(scenario: &Scenario, items: &[Item]) -> Result<Vec<FinishedRun>, Refusal> {
    let stop = AtomicBool::new(false);
    let runs = run_items((scenario, Engine::Sim), items, 1, &stop, &|_, _| {});
    runs.map_err(|error| Refusal::of_scenario(&error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &str = "size=200kB\nseeds=2\ncc=cubic,bbr3";

    #[test]
    fn comparison_has_document_and_table() {
        let result = compare(SHORT).unwrap_or_else(|refusal| panic!("{}", refusal.message));
        assert!(result.json.contains("\"command\": \"uncork compare --rate 20mbit"));
        assert!(result.text.contains("bbr3"));
    }
}
