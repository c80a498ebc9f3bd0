//! Whether a line predicts what its own records measured: BBR's throughput relative to CUBIC's.

use std::collections::BTreeMap;

use uncork_cc::CcSpec;
use uncork_flow::quantile;
use uncork_lab::{NoFiles, Scenario};

use crate::line::TwinLine;
use crate::response::TwinResponse;

/// Responses with each controller that a comparison needs.
const MIN_RESPONSES: usize = 10;
/// Payload to simulate with each controller, in bytes, which bounds the time of a check.
const SIMULATED_BYTES: f64 = 100e6;
/// Clients to simulate with each controller.
const CLIENTS: (usize, usize) = (5, 20);
/// Error of the model of a path, in addition to the interval of the records.
const MODEL_ERROR: f64 = 1.25;

/// A wider interval of the ratio does not decide whether slow start hides random loss.
const MAX_WIDTH: f64 = 2.0;

/// Responses with one of BBR's controllers and with one of the others: the most frequent of each kind.
pub(super) struct Arms<'t, 'r> {
    bbr: Arm<'t, 'r>,
    cubic: Arm<'t, 'r>,
}

type Arm<'t, 'r> = (CcSpec, Vec<&'t TwinResponse<'r>>);

/// The median throughput of BBR's responses over that of CUBIC's, with a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MeasuredRatio {
    value: f64,
    low: f64,
    high: f64,
}

impl<'t, 'r> Arms<'t, 'r> {
    /// `None`: too few responses of either kind.
    pub(super) fn of(responses: &[&'t TwinResponse<'r>]) -> Option<Self> {
        let arm = |is_bbr: bool| -> Option<Arm<'t, 'r>> {
            let mut by_name: BTreeMap<&str, Vec<&'t TwinResponse<'r>>> = BTreeMap::new();
            for one in responses.iter().filter(|one| one.is_bbr == is_bbr) {
                by_name.entry(&one.record.cc).or_default().push(one);
            }
            let most = by_name.into_values().max_by_key(Vec::len)?;
            (most.len() >= MIN_RESPONSES).then_some((most[0].controller, most))
        };
        Some(Self { bbr: arm(true)?, cubic: arm(false)? })
    }

    /// Why the line contradicts these responses; `None`: it does not.
    pub(super) fn contradiction(&self, line: &TwinLine) -> Option<String> {
        let measured = self.measured()?;
        let Some(predicted) = self.predicted(line) else {
            return Some("a simulation of its line has no throughput".into());
        };
        let MeasuredRatio { value, low, high } = measured;
        if line.has_hidden_loss() && high > MAX_WIDTH * low {
            return Some(format!(
                "most of its CUBIC responses lost packets in slow start, which hides random loss, and the \
                 ratio of its arms, {low:.2} to {high:.2}, does not decide; record more, or longer downloads"
            ));
        }
        let is_near = (low / MODEL_ERROR..=high * MODEL_ERROR).contains(&predicted);
        let (bbr, cubic) = (&self.bbr.1[0].record.cc, &self.cubic.1[0].record.cc);
        (!is_near).then(|| {
            format!(
                "its line predicts {predicted:.2} times the throughput with {bbr} as with {cubic}, and its \
                 records have {value:.2} times ({low:.2} to {high:.2}); record longer downloads, or look \
                 more often (--every)"
            )
        })
    }

    fn measured(&self) -> Option<MeasuredRatio> {
        let [bbr_low, bbr, bbr_high] = median(&self.bbr.1)?;
        let [low, cubic, high] = median(&self.cubic.1)?;
        Some(MeasuredRatio { value: bbr / cubic, low: bbr_low / high, high: bbr_high / low })
    }

    /// The ratio of the line, simulated with the controllers of its records.
    fn predicted(&self, line: &TwinLine) -> Option<f64> {
        let ccs = [self.bbr.0, self.cubic.0];
        let clients = (SIMULATED_BYTES / line.transfer_bytes()) as usize;
        let line = line.text(clients.clamp(CLIENTS.0, CLIENTS.1), &ccs);
        let text = format!("title = \"check\"\n[run]\nseeds = 1\n\n{line}");
        let scenario = Scenario::parse("check", &text, &[], &NoFiles).ok()?;
        let flows = uncork_sim::run(&scenario.instance(0, 1).run).flows;
        let throughput = |cc: CcSpec| {
            let name = cc.to_string();
            let of_cc = flows.iter().filter(|flow| *flow.cc == *name && flow.busy_ns > 0);
            let rates: Vec<f64> =
                of_cc.map(|flow| flow.bytes_acked as f64 / flow.busy_ns as f64).collect();
            quantile(&rates, 0.5).filter(|rate| *rate > 0.0)
        };
        Some(throughput(ccs[0])? / throughput(ccs[1])?)
    }
}

/// The median throughput between the limits of its 95 % interval, by order statistics.
fn median(responses: &[&TwinResponse<'_>]) -> Option<[f64; 3]> {
    let mut values: Vec<f64> = responses.iter().map(|one| one.throughput()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as f64;
    let half = 0.98 * count.sqrt();
    let low = (count / 2.0 - half).floor().max(0.0) as usize;
    let high = ((count / 2.0 + half).ceil() as usize).min(values.len() - 1);
    Some([*values.get(low)?, quantile(&values, 0.5)?, *values.get(high)?])
}
