//! The result of a test, for people.

use uncork_terminal::{Align, Column, Style, Table};

use super::document::ProveDocument;
use super::effect::{Effect, Metric};
use super::verdict::{Answer, Choice};
use super::windows::LeftOut;
use super::within::Comparison;

impl ProveDocument {
    /// The result as text.
    pub fn text(&self) -> String {
        let [a, b] = &self.arms;
        let complete = self.windows.iter().filter(|it| it.counted_until_unix_ns.is_some()).count();
        let counted: u64 = self.windows.iter().map(|window| window.large + window.small).sum();
        let mut lines = vec![format!(
            "{b} compared with {a}: {complete} of {} windows complete, {counted} connections counted",
            2 * self.pairs
        )];
        if let Some(stopped) = &self.stopped {
            lines.push(format!("The test was ended early: {stopped}."));
        }
        lines.push(String::new());
        let mut columns = ["", a, b, "change", "95 % interval", "pairs"].map(Column::right);
        columns[0].align = Align::Left;
        lines.push(Table::new(columns, self.effects.iter().map(row)).render(Style::Plain));
        lines.extend(self.missing());
        lines.push(format!("{} {}", self.decision(), self.answer()));
        lines.extend(self.beyond_networks());
        lines.push(format!("The changes are the {}.", self.estimand));
        lines.extend(self.left_out.text().map(|reasons| format!("Not counted: {reasons}.")));
        if self.close_events_lost > 0 {
            let times = self.close_events_lost;
            lines.push(format!(
                "Close events were lost {times} times: short connections are missing."
            ));
        }
        lines.push(match &self.left[..] {
            [] => "The host is as before.".to_owned(),
            left => format!("The host is as before, but: {}", left.join("; ")),
        });
        lines.join("\n") + "\n"
    }

    /// Why there are intervals missing, each reason once.
    fn missing(&self) -> Vec<String> {
        let mut reasons: Vec<&String> =
            self.effects.iter().filter_map(|effect| effect.missing.as_ref()).collect();
        reasons.dedup();
        reasons.into_iter().map(|reason| format!("Without an interval: {reason}.")).collect()
    }

    /// What to do, proven harm first.
    fn decision(&self) -> String {
        let [a, b] = &self.arms;
        let harm = self.guardrail();
        match (self.verdict.decision, harm) {
            (Choice::Stop, Some(harm)) => format!("Stop, keep {a}: {b} {harm}."),
            (Choice::Stop, None) => format!("Stop, keep {a}: {b} exceeded a safety limit."),
            (Choice::Enable, _) => format!("Enable {b}."),
            (Choice::Keep, _) => format!("Keep {a}."),
            (Choice::Wait, Some(harm)) => format!("Do not enable {b} yet: it {harm}."),
            (Choice::Wait, None) if self.stopped.is_some() => {
                format!("Keep {a} until there is more data: before the planned end a decision needs p < 0.001.")
            }
            (Choice::Wait, None) => format!("Keep {a} until there is more data."),
            (Choice::AaTest, _) => {
                "An A/A test: both arms run the same controller, so 1 in 20 shows a difference by chance.".to_owned()
            }
        }
    }

    /// A guardrail that is broken or likely broken.
    fn guardrail(&self) -> Option<String> {
        let broken = match *self.verdict.guardrails.get("retransmitted")? {
            "broken" => "breaks",
            "likely broken" => "likely breaks",
            _ => return None,
        };
        let metric = Metric::Retransmitted;
        let effect = self.effects.iter().find(|effect| effect.metric == metric)?;
        let harm =
            format!("{} ({})", change(metric, effect.change?), interval(metric, effect.interval?));
        let limit = change(metric, self.max_retransmitted_increase);
        let name = metric.name();
        Some(format!(
            "{broken} a guardrail, {name} {harm}, limit {limit} (--max-retransmitted-increase)"
        ))
    }

    /// Metrics that are not compared within client networks, and why.
    fn beyond_networks(&self) -> Vec<String> {
        let is_beyond =
            |effect: &&Effect| effect.pairs > 0 && effect.comparison == Comparison::AllTransfers;
        let line = |effect: &Effect| {
            let common = effect.common.unwrap_or_default() * 100.0;
            format!(
                "Over all transfers, not within client networks: {}. Only {common:.0} % of this traffic goes to networks with traffic in \
                 both windows of a pair. A change in the mix of clients counts as an effect; longer windows have more networks in common.",
                effect.metric.name()
            )
        };
        self.effects.iter().filter(is_beyond).map(line).collect()
    }

    fn answer(&self) -> String {
        let [a, b] = &self.arms;
        let metric = self.verdict.metric;
        let effect = self.effects.iter().find(|effect| effect.metric == metric);
        let ends = effect.and_then(|effect| effect.interval).map(|ends| interval(metric, ends));
        let by = format!("{} {}", metric.name(), ends.unwrap_or_default());
        match self.verdict.answer {
            Answer::Better => format!("{b} is better than {a} here: {by}."),
            Answer::Worse => format!("{b} is worse than {a} here: {by}."),
            Answer::Equivalent => format!("{b} and {a} do not differ by 1 % or more here: {by}."),
            Answer::NotShown => {
                format!("No difference is shown: {by}. A smaller one needs more pairs.")
            }
            Answer::Open => "No answer: no metric that decides has an interval.".to_owned(),
        }
    }
}

impl LeftOut {
    fn text(&self) -> Option<String> {
        let reasons = [
            (self.outside_windows, "began outside of the counted time"),
            (self.incomplete_window, "in a window that was not completed"),
            (self.no_data, "without data"),
            (self.other_route, "to clients beyond --to"),
            (self.other_controller, "with another controller"),
            (self.other_service, "of services that choose their controller"),
            (self.unfinished, "small and still open at the end"),
        ];
        let counted = reasons.iter().filter(|(count, _)| *count > 0);
        let texts: Vec<String> =
            counted.map(|(count, reason)| format!("{count} {reason}")).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

fn row(effect: &Effect) -> [String; 6] {
    let dash = || "-".to_owned();
    let metric = effect.metric;
    let [a, b] = match effect.levels {
        Some(levels) => levels.map(|level| self::level(metric, level)),
        None => [dash(), dash()],
    };
    [
        metric.name().to_owned(),
        a,
        b,
        effect.change.map_or_else(dash, |change| self::change(metric, change)),
        effect.interval.map_or_else(dash, |ends| interval(metric, ends)),
        effect.pairs.to_string(),
    ]
}

fn level(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Retransmitted => format!("{:.2} %", value * 100.0),
        Metric::CompletionP50 | Metric::CompletionP90 => format!("{:.1} ms", value * 1e3),
        _ => format!("{:.2} Mbit/s", value / 1e6),
    }
}

fn change(metric: Metric, value: f64) -> String {
    if metric == Metric::Retransmitted {
        format!("{:+.2} points", value * 100.0)
    } else {
        format!("{:+.1} %", value * 100.0)
    }
}

fn interval(metric: Metric, ends: [f64; 2]) -> String {
    let [low, high] = ends.map(|end| change(metric, end));
    format!("{low} to {high}")
}
