//! Moves open connections to the decisions of the active policy.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Serialize, Serializer};
use uncork_cc::InLinux;
use uncork_diag::{Connection, Diag, Query, StateSet, TcpState};
use uncork_kernel::{Maps, Object, Program, ProgramKind, default};
use uncork_policy::Prefixes;

use crate::apply::open_cgroup;
use crate::archive::PolicyArchive;
use crate::description::{Decided, Description};
use crate::error::Error;
use crate::layout::{self, MoveTarget};
use crate::question::Question;
use crate::sockets::SteeredSockets;
use crate::steered::Steered;

const OBJECT: &[u8] = include_bytes!("../bpf/move.bpf.o");
/// The kernel's word for no cap.
const NO_CAP: u32 = u32::MAX;

/// The connections to move.
#[derive(Clone, Debug)]
pub struct MoveRequest<'a> {
    /// Connections of clients in these networks; `None` is all.
    pub clients: Option<&'a Prefixes>,
    /// Connections for which this rule decides now.
    pub rule: Option<&'a str>,
    /// Connections with this controller.
    pub from: Option<&'a str>,
    /// Now.
    pub unix_s: i64,
    /// Only count.
    pub is_dry_run: bool,
}

/// What was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Moves {
    /// The cgroup's directory.
    pub cgroup: String,
    /// Open connections that were asked for.
    pub connections: u64,
    /// Connections with other settings than the active policy decides, by controller. Equal controllers: another pacing cap.
    #[cfg_attr(test, schemars(with = "Vec<ToMove<'_>>"))]
    #[serde(serialize_with = "listed")]
    pub to_move: BTreeMap<(String, String), u64>,
    /// Connections that were moved; null in a dry run.
    pub moved: Option<u64>,
    /// Connections for which the kernel refused the controller or the cap; null in a dry run.
    pub refused: Option<u64>,
    /// Connections that ended before they could be moved; null in a dry run.
    pub ended: Option<u64>,
}

impl Steered {
    /// Gives open connections of the cgroup, in this network namespace, the settings that the active policy decides. Connections that
    /// have them already do not change. The records of the others have no arm from now on.
    ///
    /// # Errors
    ///
    /// If no policy is active, the kernel does not report connections, or without the privilege.
    pub fn move_open(&self, request: &MoveRequest<'_>) -> Result<Moves, Error> {
        let (ask, description) = self.question_program()?;
        let path = Path::new(&description.cgroup);
        let (_, number) = open_cgroup(path)?;
        let _lock = self.pins().lock()?;
        let mut cgroups = HashSet::from([number]);
        add_children(path, &mut cgroups);
        let sockets = self.sockets()?;
        let (listening, open) = connections(&cgroups)?;
        let cgroup = description.cgroup.clone();
        let mut moves = Moves { cgroup, ..Moves::default() };
        let (mut cookies, mut targets) = (Vec::new(), Vec::new());
        let mut planner =
            MovePlanner { ask, description, archive: PolicyArchive::of(self), sockets };
        for connection in &open {
            let listener = listener(&listening, connection);
            if let Some(target) = planner.target(connection, listener, request, &mut moves)? {
                cookies.push(connection.cookie);
                targets.push(target);
            }
        }
        if !request.is_dry_run {
            let [moved, refused] = carry_out(&cookies, &targets, &planner.sockets)?;
            let ended = moves.targets().saturating_sub(moved + refused);
            (moves.moved, moves.refused, moves.ended) = (Some(moved), Some(refused), Some(ended));
        }
        Ok(moves)
    }
}

impl Moves {
    /// Connections to move.
    pub(crate) fn targets(&self) -> u64 {
        self.to_move.values().sum()
    }
}

/// Connections to move, with the same controllers.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ToMove<'a> {
    /// The old controller.
    from: &'a str,
    /// The new one.
    to: &'a str,
    /// Their number.
    #[cfg_attr(test, schemars(range(min = 1)))]
    connections: u64,
}

/// The connections to move as a list.
fn listed<S: Serializer>(
    to_move: &BTreeMap<(String, String), u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let all = to_move.iter();
    serializer.collect_seq(all.map(|((from, to), connections)| ToMove {
        from,
        to,
        connections: *connections,
    }))
}

/// Adds the numbers of the cgroups below: the policy holds for them, too.
pub(crate) fn add_children(path: &Path, cgroups: &mut HashSet<u64>) {
    for child in fs::read_dir(path).into_iter().flatten().flatten() {
        if let Ok(about) = child.metadata()
            && about.is_dir()
        {
            cgroups.insert(about.ino());
            add_children(&child.path(), cgroups);
        }
    }
}

/// The listening sockets, and the cgroups' connections that may still send.
fn connections(cgroups: &HashSet<u64>) -> Result<(Vec<Connection>, Vec<Connection>), Error> {
    let states = StateSet::SENDING.with(TcpState::Listen);
    let query = Query { states, ..Query::default() };
    let (mut listening, mut open) = (Vec::new(), Vec::new());
    let mut diag = Diag::open()?;
    diag.dump(&query, |socket| {
        if socket.state == TcpState::Listen {
            listening.push(*socket);
        } else if socket.cgroup.is_some_and(|cgroup| cgroups.contains(&cgroup)) {
            open.push(*socket);
        }
    })?;
    Ok((listening, open))
}

/// The listening socket that accepted a connection: of its port and address, otherwise of its port.
fn listener<'a>(listening: &'a [Connection], connection: &Connection) -> Option<&'a Connection> {
    let local = connection.local;
    let is_at =
        |socket: &&Connection| socket.local.ip().to_canonical() == local.ip().to_canonical();
    let mut at_port = listening.iter().filter(|socket| socket.local.port() == local.port());
    let first = at_port.clone().next();
    at_port.find(is_at).or(first)
}

struct MovePlanner {
    ask: Program,
    description: Description,
    archive: PolicyArchive,
    sockets: SteeredSockets,
}

impl MovePlanner {
    /// The connection's new settings; `None` if it has them, or the request does not select it.
    fn target(
        &mut self,
        connection: &Connection,
        listener: Option<&Connection>,
        request: &MoveRequest<'_>,
        moves: &mut Moves,
    ) -> Result<Option<MoveTarget>, Error> {
        let client = connection.remote.ip();
        let has = connection.cc.map(|cc| cc.as_str().to_owned()).unwrap_or_default();
        let port = listener.map(|listener| listener.local.port());
        if request.clients.is_some_and(|clients| !clients.contains(client))
            || request.from.is_some_and(|from| from != has)
        {
            return Ok(None);
        }
        let answer = Question { client, port, unix_s: request.unix_s }.ask(&self.ask)?;
        let Some(decided) = self.description.decided.get(answer.outcome).cloned() else {
            return Ok(None);
        };
        if request.rule.is_some_and(|rule| rule != decided.by().rule_name()) {
            return Ok(None);
        }
        moves.connections += 1;
        let before = self.before(connection.cookie)?;
        let gets = match (&decided.tcp, &before) {
            (Some(decided), _) => decided.clone(),
            (None, Some(Decided { tcp: Some(_), .. })) => self.without_rule(listener)?,
            (None, _) => has.clone(),
        };
        // Only the start of a connection can resume.
        let gets = if gets == InLinux::without_resume(&has) { has.clone() } else { gets };
        let cap = cap(&decided, before.as_ref());
        if gets == has && cap == 0 {
            return Ok(None);
        }
        let controller = Some(gets.as_str()).filter(|gets| *gets != has);
        let target = MoveTarget::new(&answer, controller, cap);
        *moves.to_move.entry((has, gets)).or_default() += 1;
        Ok(Some(target))
    }

    /// What a connection of this listening socket has without a rule's controller: that of the listener, which its service may have set, or the
    /// host's default where the policy has set that of the listener.
    fn without_rule(&self, listener: Option<&Connection>) -> Result<String, Error> {
        let Some(Connection { cookie, cc: Some(cc), .. }) = listener else { return Ok(default()) };
        let is_policys = self.sockets.find(*cookie)?.is_some_and(|found| found.is_listener());
        Ok(if is_policys { default() } else { cc.as_str().to_owned() })
    }

    /// The earlier decision for a connection, if a policy decided.
    fn before(&mut self, cookie: u64) -> Result<Option<Decided>, Error> {
        let Some(decision) = self.sockets.find(cookie)? else { return Ok(None) };
        Ok(self.archive.decided(&decision).cloned())
    }
}

/// The cap to set, in bytes per second; 0 if it has the right one.
fn cap(decided: &Decided, before: Option<&Decided>) -> u32 {
    let had = before.and_then(|before| before.pacing_cap_bps);
    match decided.pacing_cap_bps {
        cap if cap == had => 0,
        Some(cap) => u32::try_from(cap / 8).unwrap_or(NO_CAP),
        None => NO_CAP,
    }
}

/// Changes sockets: how many were changed, and how many the kernel refused.
pub(crate) fn carry_out(
    cookies: &[u64],
    targets: &[MoveTarget],
    sockets: &SteeredSockets,
) -> Result<[u64; 2], Error> {
    if targets.is_empty() {
        return Ok([0; 2]);
    }
    let mut object = Object::plain("uncork steer move", OBJECT, &layout::MOVE)?;
    let map = object.create_map("targets", Some(targets.len() as u32))?;
    map.fill(cookies, targets).map_err(Error::step("list the connections to move"))?;
    let done = object.create_map("done", None)?;
    let sockets = sockets.0.try_clone().map_err(Error::step("share the table of connections"))?;
    let maps = [("targets", map), ("sockets", sockets), ("done", done)];
    let maps: Maps = maps.into_iter().map(|(name, map)| (name.to_owned(), map)).collect();
    object.link(&maps)?;
    let program = object.load("move", ProgramKind::iterator("tcp")?)?;
    program.iterate().map_err(Error::step("move connections"))?;
    let count = |index| maps["done"].value(index).map_err(Error::step("read what was moved"));
    Ok([count(0)?, count(1)?])
}
