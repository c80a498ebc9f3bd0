//! Listeners: `uncork-apps`'s music players, each with its own connection.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use http::Method;
use tokio::task::JoinSet;
use uncork_apps::{Action, AudioSpec, Client, ClientReport, ClientSpec, Track};
use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::ClientError;
use crate::clock::PlayClock;
use crate::cmcd::{Cmcd, CmcdMode, content_id, session_id};
use crate::connect::{ConnectSpec, Connector, Setup};
use crate::connection::{Response, Version, length};
use crate::fetch::{check, controller, headers, next};
use crate::get::{Tally, runtime};
use crate::persistent::PersistentConnection;
use crate::range::ByteRange;
use crate::stop::StopFlag;
use crate::target::Target;

/// A run of listeners.
#[derive(Clone, Debug)]
pub struct ListenSpec {
    /// The songs, in order.
    pub targets: Vec<Target>,
    /// Connection settings.
    pub connect: ConnectSpec,
    /// The bitrate of all songs.
    pub bitrate: Rate,
    /// Duration of each song; `None` derives it from the file sizes, which are requested from the server
    /// first.
    pub duration: Option<TimeDelta>,
    /// Player settings. Its tracks are replaced by the songs.
    pub player: AudioSpec,
    /// Number of listeners.
    pub listeners: usize,
    /// Each listener's click is drawn from this span.
    pub spread: TimeDelta,
    /// Random seed.
    pub seed: u64,
    /// Time limit since the clock started; `None` plays to the end.
    pub limit: Option<TimeDelta>,
    /// How players send CMCD.
    pub cmcd: CmcdMode,
    /// The sufficient rate that players report (`rtp`).
    pub enough: Option<Rate>,
}

/// The report of a listener. Times count from the same clock start as the clicks.
#[derive(Debug)]
pub struct ListenerReport {
    /// The listener's index, from 0.
    pub number: u32,
    /// The time of the click.
    pub click: Time,
    /// The setup of its (latest) connection.
    pub setup: Option<Setup>,
    /// The HTTP version.
    pub version: Option<Version>,
    /// The server's congestion controller, if reported.
    pub cc: Option<String>,
    /// Requests and playback.
    pub report: ClientReport,
    /// Why it stopped early.
    pub problem: Option<ClientError>,
}

impl ListenSpec {
    /// One listener for `targets`, at 160 kbit/s.
    pub fn of(targets: Vec<Target>) -> Self {
        Self {
            targets,
            connect: ConnectSpec::default(),
            bitrate: Rate::from_bits_per_sec(160_000),
            duration: None,
            player: AudioSpec::default(),
            listeners: 1,
            spread: TimeDelta::ZERO,
            seed: 1,
            limit: None,
            cmcd: CmcdMode::Headers,
            enough: None,
        }
    }

    /// The player with one track per duration.
    fn player(&self, durations: impl Iterator<Item = TimeDelta>) -> AudioSpec {
        let tracks = durations.map(|duration| Track { duration, bitrate: self.bitrate });
        AudioSpec { tracks: tracks.collect(), ..self.player.clone() }
    }

    /// Checks the player settings, as far as possible before requests to the server.
    ///
    /// # Errors
    ///
    /// If the player rejects its settings.
    pub fn check(&self) -> Result<(), uncork_apps::SpecError> {
        let known = self.duration.unwrap_or(TimeDelta::from_secs(1));
        self.player(self.targets.iter().map(|_| known)).check()
    }

    /// The click time of each listener, in order.
    fn clicks(&self) -> Vec<Time> {
        let mut rng = Rng::new(self.seed, 0);
        let bound = self.spread.as_nanos().saturating_add(1);
        let mut clicks: Vec<Time> =
            (0..self.listeners).map(|_| Time::from_nanos(rng.below(bound))).collect();
        clicks.sort();
        clicks
    }
}

/// Runs all listeners to the end, the limit, or until `stop` is set. Returns their reports in the order of
/// clicks, without listeners who did not click.
///
/// # Errors
///
/// If the run cannot start.
pub fn listen(
    spec: &ListenSpec,
    stop: &Arc<AtomicBool>,
    tally: &Arc<Tally>,
) -> Result<Vec<ListenerReport>, ClientError> {
    let connector = Connector::new(&spec.connect, &spec.targets)?;
    runtime()?.block_on(async {
        let player = spec.player(durations(spec, &connector).await?.into_iter());
        player.check().map_err(|error| ClientError::Songs(error.to_string()))?;
        let audience = Arc::new(Audience {
            spec: spec.clone(),
            player,
            connector,
            clock: PlayClock::start(),
            tally: Arc::clone(tally),
        });
        let stop = StopFlag::when(stop);
        let mut listeners = JoinSet::new();
        for (number, click) in (0..).zip(spec.clicks()) {
            listeners.spawn(Arc::clone(&audience).one((number, click), stop.clone()));
        }
        let mut all: Vec<ListenerReport> =
            listeners.join_all().await.into_iter().flatten().collect();
        all.sort_by_key(|heard| heard.number);
        Ok(all)
    })
}

/// The duration of each song: as specified, or the file size divided by the bitrate.
async fn durations(
    spec: &ListenSpec,
    connector: &Connector,
) -> Result<Vec<TimeDelta>, ClientError> {
    if let Some(duration) = spec.duration {
        return Ok(vec![duration; spec.targets.len()]);
    }
    let (mut persistent, mut durations) =
        (PersistentConnection::new(connector.clone()), Vec::new());
    for target in &spec.targets {
        let of_song = |error| ClientError::Song { url: target.to_string(), error: Box::new(error) };
        let size = song_size(&mut persistent, target).await.map_err(of_song)?;
        let exact = spec.bitrate.time_for(size);
        // Rounding down would cut off the last byte.
        let is_short = spec.bitrate.bytes_in(exact) < size;
        durations.push(if is_short { exact + TimeDelta::from_nanos(1) } else { exact });
    }
    Ok(durations)
}

/// The size of a song's file in bytes, by a HEAD request.
async fn song_size(
    persistent: &mut PersistentConnection,
    target: &Target,
) -> Result<u64, ClientError> {
    let (response, _) = persistent.request(Method::HEAD, target, &headers(None)).await?;
    check(None, response.status, &response.headers)?;
    length(&response.headers).ok_or_else(|| {
        ClientError::Songs("the server sends no Content-Length; give --duration".to_owned())
    })
}

/// The state shared by all listeners.
#[derive(Debug)]
struct Audience {
    spec: ListenSpec,
    /// The player settings with the songs as tracks.
    player: AudioSpec,
    connector: Connector,
    clock: PlayClock,
    tally: Arc<Tally>,
}

/// A listener.
struct AudioListener<'a> {
    audience: &'a Audience,
    heard: ListenerReport,
    player: Client,
    persistent: PersistentConnection,
    session: String,
    /// Index of the song being fetched.
    song: usize,
    /// Bytes of it fetched so far.
    fetched: u64,
    /// Stalls already reported to the server.
    reported_stalls: usize,
}

impl Audience {
    /// Runs a listener from its click; `None` if stopped before.
    async fn one(
        self: Arc<Self>,
        (number, click): (u32, Time),
        mut stop: StopFlag,
    ) -> Option<ListenerReport> {
        tokio::select! {
            () = self.clock.wait_until(click) => {}
            () = stop.over() => return None,
        }
        let mut listener = self.listener(number)?;
        let limit = self.spec.limit.map_or(Time::NEVER, |limit| Time::ZERO + limit);
        let result = tokio::select! {
            result = Box::pin(listener.play()) => result,
            () = self.clock.wait_until(limit) => Ok(()),
            () = stop.over() => Err(ClientError::Interrupted),
        };
        self.tally.end_one();
        let mut heard = listener.heard;
        heard.report = listener.player.report(self.clock.now());
        heard.problem = result.err();
        Some(heard)
    }

    fn listener(&self, number: u32) -> Option<AudioListener<'_>> {
        let mut rng = Rng::new(self.spec.seed, u64::from(number) + 1);
        let session = session_id(&mut rng);
        let click = self.clock.now();
        // Checked before.
        let player = Client::new(ClientSpec::Audio(self.player.clone()), click, rng).ok()?;
        let report = player.report(click);
        let (setup, version, cc, problem) = (None, None, None, None);
        let heard = ListenerReport { number, click, setup, version, cc, report, problem };
        let persistent = PersistentConnection::new(self.connector.clone());
        let (song, fetched, reported_stalls) = (0, 0, 0);
        Some(AudioListener {
            audience: self,
            heard,
            player,
            persistent,
            session,
            song,
            fetched,
            reported_stalls,
        })
    }
}

impl AudioListener<'_> {
    /// Performs the player's actions until it is done.
    async fn play(&mut self) -> Result<(), ClientError> {
        let clock = self.audience.clock;
        if let Some(first) = self.audience.spec.targets.first() {
            self.heard.setup = self.persistent.open(first).await?;
        }
        loop {
            match self.player.poll(clock.now()) {
                Action::Request { bytes } => self.fetch(bytes).await?,
                Action::WaitUntil(time) => clock.wait_until(time).await,
                // No request is in progress, so no data will come.
                Action::WaitForData | Action::Done => return Ok(()),
            }
        }
    }

    /// Fetches the next `bytes` of the current song.
    async fn fetch(&mut self, bytes: u64) -> Result<(), ClientError> {
        let spec = &self.audience.spec;
        let Some(target) = spec.targets.get(self.song) else { return Ok(()) };
        let range = ByteRange::of(self.fetched, bytes);
        let mut asked = headers(Some(range));
        let cmcd = self.cmcd(target, bytes);
        let mut asking = target.clone();
        match spec.cmcd {
            CmcdMode::Headers => cmcd.add_to(&mut asked),
            CmcdMode::Query => asking = cmcd.in_query(target)?,
            CmcdMode::Off => {}
        }
        let (response, made) = self.persistent.request(Method::GET, &asking, &asked).await?;
        self.heard.setup = made.or(self.heard.setup);
        self.heard.version = self.persistent.version();
        let Response { status, headers, size, mut body } = response;
        self.heard.cc = controller(&headers).or(self.heard.cc.take());
        check(Some(range), status, &headers)?;
        let mut received = 0;
        while let Some(piece) = next(&self.persistent, &mut body, size, received).await? {
            let new = piece.data.len() as u64;
            received += new;
            self.player.on_body(self.audience.clock.at(piece.at), new);
            self.audience.tally.add(new);
        }
        if received != bytes {
            return Err(ClientError::Length { received, size: bytes });
        }
        self.fetched += bytes;
        if self.audience.player.tracks.get(self.song).is_some_and(|t| t.bytes() <= self.fetched) {
            self.song += 1;
            self.fetched = 0;
        }
        Ok(())
    }

    /// The CMCD for a request for the next `bytes` of `target`.
    fn cmcd(&mut self, target: &Target, bytes: u64) -> Cmcd {
        let (spec, now) = (&self.audience.spec, self.audience.clock.now());
        let report = self.player.report(now);
        let arrived: u64 = report.transfers.iter().map(|transfer| transfer.received).sum();
        let playback = report.playback.as_ref();
        let played = playback.map_or(TimeDelta::ZERO, |playback| playback.played);
        let has_started = playback.is_some_and(|playback| playback.startup.is_some());
        let stalls = playback.map_or(0, |playback| playback.stalls.len());
        let buffer = spec.bitrate.time_for(arrived).as_nanos().saturating_sub(played.as_nanos());
        let buffer = TimeDelta::from_nanos(buffer);
        let last = playback.and_then(|playback| playback.stalls.last());
        let is_silent = last.is_some_and(|stall| stall.start + stall.lasted >= now);
        let cmcd = Cmcd {
            bitrate: spec.bitrate,
            duration: spec.bitrate.time_for(bytes),
            buffer,
            has_starved: stalls > self.reported_stalls,
            is_urgent: !has_started || is_silent,
            throughput: report.transfers.iter().rev().find_map(uncork_apps::Transfer::throughput),
            enough: spec.enough,
            content: content_id(target),
            session: self.session.clone(),
        };
        self.reported_stalls = stalls;
        cmcd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clicks_are_spread_by_the_seed() {
        let clicks = |seed| {
            let target = "http://a/b".parse().expect("an address");
            let spread = TimeDelta::from_secs(60);
            ListenSpec { listeners: 1000, spread, seed, ..ListenSpec::of(vec![target]) }.clicks()
        };
        assert_eq!(clicks(1), clicks(1));
        assert_ne!(clicks(1), clicks(2));
        let clicks = clicks(1);
        assert!(clicks.is_sorted());
        // The mean of 1000 uniform values below 60 s is 30 s with a standard deviation of 0.55 s.
        let mean = clicks.iter().map(|click| click.as_secs_f64()).sum::<f64>() / 1000.0;
        assert!((mean - 30.0).abs() < 4.0 * 0.55, "{mean}");
        assert!(clicks[999].as_secs_f64() > 59.0 && clicks[0].as_secs_f64() < 1.0);
    }
}
