//! Parsing of settings.

use uncork_cc::{Algorithm, CcSpec, EcnMode, InitialWindow};
use uncork_config::{ConfigError, Node, Place, Result, Section};
use uncork_units::Rate;

use super::keys;
use crate::{InitialRate, MAX_WINDOW, Settings};

/// Maximum length of a controller's name in the kernel (`TCP_CA_NAME_MAX` without the NUL byte).
const NAME: usize = 15;

/// What the file says once for all settings.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    /// The values of missing keys.
    pub(crate) settings: Settings,
    /// No initial window may be larger.
    pub(crate) max_window: InitialWindow,
}

impl Defaults {
    /// Without `[default]`.
    pub(crate) fn new(max_window: Option<InitialWindow>) -> Self {
        Self { settings: Settings::default(), max_window: max_window.unwrap_or(MAX_WINDOW) }
    }
}

/// The settings in the table `node`; missing keys are taken from `defaults`.
pub(crate) fn settings(
    title: &str,
    place: &Place,
    node: &Node,
    defaults: &Defaults,
) -> Result<Settings> {
    let section = Section::new(title, place, node, keys::SETTINGS)?;
    if node.entries().is_empty() {
        return Err(ConfigError::new(place, format!("{title} is empty"))
            .help("write quic = \"bbr3\" or tcp = \"bbr\" into it, or leave it out"));
    }
    of(&section, defaults)
}

/// The settings among the keys of `section`.
pub(crate) fn of(section: &Section<'_>, defaults: &Defaults) -> Result<Settings> {
    let otherwise = &defaults.settings;
    let quic = section.read("quic", controller)?;
    let tcp = section.read("tcp", kernel_name)?;
    let window = section.read("initial_window", |node| window(node, defaults.max_window))?;
    let rate = section.read("initial_rate", initial_rate)?;
    let cap = section.read("pacing_cap", cap)?;
    let ecn = section.read("ecn", Node::parse::<EcnMode>)?;
    let resume = section.read("resume", Node::flag)?;
    let window = window.or(otherwise.initial_window);
    let rate = rate.or(otherwise.initial_rate);
    if let (None, Some(_), Some(node)) = (window, rate, section.get("initial_rate")) {
        let message = "`initial_rate` has no effect without `initial_window`";
        return Err(ConfigError::new(&node.place, message)
            .help("write initial_window, such as \"32p\", or remove it"));
    }
    let settings = Settings {
        quic: quic.unwrap_or(otherwise.quic),
        tcp: tcp.or_else(|| otherwise.tcp.clone()),
        initial_window: window,
        initial_rate: rate,
        pacing_cap: cap.or(otherwise.pacing_cap),
        ecn: ecn.or(otherwise.ecn),
        resume: resume.unwrap_or(otherwise.resume),
    };
    check_l4s(section, &settings)?;
    Ok(settings)
}

/// Refuses L4S without a controller for it: one that answers each mark as a loss gets too little, one that answers none
/// takes what others leave (RFC 9331 §4.3).
fn check_l4s(section: &Section<'_>, settings: &Settings) -> Result<()> {
    let has_controller = EcnMode::L4s.suits(settings.quic.algorithm())
        || settings.tcp.as_deref() == Some(Settings::L4S_TCP);
    if settings.ecn != Some(EcnMode::L4s) || has_controller {
        return Ok(());
    }
    let place = section.value_place("ecn");
    let message = "`ecn = \"l4s\"` without a controller that answers its marks";
    let remedy = format!("write quic = \"prague\" or tcp = \"{}\", too", Settings::L4S_TCP);
    Err(ConfigError::new(place, message).help(remedy))
}

fn controller(node: &Node) -> Result<CcSpec> {
    node.named("controller", &Algorithm::ALL.map(|it| (it.name(), it.options())))
}

/// A syntactically valid kernel name of a controller. Whether the kernel has it depends on the machine.
fn kernel_name(node: &Node) -> Result<Box<str>> {
    let text = node.text()?;
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !text.is_empty() && text.len() <= NAME && text.bytes().all(usual) {
        return Ok(text.into());
    }
    Err(ConfigError::new(
        &node.place,
        format!("`{text}` is not a name of a congestion control in the kernel"),
    )
    .expected("a name such as bbr or cubic")
    .help("`sysctl net.ipv4.tcp_available_congestion_control` lists this kernel's"))
}

fn window(node: &Node, max: InitialWindow) -> Result<InitialWindow> {
    let window: InitialWindow = node.parse()?;
    if !window.exceeds(max) {
        return Ok(window);
    }
    Err(ConfigError::new(&node.place, format!("{window} is above the maximum of {max}")).help(
        format!("write max_initial_window = \"{window}\" at the top of the file to allow it"),
    ))
}

fn initial_rate(node: &Node) -> Result<InitialRate> {
    if node.text().is_ok_and(|text| text == "burst") {
        return Ok(InitialRate::Burst);
    }
    let rate: Rate =
        node.parse().map_err(|error| error.expected("`burst` or a rate such as 20mbit"))?;
    if rate.bits_per_sec() > 0 {
        return Ok(InitialRate::Paced(rate));
    }
    Err(ConfigError::new(&node.place, "an initial rate of 0 would stall the connection")
        .help("set a rate, or write \"burst\""))
}

fn cap(node: &Node) -> Result<Rate> {
    let rate: Rate = node.parse()?;
    if rate.bits_per_sec() > 0 {
        return Ok(rate);
    }
    Err(ConfigError::new(&node.place, "a pacing cap of 0 would stall the connection")
        .help("set a rate, or remove the cap"))
}
