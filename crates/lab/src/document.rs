//! From an outcome to the result document.

use uncork_path::{LossPosition, PathSpec};
use uncork_report::{CompareDocument, EngineFigures, PathFigures};
use uncork_sim::{MSS_BYTES, PACKET_BYTES};

use crate::aggregate::ColumnFigures;
use crate::compare::{CompareSpec, Workload};
use crate::run::Outcome;
use crate::verdict::verdict;

/// The document of `outcome`, which `spec` led to. `command` repeats it; `engine` is what it cost.
pub fn document(
    spec: &CompareSpec,
    outcome: &Outcome,
    command: String,
    engine: EngineFigures,
) -> CompareDocument {
    let columns: Vec<ColumnFigures> =
        outcome.columns.iter().map(|column| ColumnFigures::of(column, spec)).collect();
    CompareDocument {
        schema: CompareDocument::SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        command,
        path: path_figures(&spec.path),
        workload: match spec.workload {
            Workload::Transfer(size) => uncork_report::Workload::Size { size_bytes: size.as_u64() },
            Workload::Duration(duration) => {
                uncork_report::Workload::Duration { duration_s: duration.as_secs_f64() }
            }
        },
        seeds: u64::from(spec.seeds),
        verdict: verdict(spec, &columns),
        results: columns.into_iter().map(|column| column.result).collect(),
        engine,
    }
}

fn path_figures(path: &PathSpec) -> PathFigures {
    let buffer_bytes = path.buffer_bytes(PACKET_BYTES);
    PathFigures {
        rate_bps: path.link.nominal_rate().bits_per_sec(),
        rtt_ms: path.rtt.as_millis_f64(),
        loss: path.loss.mean(),
        loss_position: match path.loss_position {
            LossPosition::Before => uncork_report::LossPosition::Before,
            LossPosition::After => uncork_report::LossPosition::After,
        },
        buffer_bytes,
        buffer_packets: buffer_bytes / u64::from(PACKET_BYTES),
        buffer_bdp: buffer_bytes as f64 / path.bdp_bytes().max(1) as f64,
        mss_bytes: MSS_BYTES,
        packet_bytes: PACKET_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::example;

    fn engine() -> EngineFigures {
        EngineFigures { packets: 1, wall_s: 0.5, packets_per_s: 2 }
    }

    #[test]
    fn the_path_in_figures() {
        let spec = example(&["cubic"]);
        let outcome = crate::run(&spec, 1, &|_| {}).unwrap();
        let document = document(&spec, &outcome, "uncork compare".into(), engine());
        assert_eq!(
            document.path,
            PathFigures {
                rate_bps: 20_000_000,
                rtt_ms: 50.0,
                loss: 0.01,
                loss_position: uncork_report::LossPosition::After,
                buffer_bytes: 125_000,
                buffer_packets: 83,
                buffer_bdp: 1.0,
                mss_bytes: 1448,
                packet_bytes: 1500,
            }
        );
        assert_eq!(document.workload, uncork_report::Workload::Size { size_bytes: 100_000 });
        assert_eq!((document.seeds, document.results.len()), (3, 1));
        assert_eq!(
            CompareDocument::from_json(&document.to_json()).unwrap().schema,
            document.schema
        );
    }
}
