//! A music player, modelled after the one in Spotify's description of its BBR experiment.

use uncork_units::{Rate, Time, TimeDelta};

use crate::error::require;
use crate::playback::Playback;
use crate::transfer::Transfers;
use crate::{Action, ClientReport, SpecError};

/// A song.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its length.
    pub duration: TimeDelta,
    /// Its constant bitrate.
    pub bitrate: Rate,
}

/// A queue of songs and the playback settings.
///
/// From the article ("Smoother Streaming with BBR", Spotify, 2018): a song is a file on an HTTP
/// server, fetched in chunks by range requests of typically 512 kB. The metrics are playback latency,
/// from click to sound, and stutter, the number of pauses by buffer underruns.
///
/// Assumptions, because the article does not say: bytes can be played as they arrive; the
/// thresholds and the buffer level at which the next chunk is requested, see
/// [`AudioSpec::default`]; songs follow each other without a gap or a click, so the next one is
/// prefetched like the next chunk; no song is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudioSpec {
    /// The songs, in order.
    pub tracks: Vec<Track>,
    /// Size of a range request in bytes; a song's last one is shorter.
    pub chunk: u64,
    /// Music to buffer before the first sound.
    pub start_threshold: TimeDelta,
    /// Music to buffer before resuming after an underrun.
    pub resume_threshold: TimeDelta,
    /// The next chunk is requested when the buffer is at most this, and whenever playback is
    /// stopped.
    pub low_water: TimeDelta,
}

/// How many songs were played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioReport {
    /// Songs heard at least in part.
    pub started: usize,
    /// Songs heard to the end.
    pub finished: usize,
}

/// A music player.
#[derive(Clone, Debug)]
pub struct AudioPlayer {
    spec: AudioSpec,
    /// The song being fetched; all earlier ones have arrived.
    fetching: usize,
    /// Bytes of that song that have arrived.
    received: u64,
    /// Length of the songs before it.
    before: TimeDelta,
    playback: Playback,
    transfers: Transfers,
}

impl Track {
    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bitrate.bytes_in(self.duration).max(1)
    }

    /// Playing time of the song's first `bytes`, rounded down to the nanosecond.
    fn length_of(&self, bytes: u64) -> TimeDelta {
        if bytes >= self.bytes() {
            return self.duration;
        }
        self.bitrate.time_for(bytes).min(self.duration)
    }
}

impl Default for AudioSpec {
    /// One song of 210 s at 160 kbit/s, in chunks of 512 kB (25.6 s). Assumptions: playback starts
    /// with 1 s buffered and resumes with 2 s; the next chunk is requested 30 s before the buffer
    /// would run dry, so that one chunk is always ahead.
    fn default() -> Self {
        let duration = TimeDelta::from_secs(210);
        Self {
            tracks: vec![Track { duration, bitrate: Rate::from_bits_per_sec(160_000) }],
            chunk: 512_000,
            start_threshold: TimeDelta::from_secs(1),
            resume_threshold: TimeDelta::from_secs(2),
            low_water: TimeDelta::from_secs(30),
        }
    }
}

impl AudioSpec {
    /// Maximum total length of the songs.
    pub const MAX_LENGTH: TimeDelta = TimeDelta::from_secs(7 * 86_400);

    /// Checks that there is something to play and that it can be fetched.
    pub fn check(&self) -> Result<(), SpecError> {
        require(!self.tracks.is_empty(), "the number of tracks", 0, "use at least 1")?;
        for track in &self.tracks {
            let remedy = "use more, such as 210s";
            require(!track.duration.is_zero(), "a track's duration", track.duration, remedy)?;
            let remedy = "use more, such as 160kbit";
            require(!track.bitrate.is_zero(), "a track's bitrate", track.bitrate, remedy)?;
        }
        let (length, longest) = (self.length(), Self::MAX_LENGTH);
        let remedy = format_args!("use at most {longest}");
        require(length <= longest, "the length of all tracks", length, remedy)?;
        require(self.chunk > 0, "the chunk in bytes", self.chunk, "use at least 1")
    }

    /// The length of all tracks.
    fn length(&self) -> TimeDelta {
        self.tracks.iter().fold(TimeDelta::ZERO, |sum, track| sum + track.duration)
    }
}

impl AudioPlayer {
    /// A player. Its user clicks at `click`; fails if [`AudioSpec::check`] does.
    pub fn new(spec: AudioSpec, click: Time) -> Result<Self, SpecError> {
        spec.check()?;
        let (start, resume) = (spec.start_threshold, spec.resume_threshold);
        let playback = Playback::new(click, spec.length(), start, resume);
        let transfers = Transfers::default();
        Ok(Self { spec, fetching: 0, received: 0, before: TimeDelta::ZERO, playback, transfers })
    }

    pub(crate) fn poll(&mut self, now: Time) -> Action {
        self.playback.advance(now);
        let track = self.spec.tracks.get(self.fetching);
        let outstanding = self.transfers.outstanding();
        if let Some(action) = self.playback.next(outstanding, track.is_some(), self.spec.low_water)
        {
            return action;
        }
        let left = track.map_or(0, |track| track.bytes() - self.received);
        let bytes = left.min(self.spec.chunk);
        self.transfers.begin(now, bytes);
        Action::Request { bytes }
    }

    pub(crate) fn on_body(&mut self, now: Time, bytes: u64) {
        self.received += self.transfers.receive(now, bytes);
        let Some(track) = self.spec.tracks.get(self.fetching) else { return };
        let available = self.before + track.length_of(self.received);
        if self.received == track.bytes() {
            self.fetching += 1;
            self.received = 0;
            self.before = available;
        }
        self.playback.supply(now, available);
    }

    pub(crate) fn report(&self, now: Time) -> ClientReport {
        let playback = self.playback.report(now);
        let mut audio = AudioReport { started: 0, finished: 0 };
        let mut begins = TimeDelta::ZERO;
        for track in &self.spec.tracks {
            let ends = begins + track.duration;
            audio.started += usize::from(playback.played > begins);
            audio.finished += usize::from(playback.played >= ends);
            begins = ends;
        }
        let transfers = self.transfers.all().to_vec();
        ClientReport { transfers, playback: Some(playback), audio: Some(audio), video: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    fn at(secs: u64) -> Time {
        Time::ZERO + TimeDelta::from_secs(secs)
    }

    fn request(bytes: u64) -> Action {
        Action::Request { bytes }
    }

    /// 4.2 MB are eight chunks of 512 kB and one of 104 kB.
    #[test]
    fn audio_fetches_a_song_in_chunks_with_a_shorter_last_one() {
        let mut player = AudioPlayer::new(AudioSpec::default(), at(0)).expect("valid");
        let mut now = at(0);
        let mut chunks = Vec::new();
        loop {
            match player.poll(now) {
                Action::Request { bytes } => {
                    chunks.push(bytes);
                    player.on_body(now, bytes);
                }
                Action::WaitUntil(then) => now = then,
                Action::WaitForData => unreachable!("nothing is outstanding"),
                Action::Done => break,
            }
        }
        assert_eq!(chunks, [[512_000; 8].as_slice(), &[104_000]].concat());
        assert_eq!(now, at(210));
    }

    /// A chunk lasts 25.6 s. Two of them exceed 30 s, so the third is due 21.2 s later.
    #[test]
    fn audio_requests_the_next_chunk_at_low_water() {
        let mut player = AudioPlayer::new(AudioSpec::default(), at(0)).expect("valid");
        for _ in 0..2 {
            assert_eq!(player.poll(at(0)), request(512_000));
            player.on_body(at(0), 512_000);
        }
        let due = at(0) + TimeDelta::from_millis(21_200);
        assert_eq!(player.poll(at(0)), Action::WaitUntil(due));
        assert_eq!(player.poll(at(7)), Action::WaitUntil(due));
        assert_eq!(player.poll(due), request(512_000));
        // While a request is outstanding, the buffer runs dry after the remaining 30 s.
        assert_eq!(player.poll(due), Action::WaitUntil(due + TimeDelta::from_secs(30)));
    }

    #[test]
    fn audio_plays_songs_in_sequence_and_counts_them() {
        let bitrate = Rate::from_bits_per_sec(80_000);
        let track = |secs| Track { duration: TimeDelta::from_secs(secs), bitrate };
        let spec = AudioSpec { tracks: vec![track(10), track(20)], ..AudioSpec::default() };
        let mut player = AudioPlayer::new(spec, at(0)).expect("valid");
        assert_eq!(player.poll(at(0)), request(100_000));
        player.on_body(at(0), 100_000);
        assert_eq!(player.poll(at(0)), request(200_000));
        player.on_body(at(5), 10_000);
        let songs = |player: &AudioPlayer, secs| {
            let audio = player.report(at(secs)).audio.expect("a player of songs");
            (audio.started, audio.finished)
        };
        assert_eq!(songs(&player, 10), (1, 1));
        assert_eq!(songs(&player, 11), (2, 1));
        player.on_body(at(11), 190_000);
        assert_eq!(songs(&player, 40), (2, 2));
        assert!(player.report(at(40)).playback.expect("a player").stalls.is_empty());
    }

    #[test]
    fn audio_rejects_unplayable_specs() {
        let refused = |case: &str, change: fn(&mut AudioSpec)| {
            let mut spec = AudioSpec::default();
            change(&mut spec);
            assert_message!(case, spec.check().expect_err(case));
        };
        refused("tracks", |spec| spec.tracks.clear());
        refused("bitrate", |spec| spec.tracks[0].bitrate = Rate::ZERO);
        refused("no duration", |spec| spec.tracks[0].duration = TimeDelta::ZERO);
        refused("any duration", |spec| spec.tracks[0].duration = TimeDelta::MAX);
        refused("chunk", |spec| spec.chunk = 0);
    }
}
