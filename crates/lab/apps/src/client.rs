//! The interface of all clients.

use uncork_units::{Rng, Time};

use crate::{
    AudioPlayer, AudioReport, AudioSpec, Fetch, FetchSpec, PlaybackReport, SpecError, Transfer,
    VideoPlayer, VideoReport, VideoSpec,
};

/// The next action of a client on its persistent connection. At most one request is outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Request a response with a body of `bytes` bytes, at least one. Returned only once: the
    /// caller must send the request.
    Request {
        /// Size of the response's body.
        bytes: u64,
    },
    /// Wait until this later instant, or until data arrives.
    WaitUntil(Time),
    /// Wait until data arrives.
    WaitForData,
    /// Finished.
    Done,
}

/// The specification of a client.
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

/// A running client.
///
/// Poll it when the connection is ready, after each arrival of data, and at the instant of each
/// [`Action::WaitUntil`]. The answer does not change in between, so additional polls are harmless,
/// except before the connection can carry a request.
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

/// Results of a client and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientReport {
    /// Every request in order, including an outstanding one.
    pub transfers: Vec<Transfer>,
    /// Playback of a player.
    pub playback: Option<PlaybackReport>,
    /// Songs, of an audio player.
    pub audio: Option<AudioReport>,
    /// Picture quality, of a video player.
    pub video: Option<VideoReport>,
}

impl ClientSpec {
    /// Checks that the specification can run.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Fetch(spec) => spec.check(),
            Self::Audio(spec) => spec.check(),
            Self::Video(spec) => spec.check(),
        }
    }
}

impl Client {
    /// A client started by its user (a click) at `start`, before the connection is established.
    /// Fails if [`ClientSpec::check`] does. Only a downloader uses `rng`.
    pub fn new(spec: ClientSpec, start: Time, rng: Rng) -> Result<Self, SpecError> {
        Ok(match spec {
            ClientSpec::Fetch(spec) => Self::Fetch(Fetch::new(spec, start, rng)?),
            ClientSpec::Audio(spec) => Self::Audio(AudioPlayer::new(spec, start)?),
            ClientSpec::Video(spec) => Self::Video(VideoPlayer::new(spec, start)?),
        })
    }

    /// Its next action.
    pub fn poll(&mut self, now: Time) -> Action {
        match self {
            Self::Fetch(client) => client.poll(now),
            Self::Audio(client) => client.poll(now),
            Self::Video(client) => client.poll(now),
        }
    }

    /// `bytes` more bytes of the outstanding response's body arrived, in order. Bytes beyond its
    /// end are ignored.
    pub fn on_body(&mut self, now: Time, bytes: u64) {
        match self {
            Self::Fetch(client) => client.on_body(now, bytes),
            Self::Audio(client) => client.on_body(now, bytes),
            Self::Video(client) => client.on_body(now, bytes),
        }
    }

    /// The results until `now`, which must not be before the last event.
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
    fn client_rejects_invalid_specs() {
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
