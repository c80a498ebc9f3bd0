//! What all clients have in common.

use uncork_units::{Rng, Time};

use crate::{
    AudioPlayer, AudioReport, AudioSpec, Fetch, FetchSpec, PlaybackReport, SpecError, Transfer,
    VideoPlayer, VideoReport, VideoSpec,
};

/// What a client wants to do next on its connection, which persists. At most one request is
/// outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the server for a response whose body has `bytes` bytes, never none. Told once: whoever
    /// polls sends it, and the client takes it for sent.
    Request {
        /// Size of the response's body.
        bytes: u64,
    },
    /// Nothing until this instant, which is later than now, or until data arrive.
    WaitUntil(Time),
    /// Nothing until data arrive.
    WaitForData,
    /// Nothing any more.
    Done,
}

/// Which client, as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientSpec {
    /// A downloader.
    Fetch(FetchSpec),
    /// A player of songs.
    Audio(AudioSpec),
    /// A player of a film.
    Video(VideoSpec),
}

/// A client at work.
///
/// Its driver polls it when the connection is ready, after it has been told of data, and at the
/// instant of each [`Action::WaitUntil`]; until one of these, the answer stays the same. It does no
/// harm to poll more often, except before the connection can carry a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Client {
    /// A downloader.
    Fetch(Fetch),
    /// A player of songs.
    Audio(AudioPlayer),
    /// A player of a film.
    Video(VideoPlayer),
}

/// What a client, and the person before it, experienced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientReport {
    /// Every request in order, the outstanding one too.
    pub transfers: Vec<Transfer>,
    /// How the playback went, of a player.
    pub playback: Option<PlaybackReport>,
    /// How far the songs came, of a player of songs.
    pub audio: Option<AudioReport>,
    /// How good the picture was, of a player of a film.
    pub video: Option<VideoReport>,
}

impl ClientSpec {
    /// Checks that the description can run.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Fetch(spec) => spec.check(),
            Self::Audio(spec) => spec.check(),
            Self::Video(spec) => spec.check(),
        }
    }
}

impl Client {
    /// A client that somebody starts (clicks on) at `start`, before a connection is set up; it fails
    /// if [`ClientSpec::check`] does. Only a downloader draws from `rng`.
    pub fn new(spec: ClientSpec, start: Time, rng: Rng) -> Result<Self, SpecError> {
        Ok(match spec {
            ClientSpec::Fetch(spec) => Self::Fetch(Fetch::new(spec, start, rng)?),
            ClientSpec::Audio(spec) => Self::Audio(AudioPlayer::new(spec, start)?),
            ClientSpec::Video(spec) => Self::Video(VideoPlayer::new(spec, start)?),
        })
    }

    /// What it wants to do next.
    pub fn poll(&mut self, now: Time) -> Action {
        match self {
            Self::Fetch(client) => client.poll(now),
            Self::Audio(client) => client.poll(now),
            Self::Video(client) => client.poll(now),
        }
    }

    /// So many more bytes of the outstanding response's body arrived, in order. More than are
    /// outstanding are ignored.
    pub fn on_body(&mut self, now: Time, bytes: u64) {
        match self {
            Self::Fetch(client) => client.on_body(now, bytes),
            Self::Audio(client) => client.on_body(now, bytes),
            Self::Video(client) => client.on_body(now, bytes),
        }
    }

    /// What was experienced until `now`, which is not before the last event.
    pub fn report(&self, now: Time) -> ClientReport {
        match self {
            Self::Fetch(client) => client.report(),
            Self::Audio(client) => client.report(now),
            Self::Video(client) => client.report(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Abr;
    use uncork_units::TimeDelta;

    #[test]
    fn a_description_that_cannot_run_is_no_client() {
        let audio = AudioSpec { chunk: 0, ..AudioSpec::default() };
        let specs = [
            (ClientSpec::Fetch(FetchSpec { requests: Some(0), ..FetchSpec::once(1) }), "requests"),
            (ClientSpec::Audio(audio), "the chunk"),
            (ClientSpec::Video(VideoSpec::new(TimeDelta::ZERO, Abr::BBA0)), "the video's duration"),
        ];
        for (spec, place) in specs {
            let error = spec.check().expect_err("refused");
            assert!(error.to_string().contains(place), "{error}");
            assert_eq!(Client::new(spec, Time::ZERO, Rng::new(1, 0)).err(), Some(error));
        }
    }
}
