//! Audio and video players.

use uncork_apps::{Abr, AudioSpec, ClientSpec, SpecError, Track, VideoSpec};
use uncork_config::{Node, Result, Section};
use uncork_units::{ByteCount, Rate, Ratio, TimeDelta};

use super::super::ScenarioError;
use super::super::keys;
use super::super::plan::SingleActivity;

/// Maximum number of consecutive songs.
const MAX_TRACKS: u64 = 10_000;

pub(crate) fn audio(class: &Section<'_>, node: &Node) -> Result<SingleActivity> {
    let section = Section::new("audio", class.key_place("audio"), node, keys::AUDIO)?;
    let usual = AudioSpec::default();
    let song = usual.tracks.first().copied();
    let song = Track {
        duration: section
            .parse_or("duration", song.map_or(TimeDelta::ZERO, |song| song.duration))?,
        bitrate: section.parse_or("bitrate", song.map_or(Rate::ZERO, |song| song.bitrate))?,
    };
    let count = section.read("tracks", |node| node.whole(1..=MAX_TRACKS))?.unwrap_or(1);
    let spec = AudioSpec {
        tracks: vec![song; count as usize],
        chunk: section.parse_or("chunk", ByteCount::new(usual.chunk))?.as_u64(),
        start_threshold: section.parse_or("start_threshold", usual.start_threshold)?,
        resume_threshold: section.parse_or("resume_threshold", usual.resume_threshold)?,
        low_water: section.parse_or("low_water", usual.low_water)?,
    };
    spec.check().map_err(|error| refused(&section, &error))?;
    Ok(SingleActivity::Client(ClientSpec::Audio(spec), None))
}

pub(crate) fn video(class: &Section<'_>, node: &Node) -> Result<SingleActivity> {
    let section = &Section::new("video", class.key_place("video"), node, keys::VIDEO)?;
    let duration = section.need("duration", "\"300s\"")?.parse()?;
    let usual = VideoSpec::new(duration, abr(section)?);
    let segment = section.parse_or("segment", usual.segment)?;
    let spec = VideoSpec {
        segment,
        ladder: section.read("ladder", ladder)?.unwrap_or(usual.ladder),
        start_threshold: section.parse_or("start_threshold", segment)?,
        resume_threshold: section.parse_or("resume_threshold", segment)?,
        max_buffer: section.parse_or("max_buffer", usual.max_buffer)?,
        ..usual
    };
    spec.check().map_err(|error| refused(section, &error))?;
    Ok(SingleActivity::Client(ClientSpec::Video(spec), None))
}

fn ladder(node: &Node) -> Result<Vec<Rate>> {
    node.list()?.iter().map(Node::parse).collect()
}

/// The bitrate selection and its parameters; others are rejected.
fn abr(section: &Section<'_>) -> Result<Abr> {
    let known = [("bba", Abr::BBA0), ("throughput", Abr::THROUGHPUT)];
    let chosen = section.read("abr", |node| node.choice("way to choose a bitrate", &known))?;
    Ok(match chosen.unwrap_or(Abr::BBA0) {
        Abr::Throughput { window, safety } => {
            section.forbid(&["reservoir", "cushion"], "it belongs to abr = \"bba\"")?;
            let given = section.read("window", |node| node.whole(1..=1_000))?;
            let window = given.map_or(window, |window| window as usize);
            Abr::Throughput {
                window,
                safety: section.read("safety", safety_factor)?.unwrap_or(safety),
            }
        }
        Abr::BufferBased { reservoir, cushion } => {
            section.forbid(&["window", "safety"], "it belongs to abr = \"throughput\"")?;
            Abr::BufferBased {
                reservoir: section.parse_or("reservoir", reservoir)?,
                cushion: section.parse_or("cushion", cushion)?,
            }
        }
        other => other,
    })
}

/// `0.9` as 900 / 1000.
fn safety_factor(node: &Node) -> Result<Ratio> {
    let thousandths = (node.number()? * 1000.0).round();
    if !(1.0..=10_000.0).contains(&thousandths) {
        return Err(ScenarioError::new(&node.place, "this safety factor makes no sense")
            .help("use more than 0 and at most 10, such as 0.9"));
    }
    Ok(Ratio::new(thousandths as u32, 1000))
}

fn refused(section: &Section<'_>, error: &SpecError) -> ScenarioError {
    ScenarioError::worded(section.place(), error)
}
