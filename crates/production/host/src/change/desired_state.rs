//! The desired state of a host, as a TOML file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use uncork_config::{ConfigError, Entry, Node, Result, Section, each};
use uncork_units::ByteCount;

use uncork_policy::{InitialWindow, MAX_WINDOW, MSS_BYTES};

use super::keys;

/// `TCP_CA_NAME_MAX` and `IFNAMSIZ`, without the final zero.
const LONGEST: usize = 15;

/// The desired state of a host (`docs/reference/host.md`). Settings that it does not name are not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredState {
    /// Algorithm of new connections.
    pub algorithm: Option<String>,
    /// Algorithms that unprivileged processes and other namespaces may choose. Replaces the
    /// kernel's list.
    pub allowed: Option<Vec<String>>,
    /// Kernel modules to load.
    pub modules: Vec<String>,
    /// Queue discipline of new interfaces.
    pub default_qdisc: Option<String>,
    /// Root queue discipline by interface.
    pub qdiscs: BTreeMap<String, String>,
    /// Largest send buffer that TCP's autotuning may choose.
    pub send_buffer: Option<ByteCount>,
    /// Largest receive buffer that TCP's autotuning may choose.
    pub receive_buffer: Option<ByteCount>,
    /// Routes that set their own algorithm.
    pub routes: Vec<DesiredRoute>,
    /// A policy that decides which other routes there are.
    pub policy: Option<RoutesPolicy>,
    /// Algorithm by network namespace of `ip netns`.
    pub namespaces: BTreeMap<String, String>,
    /// Whether the desired state survives a reboot.
    pub persist: bool,
}

/// A route that sets an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredRoute {
    /// Its destination.
    pub to: Prefix,
    /// The algorithm.
    pub algorithm: String,
    /// Whether applications cannot override it.
    pub lock: bool,
    /// Packets of the initial window; `None` is that of the route which leads there.
    pub initial_window: Option<u32>,
}

/// A policy. Its decisions by client network become routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutesPolicy {
    /// Its file, as an absolute path: it is read again at boot.
    pub file: PathBuf,
    /// The public key of the signer. Without a key, the policy needs no signature.
    pub key: Option<PathBuf>,
    /// Databases of origins.
    pub geo: Vec<PathBuf>,
    /// Where it counts; empty: in the networks that it names.
    pub networks: Vec<Prefix>,
}

/// A network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// Its address, host bits zero.
    pub address: IpAddr,
    /// Its length.
    pub bits: u8,
}

impl DesiredState {
    /// Parses a desired state.
    ///
    /// # Errors
    ///
    /// The position of the error in `text`, and a remedy.
    pub fn parse(text: &str) -> Result<Self> {
        read(text).map_err(|error| error.within(text, &[]))
    }

    /// The algorithms that the desired state names.
    pub(crate) fn algorithms(&self) -> impl Iterator<Item = &String> {
        let routes = self.routes.iter().map(|route| &route.algorithm);
        let allowed = self.allowed.iter().flatten();
        self.algorithm.iter().chain(allowed).chain(self.namespaces.values()).chain(routes)
    }
}

fn read(text: &str) -> Result<DesiredState> {
    let tree = Node::of_text(text)?;
    let whole = tree.place.clone();
    let file = Section::new("the desired state", &whole, &tree, keys::FILE)?;
    let mut desired = DesiredState {
        algorithm: file.read("algorithm", algorithm)?,
        allowed: file.read("allowed", |node| names(node, algorithm))?,
        modules: file.read("modules", |node| names(node, module))?.unwrap_or_default(),
        qdiscs: file.read("qdisc", |node| table(node, interface, qdisc))?.unwrap_or_default(),
        routes: each(&tree, "route", keys::ROUTE, route)?,
        policy: routes_policy(&file)?,
        namespaces: file
            .read("namespaces", |node| table(node, namespace, algorithm))?
            .unwrap_or_default(),
        persist: file.flag("persist")?,
        ..DesiredState::default()
    };
    desired.default_qdisc = desired.qdiscs.remove("default");
    if let Some(node) = file.get("buffers") {
        let buffers = Section::new("[buffers]", file.key_place("buffers"), node, keys::BUFFERS)?;
        desired.send_buffer = buffers.read("send", buffer)?;
        desired.receive_buffer = buffers.read("receive", buffer)?;
    }
    allows_its_default(&desired, &file)?;
    no_route_twice(&desired, &tree)?;
    Ok(desired)
}

/// The kernel always allows its default algorithm, even if the list lacks it.
fn allows_its_default(desired: &DesiredState, file: &Section<'_>) -> Result<()> {
    match (&desired.algorithm, &desired.allowed) {
        (Some(default), Some(allowed)) if !allowed.contains(default) => {
            let message = format!("`allowed` lacks the default algorithm {default}");
            let error = ConfigError::new(file.value_place("allowed"), message);
            Err(error.help(format!("add \"{default}\": the kernel allows its default to all")))
        }
        _ => Ok(()),
    }
}

fn no_route_twice(desired: &DesiredState, tree: &Node) -> Result<()> {
    let mut seen = BTreeSet::new();
    for (index, route) in desired.routes.iter().enumerate() {
        if !seen.insert(route.to) {
            let nodes = tree.get("route").map(Node::list).transpose()?.unwrap_or_default();
            let place = nodes.get(index).map_or(&tree.place, |node| &node.place);
            let message = format!("a second [[route]] to {}", route.to);
            return Err(ConfigError::new(place, message).help("remove one of them"));
        }
    }
    Ok(())
}

fn route(section: &Section<'_>) -> Result<DesiredRoute> {
    Ok(DesiredRoute {
        to: section.need("to", "\"10.0.0.0/8\"")?.parse()?,
        algorithm: algorithm(section.need("algorithm", "\"cubic\"")?)?,
        lock: section.flag("lock")?,
        initial_window: section.read("initial_window", initial_window)?,
    })
}

fn initial_window(node: &Node) -> Result<u32> {
    let window: InitialWindow = node.parse()?;
    if !window.exceeds(MAX_WINDOW) {
        return Ok(window.packets(MSS_BYTES));
    }
    Err(ConfigError::new(&node.place, format!("{window} is above the maximum of {MAX_WINDOW}"))
        .help("lower it; a policy with max_initial_window may have more"))
}

fn routes_policy(file: &Section<'_>) -> Result<Option<RoutesPolicy>> {
    let Some(node) = file.get("routes") else { return Ok(None) };
    let routes = Section::new("[routes]", file.key_place("routes"), node, keys::ROUTES)?;
    let list = |key: &str| routes.get(key).map_or(Ok(&[][..]), Node::list);
    Ok(Some(RoutesPolicy {
        file: path(
            routes.need("policy", "\"/var/lib/uncork-serve/learned/current/policy.toml\"")?,
        )?,
        key: routes.read("policy_key", path)?,
        geo: list("geo")?.iter().map(path).collect::<Result<_>>()?,
        networks: list("networks")?.iter().map(Node::parse).collect::<Result<_>>()?,
    }))
}

/// An absolute path.
fn path(node: &Node) -> Result<PathBuf> {
    let text = node.text()?;
    if text.starts_with('/') {
        return Ok(text.into());
    }
    let message = format!("`{text}` is not an absolute path");
    Err(ConfigError::new(&node.place, message)
        .help("begin it with /: the file is read again at boot, from another directory"))
}

fn buffer(node: &Node) -> Result<ByteCount> {
    // The kernel's own minimum of `tcp_wmem` is a page, and its type is `int`.
    node.within((ByteCount::new(4096), ByteCount::new(i32::MAX as u64)))
}

fn names(node: &Node, read: fn(&Node) -> Result<String>) -> Result<Vec<String>> {
    let mut names = node.list()?.iter().map(read).collect::<Result<Vec<_>>>()?;
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Err(
            ConfigError::new(&node.place, "an empty list").help("remove it, or list at least one")
        );
    }
    Ok(names)
}

fn table(
    node: &Node,
    key: fn(&Entry) -> Result<()>,
    value: fn(&Node) -> Result<String>,
) -> Result<BTreeMap<String, String>> {
    if !matches!(node.value, uncork_config::Value::Table(_)) {
        return Err(uncork_config::wrong_type(node, "a table"));
    }
    let entry = |entry: &Entry| {
        key(entry)?;
        Ok((entry.name.clone(), value(&entry.node)?))
    };
    node.entries().iter().map(entry).collect()
}

fn algorithm(node: &Node) -> Result<String> {
    word(node, "an algorithm", "bbr", LONGEST)
}

fn qdisc(node: &Node) -> Result<String> {
    word(node, "a queue discipline", "fq", LONGEST)
}

fn module(node: &Node) -> Result<String> {
    // The kernel uses underscores in module names; modprobe(8) accepts both spellings.
    word(node, "a module", "tcp_bbr", 55).map(|name| name.replace('-', "_"))
}

/// Parses a name of letters, digits, underscores and hyphens.
fn word(node: &Node, what: &str, example: &str, longest: usize) -> Result<String> {
    let text = node.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !text.is_empty() && text.len() <= longest && text.chars().all(fits) && !text.starts_with('-')
    {
        return Ok(text.to_owned());
    }
    Err(ConfigError::new(&node.place, format!("`{text}` is not the name of {what}"))
        .help(format!("write a name such as \"{example}\"")))
}

fn interface(entry: &Entry) -> Result<()> {
    file_name(entry, "an interface", "eth0", LONGEST)
}

fn namespace(entry: &Entry) -> Result<()> {
    file_name(entry, "a network namespace", "the names of `ip netns`", 255)
}

fn file_name(entry: &Entry, what: &str, example: &str, longest: usize) -> Result<()> {
    let name = &entry.name;
    let bad = |c: char| c == '/' || c.is_whitespace() || c.is_control();
    if name.is_empty() || name.len() > longest || name.contains(bad) || name == "." || name == ".."
    {
        let message = format!("`{name}` is not the name of {what}");
        return Err(ConfigError::new(&entry.place, message).help(format!("such as {example}")));
    }
    Ok(())
}

impl Prefix {
    /// Whether it contains all of `other`.
    pub(crate) fn covers(self, other: Self) -> bool {
        let same = self.address.is_ipv4() == other.address.is_ipv4();
        same && self.bits <= other.bits && masked(other.address, self.bits) == self.address
    }

    /// The networks around it, narrowest first.
    pub(crate) fn around(self) -> impl Iterator<Item = Self> {
        (0..self.bits).rev().map(move |bits| Self { address: masked(self.address, bits), bits })
    }

    /// Whether it lies in fe80::/10: each interface has a route to the same network there.
    pub(crate) fn is_link_local(self) -> bool {
        matches!(self.address, IpAddr::V6(address) if address.is_unicast_link_local())
    }

    /// The same in a policy.
    pub(crate) fn of_policy(self) -> uncork_policy::Prefix {
        uncork_policy::Prefix::of(self.address, self.bits)
    }
}

/// `address` with zeros after `bits`.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let shift = |wide: u32| wide - u32::from(bits).min(wide);
    match address {
        IpAddr::V4(v4) => {
            IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(shift(32)).unwrap_or(0)).into())
        }
        IpAddr::V6(v6) => {
            IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(shift(128)).unwrap_or(0)).into())
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = || {
            format!("`{text}` is not a network: write 10.0.0.0/8, 2001:db8::/32, 0.0.0.0/0 or ::/0")
        };
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        if bits > if address.is_ipv4() { 32 } else { 128 } {
            return Err(wrong());
        }
        let network = Self { address: masked(address, bits), bits };
        if network.address == address {
            Ok(network)
        } else {
            Err(format!("`{text}` has host bits: write {network}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_file_is_read() {
        let desired = DesiredState::parse(include_str!("../../../../../docs/reference/host.toml"))
            .expect("a desired state");
        assert_eq!(desired.algorithm.as_deref(), Some("bbr"));
        assert_eq!(desired.default_qdisc.as_deref(), Some("fq"));
        assert_eq!(desired.qdiscs["eth0"], "fq");
        assert_eq!(desired.routes[0].to.to_string(), "10.0.0.0/8");
        assert_eq!(desired.send_buffer, Some(ByteCount::new(16_000_000)));
        assert!(desired.persist);
    }

    #[test]
    fn errors_name_the_line_and_a_remedy() {
        let cases = [
            ("algorithm = 5", 1, "a string"),
            ("\nalgoritm = \"bbr\"", 2, "did you mean `algorithm`"),
            ("algorithm = \"b/r\"", 1, "such as \"bbr\""),
            ("algorithm = \"bbr\"\nallowed = [\"reno\"]", 2, "add \"bbr\""),
            ("allowed = []", 1, "remove it"),
            ("[qdisc]\n\"../x\" = \"fq\"", 2, "not the name of an interface"),
            ("[qdisc]\neth0 = \"\"", 2, "such as \"fq\""),
            ("[buffers]\nsend = 5", 2, "5"),
            ("[buffers]\nsend = \"1B\"", 2, "4KiB"),
            ("[[route]]\nto = \"10.0.0.1/8\"\nalgorithm = \"reno\"", 2, "10.0.0.0/8"),
            ("[[route]]\nto = \"10.0.0.0/33\"\nalgorithm = \"reno\"", 2, "10.0.0.0/8"),
            ("[[route]]\nto = \"::/0\"", 1, "algorithm = \"cubic\""),
            (
                "[[route]]\nto='::/0'\nalgorithm='a'\ninitial_window='65p'",
                4,
                "lower it; a policy with max_initial_window may have more",
            ),
            (
                "[[route]]\nto='::/0'\nalgorithm='a'\n[[route]]\nto='::/0'\nalgorithm='b'",
                4,
                "remove one",
            ),
            ("[namespaces]\n\"..\" = \"reno\"", 2, "not the name of a network namespace"),
            ("persist = 1", 1, "true or false"),
            ("[routes]\ngeo = []", 1, "policy = \"/var/lib/uncork-serve/learned"),
            ("[routes]\npolicy = \"a.toml\"", 2, "begin it with /"),
            ("[routes]\npolicy = \"/a\"\npolicykey = \"/b\"", 3, "did you mean `policy_key`"),
            ("[routes]\npolicy = \"/a\"\nnetworks = [\"10.0.0.1/8\"]", 3, "10.0.0.0/8"),
        ];
        for (text, line, part) in cases {
            let error = DesiredState::parse(text).expect_err(text);
            let shown = error.render("host.toml", false);
            assert_eq!(error.line(), line, "{shown}");
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn a_prefix_covers_what_is_in_it() {
        let prefix = |text: &str| text.parse::<Prefix>().expect(text);
        assert!(prefix("0.0.0.0/0").covers(prefix("10.0.0.0/8")));
        assert!(prefix("10.0.0.0/8").covers(prefix("10.1.0.0/16")));
        assert!(!prefix("10.0.0.0/8").covers(prefix("11.0.0.0/8")));
        assert!(!prefix("::/0").covers(prefix("10.0.0.0/8")));
        assert!(prefix("2001:db8::/32").covers(prefix("2001:db8:1::/48")));
    }
}
