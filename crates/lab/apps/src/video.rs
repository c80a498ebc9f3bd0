//! A video player that adapts its bitrate.

use uncork_units::{Rate, Time, TimeDelta};

use crate::error::require;
use crate::playback::Playback;
use crate::transfer::{Transfer, Transfers};
use crate::{Abr, Action, ClientReport, SpecError};

/// A video and the playback settings. A segment can be played once it has arrived completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoSpec {
    /// Its length.
    pub duration: TimeDelta,
    /// Length of a segment; the last one may be shorter.
    pub segment: TimeDelta,
    /// The bitrates of each segment, ascending.
    pub ladder: Vec<Rate>,
    /// The bitrate selection.
    pub abr: Abr,
    /// Video to buffer before the first picture.
    pub start_threshold: TimeDelta,
    /// Video to buffer before resuming after an underrun.
    pub resume_threshold: TimeDelta,
    /// Buffer size: a segment is requested when it will fit, and whenever playback is stopped.
    pub max_buffer: TimeDelta,
}

/// Quality of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoReport {
    /// Segments that have arrived.
    pub segments: usize,
    /// Their mean bitrate weighted by playing time; [`Rate::ZERO`] without segments.
    pub mean_bitrate: Rate,
    /// How often the bitrate changed between segments.
    pub switches: usize,
}

/// A video player.
#[derive(Clone, Debug)]
pub struct VideoPlayer {
    spec: VideoSpec,
    /// The rung of each requested segment.
    rungs: Vec<usize>,
    playback: Playback,
    transfers: Transfers,
}

impl VideoSpec {
    /// Netflix's fixed ladder ("Per-Title Encode Optimization", 2015), in kbit/s.
    pub const LADDER_KBIT: [u64; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];

    /// Maximum length of a video.
    pub const MAX_DURATION: TimeDelta = TimeDelta::from_secs(7 * 86_400);

    /// A video of this length in segments of 4 s at [`VideoSpec::LADDER_KBIT`]. The buffer holds
    /// 240 s, as in BBA-0's deployment, or 30 s for the throughput rule. Assumption: one segment is
    /// enough to start and to resume.
    pub fn new(duration: TimeDelta, abr: Abr) -> Self {
        let segment = TimeDelta::from_secs(4);
        Self {
            duration,
            segment,
            ladder: Self::LADDER_KBIT.map(|kbit| Rate::from_bits_per_sec(kbit * 1000)).to_vec(),
            abr,
            start_threshold: segment,
            resume_threshold: segment,
            max_buffer: match abr {
                Abr::Throughput { .. } => TimeDelta::from_secs(30),
                Abr::BufferBased { .. } => TimeDelta::from_secs(240),
            },
        }
    }

    /// Checks that there is something to play and that it can be fetched.
    pub fn check(&self) -> Result<(), SpecError> {
        let Self { duration, segment, ladder, max_buffer, .. } = self;
        let longest = Self::MAX_DURATION;
        let remedy = format_args!("use more, and at most {longest}");
        let sensible = !duration.is_zero() && *duration <= longest;
        require(sensible, "the video's duration", duration, remedy)?;
        require(!segment.is_zero(), "the segment", segment, "use more, such as 4s")?;
        let remedy = format_args!("use at least one segment, {segment}");
        require(max_buffer >= segment, "the buffer", max_buffer, remedy)?;
        let lowest = ladder.first().copied().unwrap_or(Rate::ZERO);
        let remedy = "use one or more, such as 235kbit";
        require(!lowest.is_zero(), "the lowest bitrate of the ladder", lowest, remedy)?;
        let disordered = ladder.windows(2).find(|pair| pair[0] >= pair[1]);
        if let Some([before, after]) = disordered {
            let remedy = format_args!("give it before {before}; the ladder ascends");
            require(false, "a bitrate of the ladder", after, remedy)?;
        }
        self.abr.check(*max_buffer)
    }

    /// Where a segment begins.
    fn begin(&self, index: usize) -> TimeDelta {
        self.segment.times(index as u64).min(self.duration)
    }

    /// Size of a segment in this rung.
    fn bytes(&self, index: usize, rung: usize) -> u64 {
        let length = self.begin(index + 1) - self.begin(index);
        self.ladder.get(rung).map_or(1, |rate| rate.bytes_in(length).max(1))
    }
}

impl VideoPlayer {
    /// A player. Its user clicks at `click`; fails if [`VideoSpec::check`] does.
    pub fn new(spec: VideoSpec, click: Time) -> Result<Self, SpecError> {
        spec.check()?;
        let (start, resume) = (spec.start_threshold, spec.resume_threshold);
        let playback = Playback::new(click, spec.duration, start, resume);
        Ok(Self { spec, rungs: Vec::new(), playback, transfers: Transfers::default() })
    }

    pub(crate) fn poll(&mut self, now: Time) -> Action {
        self.playback.advance(now);
        let next = self.rungs.len();
        let unrequested = self.spec.begin(next) < self.spec.duration;
        let room = self.spec.max_buffer - self.spec.segment;
        let outstanding = self.transfers.outstanding();
        if let Some(action) = self.playback.next(outstanding, unrequested, room) {
            return action;
        }
        let rung = self.choose();
        let bytes = self.spec.bytes(next, rung);
        self.rungs.push(rung);
        self.transfers.begin(now, bytes);
        Action::Request { bytes }
    }

    fn choose(&self) -> usize {
        let previous = self.rungs.last().copied().unwrap_or(0);
        let throughputs = self.transfers.all().iter().rev().filter_map(Transfer::throughput);
        self.spec.abr.rung(&self.spec.ladder, previous, self.playback.level(), throughputs)
    }

    pub(crate) fn on_body(&mut self, now: Time, bytes: u64) {
        self.transfers.receive(now, bytes);
        self.playback.supply(now, self.spec.begin(self.arrived()));
    }

    /// Segments that have arrived.
    fn arrived(&self) -> usize {
        self.rungs.len() - usize::from(self.transfers.outstanding())
    }

    pub(crate) fn report(&self, now: Time) -> ClientReport {
        let segments = self.arrived();
        let transfers = self.transfers.all().to_vec();
        let bytes = transfers[..segments].iter().map(|transfer| transfer.bytes).sum();
        let video = VideoReport {
            segments,
            mean_bitrate: Rate::of(bytes, self.spec.begin(segments)),
            switches: self.rungs[..segments].windows(2).filter(|pair| pair[0] != pair[1]).count(),
        };
        let playback = Some(self.playback.report(now));
        ClientReport { transfers, playback, audio: None, video: Some(video) }
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::Ratio;

    use super::*;
    use uncork_testkit::assert_message;

    fn at(secs: u64) -> Time {
        Time::ZERO + TimeDelta::from_secs(secs)
    }

    fn kbit(kbit: u64) -> Rate {
        Rate::from_bits_per_sec(kbit * 1000)
    }

    /// A video of 10 s in segments of 4 s, at 1 or 4 Mbit/s.
    fn spec() -> VideoSpec {
        let ladder = vec![kbit(1000), kbit(4000)];
        VideoSpec { ladder, ..VideoSpec::new(TimeDelta::from_secs(10), Abr::THROUGHPUT) }
    }

    /// Segments of 4, 4 and 2 s. The first takes 4 s at 1 Mbit/s, the others arrive at once.
    #[test]
    fn video_counts_whole_segments_only() {
        let mut player = VideoPlayer::new(spec(), at(0)).expect("valid");
        assert_eq!(player.poll(at(0)), Action::Request { bytes: 500_000 });
        player.on_body(at(3), 499_999);
        assert_eq!(player.report(at(3)).playback.expect("a player").startup, None);
        player.on_body(at(4), 1);
        let startup = player.report(at(4)).playback.expect("a player").startup;
        assert_eq!(startup, Some(TimeDelta::from_secs(4)));
        // 0.9 Mbit/s is below the lowest rung; then the harmonic mean of 1 Mbit/s and a very high
        // rate, 1.8.
        assert_eq!(player.poll(at(4)), Action::Request { bytes: 500_000 });
        player.on_body(at(4), 500_000);
        assert_eq!(player.poll(at(4)), Action::Request { bytes: 250_000 });
        player.on_body(at(4), 250_000);
        assert_eq!(player.poll(at(4)), Action::WaitUntil(at(14)));
        assert_eq!(player.poll(at(14)), Action::Done);
        let video = player.report(at(14)).video.expect("a video player");
        assert_eq!(video, VideoReport { segments: 3, mean_bitrate: kbit(1000), switches: 0 });
    }

    #[test]
    fn video_counts_a_switch_when_its_segment_has_arrived() {
        let mut player = VideoPlayer::new(spec(), at(0)).expect("valid");
        player.poll(at(0));
        player.on_body(at(0), 500_000);
        assert_eq!(player.poll(at(0)), Action::Request { bytes: 2_000_000 });
        let video = |player: &VideoPlayer| player.report(at(0)).video.expect("a video player");
        assert_eq!(video(&player).switches, 0);
        player.on_body(at(0), 2_000_000);
        let expected = VideoReport { segments: 2, mean_bitrate: kbit(2500), switches: 1 };
        assert_eq!(video(&player), expected);
    }

    #[test]
    fn video_requests_a_segment_when_the_buffer_has_room() {
        let max_buffer = TimeDelta::from_secs(7);
        let mut player =
            VideoPlayer::new(VideoSpec { max_buffer, ..spec() }, at(0)).expect("valid");
        player.poll(at(0));
        player.on_body(at(0), 500_000);
        assert_eq!(player.poll(at(0)), Action::WaitUntil(at(1)));
        assert_eq!(player.poll(at(1)), Action::Request { bytes: 2_000_000 });
        assert_eq!(player.poll(at(1)), Action::WaitUntil(at(4)));
    }

    #[test]
    fn video_rejects_unplayable_specs() {
        let refused = |case: &str, change: fn(&mut VideoSpec)| {
            let mut spec = spec();
            change(&mut spec);
            assert_message!(case, spec.check().expect_err(case));
        };
        refused("duration", |spec| spec.duration = TimeDelta::ZERO);
        refused("segment", |spec| spec.segment = TimeDelta::ZERO);
        refused("buffer", |spec| spec.max_buffer = TimeDelta::from_secs(3));
        refused("no ladder", |spec| spec.ladder.clear());
        refused("descending ladder", |spec| spec.ladder.reverse());
        refused("reservoir and cushion", |spec| spec.abr = Abr::BBA0);
        refused("window", |spec| spec.abr = Abr::Throughput { window: 0, safety: Ratio::ONE });
        refused("safety", |spec| {
            spec.abr = Abr::Throughput { window: 4, safety: Ratio::new(0, 1) }
        });
    }
}
