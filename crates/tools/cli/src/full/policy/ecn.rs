//! `uncork policy ecn`: how new connections of each client network should use ECN.

use uncork_ecn::Networks;
use uncork_flow::{FlowRecord, Scope};
use uncork_policy::{TableText, UnixTime};
use uncork_records::rfc3339;

use super::args::EcnArgs;
use crate::failure::Failure;
use crate::full::{file, records, unix_time};
use crate::print;

const ARGUMENT: &str = "<RECORDS>";

pub(super) fn run(args: &EcnArgs) -> Result<(), Failure> {
    let as_of = args.as_of.map_or_else(unix_time::unix_s, |UnixTime(time)| time).max(0) as u64;
    let mut networks = Networks::new(as_of);
    for record in records::read(ARGUMENT, &args.records)? {
        add(&mut networks, &record);
    }
    if networks.is_empty() {
        let shown = args.records.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        let reason = match networks.later() {
            0 => {
                "no connection in it sent ECT(1); serve with quic = \"prague\" and --records first"
            }
            _ => {
                "all connections with ECT(1) in it end after the time of the verdicts; give a later --as-of"
            }
        };
        return Err(Failure::value(ARGUMENT, shown.join(" "), reason));
    }
    if let Some(output) = &args.output {
        file::replace(output, table(&networks, &args.section).as_bytes())?;
    }
    print::document(args.format, &networks.document(), |_| networks.text())
}

/// Responses share the evidence of their connection.
fn add(networks: &mut Networks, record: &FlowRecord) {
    let Some(service) = record.service.as_ref().filter(|it| it.scope == Scope::Connection) else {
        return;
    };
    if let (Some(client), Some(evidence)) = (&service.client, record.ecn_evidence()) {
        let end = service.start_unix_ns.saturating_add(record.busy_ns);
        networks.add(client, &evidence, end / 1_000_000_000);
    }
}

fn table(networks: &Networks, section: &str) -> String {
    let as_of = networks.as_of_unix_s();
    let verdicts: Vec<_> = networks.verdicts().collect();
    let arms = verdicts.iter().filter_map(|(name, it)| Some((*name, it.bottleneck.ecn()?)));
    let (made, expires) = (rfc3339(as_of), rfc3339(as_of + Networks::MAX_AGE_S));
    let table =
        TableText { version: as_of, made: &made, expires: &expires, section, arms: arms.collect() };
    table.text()
}
