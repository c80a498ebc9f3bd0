//! What `uncork steer` prints, as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use uncork_policy::{bucket, slot};
use uncork_steer::{Answer, Count, Decided, Description, Moves, PendingStatus, Question, Status};

use crate::failure::Failure;
use crate::json::pretty;

const STATUS_SCHEMA: &str = "uncork.steer/1";
const EXPLAIN_SCHEMA: &str = "uncork.steer.explain/1";
const MOVE_SCHEMA: &str = "uncork.steer.move/1";

#[derive(Serialize)]
pub(crate) struct SteerDocument {
    schema: &'static str,
    pub(crate) cgroups: Vec<StatusOfCgroup>,
}

#[derive(Serialize)]
pub(crate) struct StatusOfCgroup {
    pub(crate) cgroup: String,
    pub(crate) policy: String,
    fingerprint: String,
    applied_unix_s: i64,
    networks: u64,
    warnings: Vec<String>,
    pub(crate) pending: Option<PendingDocument>,
    /// Of the program, if the kernel counts.
    runs: u64,
    run_ns: u64,
    verified_instructions: u32,
    pub(crate) decided: Vec<DecidedStatus>,
}

#[derive(Serialize)]
pub(crate) struct PendingDocument {
    pub(crate) left_s: u64,
    pub(crate) returns_to: Option<String>,
    pub(crate) guarded: bool,
}

#[derive(Serialize)]
pub(crate) struct DecidedStatus {
    #[serde(flatten)]
    decided: Decided,
    pub(crate) connections: u64,
    refused: u64,
    unkept: u64,
}

pub(super) fn status_json(all: &[Status]) -> Result<String, Failure> {
    pretty(&steer_document(all))
}

pub(crate) fn steer_document(all: &[Status]) -> SteerDocument {
    let cgroups = all.iter().map(|status| {
        let Status { description, cost: (run_ns, runs), .. } = status.clone();
        StatusOfCgroup {
            decided: counted(&description, &status.counts).collect(),
            cgroup: description.cgroup,
            policy: description.policy,
            fingerprint: description.fingerprint,
            applied_unix_s: description.applied_unix_s,
            networks: description.networks,
            warnings: description.warnings,
            pending: status.pending.as_ref().map(|it| PendingDocument {
                left_s: it.left_s,
                returns_to: it.returns_to.clone(),
                guarded: it.is_guarded,
            }),
            runs,
            run_ns,
            verified_instructions: status.verified_instructions,
        }
    });
    SteerDocument { schema: STATUS_SCHEMA, cgroups: cgroups.collect() }
}

fn counted(description: &Description, counts: &[Count]) -> impl Iterator<Item = DecidedStatus> {
    description.decided.iter().cloned().zip(counts).map(|(decided, count)| {
        let Count { connections, refused, table_full } = *count;
        DecidedStatus { decided, connections, refused, unkept: table_full }
    })
}

pub(super) fn status(all: &[Status]) -> String {
    let mut text = String::new();
    for Status { description, counts, pending, .. } in all {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{}: {}", description.cgroup, description.policy);
        if let Some(PendingStatus { left_s, returns_to, .. }) = pending {
            let to = returns_to.as_deref().unwrap_or("no policy");
            let _ = writeln!(
                text,
                "  rolled back to {to} in {left_s} s, unless you run: uncork steer confirm"
            );
        }
        let rows: Vec<[String; 4]> = counted(description, counts)
            .map(|it| {
                [
                    it.decided.by().rule_name().into_owned(),
                    it.decided.arm.clone().unwrap_or_else(|| "-".to_owned()),
                    settings(&it.decided),
                    it.connections.to_string(),
                ]
            })
            .collect();
        let width = |column: usize, head: &str| {
            let widths = rows.iter().map(|row| row[column].chars().count());
            widths.chain([head.len()]).max().unwrap_or(0)
        };
        let heads = ["rule", "arm", "controller", "connections"];
        let widths = [0, 1, 2].map(|column| width(column, heads[column]));
        for row in std::iter::once(heads.map(str::to_owned)).chain(rows) {
            let [rule, arm, controller, connections] = row;
            let [one, two, three] = widths;
            let _ = writeln!(text, "  {rule:one$}  {arm:two$}  {controller:three$}  {connections}");
        }
        let refused: u64 = counts.iter().map(|count| count.refused).sum();
        if refused > 0 {
            let _ = writeln!(text, "  the kernel refused the settings of {refused} of them");
        }
        let table_full: u64 = counts.iter().map(|count| count.table_full).sum();
        if table_full > 0 {
            let _ =
                writeln!(text, "  {table_full} of them will have no record: the table was full");
        }
    }
    text
}

#[derive(Serialize)]
struct MoveDocument<'a> {
    schema: &'static str,
    dry_run: bool,
    cgroups: Vec<CgroupMoves<'a>>,
}

#[derive(Serialize)]
struct CgroupMoves<'a> {
    cgroup: &'a str,
    connections: u64,
    to_move: Vec<ToMove<'a>>,
    /// `None` of a dry run, as the next.
    moved: Option<u64>,
    refused: Option<u64>,
    ended: Option<u64>,
}

#[derive(Serialize)]
struct ToMove<'a> {
    from: &'a str,
    to: &'a str,
    connections: u64,
}

pub(super) fn moves_json(all: &[Moves], dry_run: bool) -> Result<String, Failure> {
    let cgroups = all.iter().map(|moves| {
        let done = |count: u64| (!dry_run).then_some(count);
        let to_move = moves.to_move.iter();
        CgroupMoves {
            cgroup: &moves.cgroup,
            connections: moves.connections,
            to_move: to_move
                .map(|((from, to), connections)| ToMove { from, to, connections: *connections })
                .collect(),
            moved: done(moves.moved),
            refused: done(moves.refused),
            ended: done(ended(moves)),
        }
    });
    pretty(&MoveDocument { schema: MOVE_SCHEMA, dry_run, cgroups: cgroups.collect() })
}

/// Connections that ended before they could be moved.
fn ended(Moves { to_move, moved, refused, .. }: &Moves) -> u64 {
    to_move.values().sum::<u64>().saturating_sub(moved + refused)
}

pub(super) fn moves(moves: &Moves, is_dry_run: bool) -> String {
    let Moves { connections, to_move, moved, refused, .. } = moves;
    let all: u64 = to_move.values().sum();
    let mut text = format!("{all} of {connections} open connections have other settings\n");
    for ((from, to), count) in to_move {
        // Writing into a string cannot fail.
        let _ = if from == to {
            writeln!(text, "  {count} another pacing cap, with {from}")
        } else {
            writeln!(text, "  {count} from {from} to {to}")
        };
    }
    if !is_dry_run {
        let ended = ended(moves);
        let _ = writeln!(text, "{moved} moved, {refused} refused, {ended} ended meanwhile");
    }
    text
}

fn settings(decided: &Decided) -> String {
    let controller = decided.tcp.as_deref().unwrap_or("the system's");
    match decided.pacing_cap_bps {
        Some(cap) => format!("{controller}, at most {} Mbit/s", cap as f64 / 1e6),
        None => controller.to_owned(),
    }
}

#[derive(Serialize)]
struct SteerExplanation<'a> {
    schema: &'static str,
    client: String,
    port: Option<u16>,
    unix_s: i64,
    policy: String,
    #[serde(flatten)]
    decided: &'a Decided,
    unit: Option<u64>,
    slot: Option<u16>,
    bucket: Option<u8>,
}

pub(super) fn explanation_json(
    question: &Question,
    (answer, decided): &(Answer, Decided),
) -> Result<String, Failure> {
    let unit = decided.arm.as_ref().map(|_| answer.unit);
    pretty(&SteerExplanation {
        schema: EXPLAIN_SCHEMA,
        client: question.client.to_string(),
        port: question.port,
        unix_s: question.unix_s,
        policy: format!("{:016x}", answer.policy),
        decided,
        unit,
        slot: unit.map(slot),
        bucket: unit.map(bucket),
    })
}

pub(super) fn explanation(question: &Question, (answer, decided): &(Answer, Decided)) -> String {
    let how = match question.port {
        Some(port) => format!("accepted on port {port}"),
        None => "opened by the service".to_owned(),
    };
    let line = decided.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let mut text = format!("{}, {how}: {}\n", question.client, settings(decided));
    let _ = writeln!(text, "  {}{line} decides", decided.by());
    if let (Some(experiment), Some(arm), Some(share)) =
        (&decided.experiment, &decided.arm, decided.propensity)
    {
        let (slot, bucket) = (slot(answer.unit), bucket(answer.unit));
        let share = share * 100.0;
        let _ = writeln!(
            text,
            "  arm `{arm}` of `{experiment}`, slot {slot}, bucket {bucket}, given to {share} %"
        );
    }
    text
}
