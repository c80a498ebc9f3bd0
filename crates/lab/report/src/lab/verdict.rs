//! Sentences of answers, for the terminal and the page.

use super::answer::{Answer, AnswerKind, Payer, Price};
use super::document::{Estimate, LabDocument};
use crate::words;

/// With more cells than this, a summary replaces the sentence for each cell.
const SENTENCES: usize = 3;

/// The sentences about a class.
pub(super) struct Verdict<'a> {
    /// The class.
    pub(super) class: &'a str,
    /// Sentences.
    pub(super) lines: Vec<String>,
}

/// The sentences about each class, in the order of the document.
pub(super) fn verdicts(document: &LabDocument) -> Vec<Verdict<'_>> {
    let mut verdicts: Vec<Verdict<'_>> = Vec::new();
    for group in groups(&document.answers) {
        let lines = if group.len() > SENTENCES {
            vec![summary(&group)]
        } else {
            group.iter().map(|answer| placed(answer, document.seeds)).collect()
        };
        let class = group[0].class.as_str();
        match verdicts.iter_mut().find(|verdict| verdict.class == class) {
            Some(verdict) => verdict.lines.extend(lines),
            None => verdicts.push(Verdict { class, lines }),
        }
    }
    verdicts
}

/// Answers to the same question in different cells.
pub(super) fn groups(answers: &[Answer]) -> Vec<Vec<&Answer>> {
    fn question(answer: &Answer) -> [&String; 6] {
        let Answer { class, baseline_class, of, metric, choice, baseline, .. } = answer;
        [class, baseline_class, of, metric, choice, baseline]
    }
    let mut groups: Vec<Vec<&Answer>> = Vec::new();
    for answer in answers {
        match groups.iter_mut().find(|group| question(group[0]) == question(answer)) {
            Some(group) => group.push(answer),
            None => groups.push(vec![answer]),
        }
    }
    groups
}

/// A sentence with its cell.
fn placed(answer: &Answer, seeds: u64) -> String {
    match answer.place.as_str() {
        "" => sentence(answer, seeds),
        place => format!("{place}: {}", sentence(answer, seeds)),
    }
}

/// One answer: `bbr1 is 5.9 times as fast as cubic (95 % CI 5.6 to 6.5, 10 seeds), but retransmits 3.3 %
/// against 1.0 %.`
pub(super) fn sentence(answer: &Answer, seeds: u64) -> String {
    let (subject, baseline) = sides(answer);
    let lacks = unfinished(answer);
    let statement = match (answer.kind, &answer.ratio, lacks) {
        (_, None, Some(counts)) => format!("{subject} {counts}"),
        (AnswerKind::Alike, None, None) => {
            format!(
                "{subject} {} {baseline}: {} is 0 with both",
                equal(answer),
                spelled(&answer.metric)
            )
        }
        (AnswerKind::Unknown, ..) | (_, None, None) => format!(
            "{subject} and {baseline} cannot be compared: too few samples of {}, or none",
            spelled(&answer.metric)
        ),
        (_, Some(ratio), lacks) => {
            let statement = compared(answer, ratio, (&subject, &baseline), seeds);
            lacks.map_or(statement.clone(), |counts| format!("{statement}, and {counts}"))
        }
    };
    statement + &prices(answer) + "."
}

/// The names of both sides: controllers, with their classes if these differ.
fn sides(answer: &Answer) -> (String, String) {
    let Answer { class, baseline_class, of, choice, baseline, .. } = answer;
    if class != baseline_class {
        (format!("{class} ({choice})"), format!("{baseline_class} ({baseline})"))
    } else if of.is_empty() {
        (choice.clone(), baseline.clone())
    } else {
        (format!("{class} (with {choice} for {of})"), format!("with {baseline}"))
    }
}

/// `finishes 3 of 10 transfers, cubic 10 of 10`, if any did not finish.
fn unfinished(answer: &Answer) -> Option<String> {
    let (own, other) = (answer.transfers, answer.baseline_transfers);
    let is_lacking = own.finished < own.all || other.finished < other.all;
    is_lacking.then(|| {
        format!(
            "finishes {} of {} transfers, {} {} of {}",
            own.finished, own.all, answer.baseline, other.finished, other.all
        )
    })
}

fn compared(answer: &Answer, ratio: &Estimate, names: (&str, &str), seeds: u64) -> String {
    if let Some(shares) = shares(answer, names).filter(|_| answer.shares_by_order().is_some()) {
        let count = words::counted(seeds, "seed");
        return format!("{}: {shares} ({count})", over_orders(answer.kind, names));
    }
    let (subject, baseline) = names;
    let metric = match MetricKind::of(&answer.metric) {
        MetricKind::Share => "goodput per flow".to_owned(),
        _ => spelled(&answer.metric),
    };
    let of = format!("ratio of {metric} {}", decimal(ratio.value));
    let count = with_shares(answer, names, words::counted(seeds, "seed"));
    match (answer.kind, ratio.low.zip(ratio.high)) {
        (AnswerKind::Open, None) => {
            format!("{subject} and {baseline}: too few samples for an interval ({of}, {count})")
        }
        (AnswerKind::Open, Some((low, high))) => {
            let interval = Reading::Times.interval(low, high);
            format!(
                "{subject} and {baseline} do not differ by more than chance: {of} (95 % CI {interval}, {count})"
            )
        }
        (AnswerKind::Alike, _) => {
            format!("{subject} {} {baseline}, within 1 % ({count})", equal(answer))
        }
        _ => difference(answer, ratio, names, seeds),
    }
}

/// What the order of starts decides.
fn over_orders(kind: AnswerKind, (subject, baseline): (&str, &str)) -> String {
    let more = |winner, other| {
        format!("{winner} gets more per flow than {other}; the order of starts decides how much")
    };
    match kind {
        AnswerKind::Better => more(subject, baseline),
        AnswerKind::Worse => more(baseline, subject),
        AnswerKind::ByOrder => format!(
            "the order of starts decides whether {subject} or {baseline} gets more per flow"
        ),
        _ => format!("the order of starts decides what {subject} and {baseline} get per flow"),
    }
}

/// `text; 47 % of the link's traffic for a flow of bbr1, 5.9 % for one of cubic`, if both share a
/// link.
fn with_shares(answer: &Answer, names: (&str, &str), text: String) -> String {
    match shares(answer, names) {
        Some(shares) => format!("{text}; {shares}"),
        None => text,
    }
}

/// The share of a flow of each side: its range if it depends on the order of starts, else its mean.
fn shares(answer: &Answer, (subject, baseline): (&str, &str)) -> Option<String> {
    let own = shown_share(answer.share, answer.share_range)?;
    let other = shown_share(answer.baseline_share, answer.baseline_share_range)?;
    Some(format!("a flow of {subject} has {own} of the link's traffic, one of {baseline} {other}"))
}

fn shown_share(mean: Option<f64>, range: Option<[f64; 2]>) -> Option<String> {
    match range {
        Some([low, high]) => Some(Reading::Percent.interval(low, high)),
        None => mean.map(percent),
    }
}

/// The side that a sentence is about: of flows that share a link, the flow with far more; else the
/// choice.
fn subject(answer: &Answer) -> Payer {
    let gets_less = |ratio: Estimate| ratio.value <= 0.5;
    let is_settled = matches!(answer.kind, AnswerKind::Better | AnswerKind::Worse);
    match MetricKind::of(&answer.metric) {
        MetricKind::Share if is_settled && answer.ratio.is_some_and(gets_less) => Payer::Baseline,
        _ => Payer::Choice,
    }
}

/// `bbr1 delivers 31 % less than cubic (95 % CI 29 to 33 %, 10 seeds)`.
fn difference(
    answer: &Answer,
    ratio: &Estimate,
    (choice, other): (&str, &str),
    seeds: u64,
) -> String {
    let (ComparedChoice { verb, what, than }, read) = comparison(answer, ratio.value);
    let (subject, baseline) = match subject(answer) {
        Payer::Choice => (choice, other),
        Payer::Baseline => (other, choice),
    };
    let interval = ratio.low.zip(ratio.high).map(|(low, high)| {
        let (one, two) = (read.of(low), read.of(high));
        read.interval(one.min(two), one.max(two))
    });
    let evidence = match interval.unwrap_or_default() {
        interval if interval.is_empty() => format!("all {seeds} seeds agree"),
        interval => format!("95 % CI {interval}, {}", words::counted(seeds, "seed")),
    };
    let value = read.print(read.of(ratio.value));
    let evidence = with_shares(answer, (choice, other), evidence);
    format!("{subject} {verb} {value} {what} {than} {baseline} ({evidence})")
}

/// The words of a difference: `is` 5.9 `times as fast` `as`.
struct ComparedChoice {
    verb: &'static str,
    what: &'static str,
    than: &'static str,
}

/// Format of a ratio.
#[derive(Clone, Copy)]
enum Reading {
    /// As a multiple.
    Times,
    /// As a multiple, inverted.
    InverseTimes,
    /// As a percentage more or less.
    Percent,
}

impl Reading {
    fn of(self, ratio: f64) -> f64 {
        match self {
            Self::Times => ratio,
            Self::InverseTimes => 1.0 / ratio,
            Self::Percent => (ratio - 1.0).abs() * 100.0,
        }
    }

    fn print(self, value: f64) -> String {
        match self {
            Self::Percent => percent(value),
            _ => decimal(value),
        }
    }

    /// `5.6 to 6.5`; empty if both limits are equal.
    fn interval(self, low: f64, high: f64) -> String {
        let number = |value: f64| match self {
            Self::Percent => percent(value).trim_end_matches(" %").to_owned(),
            _ => decimal(value),
        };
        let unit = if matches!(self, Self::Percent) { " %" } else { "" };
        if (high - low).abs() < 1e-9 {
            return String::new();
        }
        match (number(low), number(high)) {
            (low, high) if low == high => format!("{low}{unit}"),
            (low, high) => format!("{low} to {high}{unit}"),
        }
    }
}

fn comparison(answer: &Answer, ratio: f64) -> (ComparedChoice, Reading) {
    let of = |verb, what, than, read| (ComparedChoice { verb, what, than }, read);
    match (MetricKind::of(&answer.metric), ratio) {
        (MetricKind::Share, r) if r <= 0.5 => {
            of("gets", "times as much per flow", "as", Reading::InverseTimes)
        }
        (MetricKind::Share, r) if r < 1.0 => of("gets", "less per flow", "than", Reading::Percent),
        (MetricKind::Share, r) if r < 2.0 => of("gets", "more per flow", "than", Reading::Percent),
        (MetricKind::Share, _) => of("gets", "times as much per flow", "as", Reading::Times),
        (MetricKind::Time, r) if r <= 0.5 => of("is", "times as fast", "as", Reading::InverseTimes),
        (MetricKind::Time, r) if r < 1.0 => of("takes", "less time", "than", Reading::Percent),
        (MetricKind::Time, r) if r < 2.0 => of("takes", "longer", "than", Reading::Percent),
        (MetricKind::Time, _) => of("takes", "times as long", "as", Reading::Times),
        (MetricKind::Start, r) if r < 1.0 => {
            of("starts to play", "sooner", "than", Reading::Percent)
        }
        (MetricKind::Start, r) if r < 2.0 => {
            of("starts to play", "later", "than", Reading::Percent)
        }
        (MetricKind::Start, _) => of("takes", "times as long to start", "as", Reading::Times),
        (MetricKind::Stutters, r) if r < 1.0 => of("stutters", "less", "than", Reading::Percent),
        (MetricKind::Stutters, r) if r < 2.0 => of("stutters", "more", "than", Reading::Percent),
        (MetricKind::Stutters, _) => of("stutters", "times as often", "as", Reading::Times),
        (MetricKind::Rate, r) if r < 1.0 => of("delivers", "less", "than", Reading::Percent),
        (MetricKind::Rate, r) if r < 2.0 => of("delivers", "more", "than", Reading::Percent),
        (MetricKind::Rate, _) => of("delivers", "times as much", "as", Reading::Times),
    }
}

/// The kind of a metric, which determines the verb.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricKind {
    Time,
    Start,
    Stutters,
    Rate,
    /// Rates of competing flows.
    Share,
}

impl MetricKind {
    fn of(metric: &str) -> Self {
        match metric {
            metric if metric.starts_with("playback_latency") => Self::Start,
            metric if metric.starts_with("stutters") => Self::Stutters,
            "goodput_mean" => Self::Share,
            metric if metric.starts_with("goodput") => Self::Rate,
            _ => Self::Time,
        }
    }
}

fn equal(answer: &Answer) -> &'static str {
    match MetricKind::of(&answer.metric) {
        MetricKind::Time => "takes the same time as",
        MetricKind::Start => "starts to play as soon as",
        MetricKind::Stutters => "stutters as often as",
        MetricKind::Rate => "delivers as much as",
        MetricKind::Share => "gets as much per flow as",
    }
}

/// Costs of the sentence's subject, then of the other side.
fn prices(answer: &Answer) -> String {
    let paid = |payer: Payer| {
        let prices = answer.prices.iter().filter(|price| price.payer == Some(payer));
        prices.map(|price| clause(price, payer)).collect::<Vec<_>>()
    };
    let name = |side: Payer| {
        let (class, controller) = match side {
            Payer::Choice => (&answer.class, &answer.choice),
            Payer::Baseline => (&answer.baseline_class, &answer.baseline),
        };
        if !answer.of.is_empty() {
            format!("with {controller}, {class}")
        } else if answer.choice == answer.baseline {
            format!("{class} ({controller})")
        } else {
            controller.clone()
        }
    };
    let (first, other) = match subject(answer) {
        Payer::Choice => (Payer::Choice, Payer::Baseline),
        Payer::Baseline => (Payer::Baseline, Payer::Choice),
    };
    let is_ahead = (answer.kind == AnswerKind::Better) == (first == Payer::Choice)
        && matches!(answer.kind, AnswerKind::Better | AnswerKind::Worse);
    let but = if is_ahead { "but" } else { "and" };
    // "bbr1 and cubic do not differ" has two subjects, and so have shares over orders of starts.
    let is_subject = answer.of.is_empty()
        && answer.kind != AnswerKind::Open
        && answer.shares_by_order().is_none();
    let own = match paid(first).as_slice() {
        [] => String::new(),
        clauses if is_subject => format!(", {but} {}", words::list(clauses)),
        clauses => format!("; {} {}", name(first), words::list(clauses)),
    };
    match paid(other).as_slice() {
        [] => own,
        clauses => format!("{own}; {} {}", name(other), words::list(clauses)),
    }
}

/// `retransmits 11 % against 0.50 %`
fn clause(price: &Price, payer: Payer) -> String {
    let (paid, than) = match payer {
        Payer::Choice => (price.value, price.baseline_value),
        Payer::Baseline => (price.baseline_value, price.value),
    };
    if !price.class.is_empty() {
        return harm(price, paid / than);
    }
    let is_of_all = than >= 1.0;
    let (paid, than) = (amount(paid, &price.unit), amount(than, &price.unit));
    match price.metric.as_str() {
        "jain_mean" if is_of_all => format!("shares unevenly: Jain {paid}, where 1 is even"),
        "retransmitted_mean" => format!("retransmits {paid} against {than}"),
        "completion_p90" => format!("takes {paid} at p90 against {than}"),
        "queue_delay_p95" => format!("queues {paid} at p95 against {than}"),
        _ => format!("shares less evenly: Jain {paid} against {than}"),
    }
}

/// Cost of another class: `leaves far 40 % less`.
fn harm(price: &Price, ratio: f64) -> String {
    let class = &price.class;
    match (price.less_is_better, ratio) {
        (true, r) if r < 2.0 => format!("makes {class} take {} longer", percent(100.0 * (r - 1.0))),
        (true, r) => format!("makes {class} take {} times as long", decimal(r)),
        (false, r) => format!("leaves {class} {} less", percent(100.0 * (1.0 - r))),
    }
}

/// Many cells in one sentence: `bbr3 is faster than cubic in 12 of 15 cells, 1.2 to 6.0 times; no
/// difference in 3.`
fn summary(group: &[&Answer]) -> String {
    let first = group[0];
    let (verb, better, worse) = match MetricKind::of(&first.metric) {
        MetricKind::Time => ("is", "faster", "slower"),
        MetricKind::Start => ("starts to play", "sooner", "later"),
        MetricKind::Stutters => ("stutters", "less", "more"),
        MetricKind::Rate => ("delivers", "more", "less"),
        MetricKind::Share => ("gets", "more per flow", "less per flow"),
    };
    let (subject, baseline) = sides(first);
    let all = group.len();
    let mut parts: Vec<String> = Vec::new();
    let mut count_in = |count: usize, first: String, next: &str, range: &str| match (count, &parts)
    {
        (0, _) => {}
        (_, before) if before.is_empty() => {
            parts.push(format!("{subject} {first} in {count} of {all} cells{range}"));
        }
        _ => parts.push(format!("{next} in {count}{range}")),
    };
    let count = |is: &dyn Fn(&Answer) -> bool| group.iter().filter(|one| is(one)).count();
    for (kind, word) in [(AnswerKind::Better, better), (AnswerKind::Worse, worse)] {
        let first = format!("{verb} {word} than {baseline}");
        count_in(count(&|one| one.kind == kind), first, word, &range(group, kind));
    }
    let is_undecided = |one: &Answer| {
        one.kind == AnswerKind::Open && one.ratio.is_none_or(|ratio| ratio.low.is_none())
    };
    let is_same = |one: &Answer| {
        matches!(one.kind, AnswerKind::Alike | AnswerKind::Open) && !is_undecided(one)
    };
    for (count, words) in [
        (count(&|one| one.kind == AnswerKind::ByOrder), "the order of starts decides"),
        (count(&is_same), "no difference"),
        (count(&is_undecided), "too few samples to decide"),
        (count(&|one| one.kind == AnswerKind::Unknown), "nothing to compare"),
    ] {
        count_in(count, format!("and {baseline}: {words}"), words, "");
    }
    let line = parts.join("; ") + ".";
    [Payer::Choice, Payer::Baseline]
        .iter()
        .fold(line, |line, payer| line + &paid_in_all(group, *payer))
}

/// Range of the ratios in the cells of a kind, over the orders of starts where these decide: `, 1.2 to 6.0 times`, or
/// `, by 1.9 to 2.5 %` if no cell differs by a tenth.
fn range(group: &[&Answer], kind: AnswerKind) -> String {
    let answers = group.iter().filter(|answer| answer.kind == kind);
    let ratios: Vec<f64> = answers.filter_map(|answer| answer.ratios()).flatten().collect();
    let bounds = |of: fn(f64) -> f64| {
        let values = || ratios.iter().copied().map(of);
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    };
    let (least, most) = bounds(|ratio| if ratio < 1.0 { 1.0 / ratio } else { ratio });
    let ((before, low, high), unit) = if most < 1.1 {
        let (least, most) = bounds(|ratio| (ratio - 1.0).abs() * 100.0);
        (("by ", format!("{least:.1}"), format!("{most:.1}")), "%")
    } else {
        (("", decimal(least), decimal(most)), "times")
    };
    if ratios.is_empty() {
        String::new()
    } else if low == high {
        format!(", {before}{low} {unit}")
    } else {
        format!(", {before}{low} to {high} {unit}")
    }
}

/// ` At worst bbr3 retransmits 11 % against 0.50 % (more in 9 cells).`
fn paid_in_all(group: &[&Answer], payer: Payer) -> String {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let prices = || group.iter().flat_map(|answer| &answer.prices);
    for price in prices().filter(|price| price.payer == Some(payer)) {
        let key = (price.metric.as_str(), price.class.as_str());
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    let clauses: Vec<String> = seen
        .into_iter()
        .map(|key| {
            let own = prices().filter(|price| (price.metric.as_str(), price.class.as_str()) == key);
            let own: Vec<&Price> = own.filter(|price| price.payer == Some(payer)).collect();
            most(&own, payer)
        })
        .collect();
    let who = match payer {
        Payer::Choice => &group[0].choice,
        Payer::Baseline => &group[0].baseline,
    };
    if clauses.is_empty() {
        String::new()
    } else {
        format!(" At worst {who} {}.", words::list(&clauses))
    }
}

/// A cost in the cell with the largest difference, and the number of cells with it.
fn most(prices: &[&Price], payer: Payer) -> String {
    let apart = |price: &Price| (price.value - price.baseline_value).abs();
    let worst = prices.iter().max_by(|one, other| apart(one).total_cmp(&apart(other)));
    let cells = words::counted(prices.len() as u64, "cell");
    worst.map_or_else(String::new, |price| format!("{} (more in {cells})", clause(price, payer)))
}

/// A price to two digits or so: `11 %`, `49 ms`, `0.51`.
fn amount(value: f64, unit: &str) -> String {
    match unit {
        "s" if value >= 1.0 => format!("{} s", two(value)),
        "s" => format!("{} ms", two(value * 1e3)),
        "" => format!("{value:.2}"),
        unit => format!("{} {unit}", two(value)),
    }
}

fn two(value: f64) -> String {
    match value {
        _ if value < 0.005 => "0".to_owned(),
        _ if value < 1.0 => format!("{value:.2}"),
        _ if value < 10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A ratio to two or three digits.
pub(super) fn decimal(ratio: f64) -> String {
    if ratio.is_infinite() {
        return "∞".to_owned();
    }
    let decimals = match ratio {
        _ if ratio < 2.0 => 2,
        _ if ratio < 100.0 => 1,
        _ => 0,
    };
    format!("{ratio:.decimals$}")
}

fn percent(value: f64) -> String {
    let decimals = usize::from(value < 10.0);
    format!("{value:.decimals$} %")
}

/// `completion_p50` as `completion p50`.
pub(super) fn spelled(metric: &str) -> String {
    metric.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Transfers;
    use uncork_testkit::assert_message;

    fn answer(metric: &str, ratio: (f64, f64, f64), kind: AnswerKind) -> Answer {
        let (value, low, high) = ratio;
        Answer {
            class: "main".to_owned(),
            baseline_class: "main".to_owned(),
            cell: 1,
            place: String::new(),
            choice: "bbr1".to_owned(),
            baseline: "cubic".to_owned(),
            of: String::new(),
            metric: metric.to_owned(),
            unit: String::new(),
            less_is_better: !metric.starts_with("goodput"),
            value: Some(value),
            baseline_value: Some(1.0),
            share: None,
            baseline_share: None,
            share_range: None,
            baseline_share_range: None,
            ratio: Some(Estimate { value, low: Some(low), high: Some(high), n: 10 }),
            kind,
            transfers: Transfers::default(),
            baseline_transfers: Transfers::default(),
            prices: Vec::new(),
        }
    }

    fn price(metric: &str, values: (f64, f64), payer: Payer) -> Price {
        Price {
            class: String::new(),
            metric: metric.to_owned(),
            unit: if metric.starts_with("retransmitted") { "%" } else { "s" }.to_owned(),
            less_is_better: true,
            value: values.0,
            baseline_value: values.1,
            payer: Some(payer),
        }
    }

    #[test]
    fn differences_read_as_sentences() {
        for (metric, ratio, kind) in [
            ("completion_p50", (0.17, 0.15, 0.18), AnswerKind::Better),
            ("completion_p50", (0.75, 0.7, 0.8), AnswerKind::Better),
            ("completion_p50", (1.2, 1.1, 1.3), AnswerKind::Worse),
            ("completion_p50", (3.0, 2.5, 3.5), AnswerKind::Worse),
            ("goodput_sum", (0.989, 0.985, 0.99), AnswerKind::Worse),
            ("goodput_sum", (4.0, 3.5, 4.5), AnswerKind::Better),
            ("goodput_sum", (1.0, 0.999, 1.001), AnswerKind::Alike),
            ("completion_p50", (0.9, 0.7, 1.1), AnswerKind::Open),
            ("playback_latency_p90", (0.8, 0.7, 0.9), AnswerKind::Better),
            ("stutters_mean", (2.0, 1.5, 2.5), AnswerKind::Worse),
            ("completion_p50", (1.2, 1.2, 1.2), AnswerKind::Worse),
        ] {
            let answer = answer(metric, ratio, kind);
            assert_message!(format!("{metric} {ratio:?}"), sentence(&answer, 10));
        }
    }

    #[test]
    fn costs_of_both_sides_are_named() {
        let mut slower = answer("goodput_sum", (0.99, 0.985, 0.995), AnswerKind::Worse);
        slower.prices = vec![
            price("retransmitted_mean", (10.8, 0.5), Payer::Choice),
            price("queue_delay_p95", (0.0012, 0.24), Payer::Baseline),
        ];
        assert_message!("both", sentence(&slower, 10));
    }

    fn few_seeds(value: f64) -> Answer {
        let mut few = answer("completion_p50", (value, 0.0, 0.0), AnswerKind::Open);
        few.ratio = Some(Estimate { value, low: None, high: None, n: 3 });
        few
    }

    #[test]
    fn ratio_without_interval_is_undecided() {
        let few = few_seeds(0.3);
        assert_message!("one cell", sentence(&few, 3));
        assert_message!("two cells", summary(&[&few, &few]));
    }

    #[test]
    fn competing_classes_are_named() {
        let mut answer = answer("goodput_mean", (1.8, 1.6, 1.9), AnswerKind::Better);
        answer.baseline_class = "others".to_owned();
        assert_message!("more", sentence(&answer, 10));
        answer.kind = AnswerKind::Worse;
        assert_message!("less", summary(&[&answer]));
    }

    /// One flow next to nine, as in the sentence of the flow that gets more.
    #[test]
    fn flows_that_compete_are_compared_with_their_shares_and_jain() {
        let mut answer = answer("goodput_mean", (0.125, 0.11, 0.14), AnswerKind::Worse);
        (answer.choice, answer.baseline) = ("cubic".to_owned(), "bbr1".to_owned());
        (answer.share, answer.baseline_share) = (Some(5.9), Some(47.1));
        let mut jain = price("jain_mean", (1.0, 0.38), Payer::Baseline);
        (jain.unit, jain.less_is_better) = (String::new(), false);
        answer.prices = vec![jain];
        assert_message!("1 of 10 flows", sentence(&answer, 6));
        (answer.kind, answer.ratio) = (
            AnswerKind::Open,
            Some(Estimate { value: 0.9, low: Some(0.7), high: Some(1.2), n: 6 }),
        );
        assert_message!("by chance", sentence(&answer, 6));
    }

    /// One flow next to one, with a mean of 55 %.
    fn over_orders_of_starts(share_range: [f64; 2], kind: AnswerKind) -> Answer {
        let mut answer = answer("goodput_mean", (1.22, 1.1, 1.4), kind);
        let [low, high] = share_range;
        (answer.share, answer.baseline_share) = (Some(55.0), Some(45.0));
        answer.share_range = Some(share_range);
        answer.baseline_share_range = Some([100.0 - high, 100.0 - low]);
        answer.prices = vec![price("retransmitted_mean", (10.8, 0.5), Payer::Choice)];
        answer
    }

    #[test]
    fn shares_that_the_order_of_starts_decides_are_ranges() {
        let decided = over_orders_of_starts([52.0, 69.0], AnswerKind::Better);
        let by_order = over_orders_of_starts([41.0, 69.0], AnswerKind::ByOrder);
        assert_eq!((decided.is_by_order(), by_order.is_by_order()), (false, true));
        assert_message!("bbr1 in each order", sentence(&decided, 10));
        assert_message!("either", sentence(&by_order, 10));
        let losing = over_orders_of_starts([31.0, 48.0], AnswerKind::Worse);
        assert_message!("cubic in each order", sentence(&losing, 10));
        let open = over_orders_of_starts([52.0, 69.0], AnswerKind::Open);
        assert_message!("neither", sentence(&open, 10));
        assert_message!("cells", summary(&[&decided, &losing, &by_order]));
        assert_message!("cells that the order decides", summary(&[&by_order; 4]));
    }

    /// Of three controllers, only one may depend on the order.
    #[test]
    fn mean_without_a_range_may_lie_in_the_other_range() {
        let mut one = over_orders_of_starts([41.0, 69.0], AnswerKind::ByOrder);
        one.baseline_share_range = None;
        assert!(one.is_by_order());
        assert_eq!(one.ratios(), Some([41.0 / 45.0, 69.0 / 45.0]));
        one.baseline_share = Some(20.0);
        assert!(!one.is_by_order());
    }

    #[test]
    fn unfinished_transfers_are_counted() {
        let mut lacking = answer("completion_p50", (1.0, 1.0, 1.0), AnswerKind::Worse);
        (lacking.ratio, lacking.value) = (None, None);
        lacking.transfers = Transfers { all: 10, finished: 3 };
        lacking.baseline_transfers = Transfers { all: 10, finished: 10 };
        assert_message!("3 of 10", sentence(&lacking, 10));
    }

    #[test]
    fn many_cells_are_summarised() {
        let ratio = |value: f64| (value, value * 0.9, value * 1.05);
        let mut answers: Vec<Answer> = [0.2, 0.5, 0.8]
            .map(|value| answer("completion_p50", ratio(value), AnswerKind::Better))
            .into();
        answers.push(answer("completion_p50", ratio(1.5), AnswerKind::Worse));
        answers.push(answer("completion_p50", ratio(1.0), AnswerKind::Open));
        answers.push(few_seeds(0.3));
        answers[1].prices = vec![price("retransmitted_mean", (10.8, 0.5), Payer::Choice)];
        let group: Vec<&Answer> = answers.iter().collect();
        assert_message!("faster in 3 of 6", summary(&group));
        let small =
            [0.981, 0.975].map(|value| answer("goodput_sum", ratio(value), AnswerKind::Worse));
        assert_message!("less in 2 of 2", summary(&small.each_ref()));
    }
}
