//! `uncork lab from-records`.

use uncork_twin::{NoTwin, Twin, TwinSpec};

use super::args::FromRecordsArgs;
use crate::failure::Failure;
use crate::full::file;
use crate::full::records;
use crate::stdout;

const ARGUMENT: &str = "<RECORDS>";

pub(super) fn run(args: &FromRecordsArgs) -> Result<(), Failure> {
    let records = records::read(ARGUMENT, &args.records)?;
    let spec = TwinSpec {
        controllers: args.cc.clone(),
        clients: args.clients,
        by_network: args.by_network.map(|least| least as usize),
        only: args.only.clone(),
    };
    let shown = args.records.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    let twin = Twin::of(&records, &spec).map_err(|error| match &error {
        NoTwin::UnknownGroup(only) => Failure::value("--only <AS|NETWORK>", only, &error),
        _ => Failure::value(ARGUMENT, shown.join(" "), &error),
    })?;
    for note in &twin.left_out {
        eprintln!("{note}; left out");
    }
    match &args.output {
        None => stdout::data(twin.text.as_bytes()),
        Some(file) => file::replace(file, twin.text.as_bytes()),
    }
}
