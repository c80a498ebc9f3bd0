//! Results as text.

use std::fmt::Write as _;

use uncork_terminal::{Column, Style, Table};

use crate::apply::AppliedPolicy;
use crate::description::Decided;
use crate::document::{CgroupDocument, DecidedDocument, ExplanationDocument, StatusDocument};
use crate::listeners::ListenerChanges;
use crate::moves::Moves;
use crate::recorder::Summary;

impl AppliedPolicy {
    /// What is active now, in a line, and a line for listening sockets where they matter.
    pub fn text(&self) -> String {
        let what = if self.exchanged { "replaces the policy before" } else { "is active" };
        let (policy, cgroup) = (&self.description.policy, &self.description.cgroup);
        let networks = self.description.networks;
        let plural = if networks == 1 { "" } else { "s" };
        let listeners = self.listeners();
        format!(
            "{policy} {what} for new connections of {cgroup}: {networks} network{plural}\n{listeners}"
        )
    }

    fn listeners(&self) -> String {
        let Some(controller) = self.description.listener_controller() else { return String::new() };
        let sockets = |count: u64| if count == 1 { "socket" } else { "sockets" };
        match &self.listeners {
            Err(error) => format!(
                "warning: listening sockets were not given {controller}, so connections do not negotiate AccECN: {error}; \
                 restart the server\n"
            ),
            Ok(ListenerChanges { changed: 0, own: 0 }) => String::new(),
            Ok(ListenerChanges { changed, own: 0 }) => format!(
                "{changed} listening {} got {controller}: connections can negotiate AccECN\n",
                sockets(*changed)
            ),
            Ok(ListenerChanges { own, .. }) => format!(
                "warning: {own} listening {} with a controller that the server has set: connections do not negotiate \
                 AccECN; set {controller} in the server, or none\n",
                sockets(*own)
            ),
        }
    }
}

impl StatusDocument {
    /// A table for each cgroup.
    pub fn text(&self) -> String {
        self.cgroups.iter().map(CgroupDocument::text).collect()
    }
}

impl CgroupDocument {
    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.cgroup, self.policy);
        // Writing into a string cannot fail.
        if let Some(pending) = &self.pending {
            let (to, left_s) = (pending.target(), pending.left_s);
            let _ = writeln!(
                text,
                "  rolled back to {to} in {left_s} s, unless you run: uncork steer confirm"
            );
        }
        let columns = ["rule", "arm", "controller", "connections"].map(Column::left);
        let table = Table::new(columns, self.decided.iter().map(DecidedDocument::row));
        text.extend(table.render(Style::Plain).lines().map(|line| format!("  {line}\n")));
        let sum = |of: fn(&DecidedDocument) -> u64| self.decided.iter().map(of).sum::<u64>();
        let (refused, table_full) = (sum(|it| it.refused), sum(|it| it.table_full));
        let windows = sum(|it| it.windows_refused);
        if refused > 0 {
            let _ = writeln!(text, "  the kernel refused the settings of {refused} of them");
        }
        if windows > 0 {
            let _ = writeln!(
                text,
                "  the initial window of {windows} of them stayed the kernel's: data had left already, or packets of the handshake were lost"
            );
        }
        if table_full > 0 {
            let _ =
                writeln!(text, "  {table_full} of them will have no record: the table was full");
        }
        text
    }
}

impl DecidedDocument {
    fn row(&self) -> [String; 4] {
        [
            self.decided.by().rule_name().into_owned(),
            self.decided.arm.clone().unwrap_or_else(|| "-".to_owned()),
            settings(&self.decided),
            self.connections.to_string(),
        ]
    }
}

fn settings(decided: &Decided) -> String {
    let controller = decided.tcp.as_deref().unwrap_or("the system's").to_owned();
    let window = decided.initial_window.as_ref().map(|window| {
        let rate = match decided.initial_rate.as_deref() {
            Some("burst") => " in a burst".to_owned(),
            Some(rate) => format!(" at up to {rate}"),
            None => String::new(),
        };
        format!("initial window {window}{rate}")
    });
    let cap = decided.pacing_cap_bps.map(|cap| format!("at most {} Mbit/s", cap as f64 / 1e6));
    let resume = decided.resume.then(|| "resume".to_owned());
    [Some(controller), window, cap, resume].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl ExplanationDocument {
    /// The settings, the rule, and the arm if there is one.
    pub fn text(&self) -> String {
        let decided = &self.decided;
        let how = match self.port {
            Some(port) => format!("accepted on port {port}"),
            None => "opened by the service".to_owned(),
        };
        let line = decided.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        let mut text = format!("{}, {how}: {}\n", self.client, settings(decided));
        let _ = writeln!(text, "  {}{line} decides", decided.by());
        if let (Some(experiment), Some(arm), Some(share), Some(slot), Some(bucket)) =
            (&decided.experiment, &decided.arm, decided.propensity, self.slot, self.bucket)
        {
            let share = share * 100.0;
            let _ = writeln!(
                text,
                "  arm `{arm}` of `{experiment}`, slot {slot}, bucket {bucket}, given to {share} %"
            );
        }
        text
    }
}

impl Moves {
    /// What was moved from which controller to which.
    pub fn text(&self) -> String {
        let (all, connections) = (self.targets(), self.connections);
        let mut text = format!("{all} of {connections} open connections have other settings\n");
        for ((from, to), count) in &self.to_move {
            let _ = if from == to {
                writeln!(text, "  {count} another pacing cap, with {from}")
            } else {
                writeln!(text, "  {count} from {from} to {to}")
            };
        }
        if let (Some(moved), Some(refused), Some(ended)) = (self.moved, self.refused, self.ended) {
            let _ = writeln!(text, "{moved} moved, {refused} refused, {ended} ended meanwhile");
        }
        text
    }
}

impl Summary {
    /// Which connections have no record, a line for each reason.
    pub fn warnings(&self) -> Vec<String> {
        let lost =
            |count: u64, why: &str| (count > 0).then(|| format!("lost {count} connections: {why}"));
        let events = self.lost_events;
        let overrun = (events > 0).then(|| {
            format!(
                "lost close events {events} times: the kernel sent them faster than they were read; CAP_NET_ADMIN allows a \
                 larger buffer"
            )
        });
        [
            self.problem.clone(),
            self.records.warning(),
            lost(self.ring_dropped, "too many ended at once"),
            lost(
                self.other_version,
                "another version of uncork applied their policy; apply it again",
            ),
            lost(
                self.policy_unknown,
                "the description of their policy does not exist any more",
            ),
            overrun,
            lost(
                self.close_event_missing,
                "the kernel sent no close event; a program has them open, they are in another network namespace \
                 (--netns), or events were lost",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
