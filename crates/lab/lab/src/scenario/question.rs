//! Evaluations requested by a scenario: thresholds, figures, and comparisons with published
//! results.

/// A number computed from the runs of a cell: a statistic of a metric over flows and seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// The metric.
    pub metric: Metric,
    /// The statistic of its distribution.
    pub statistic: Statistic,
}

/// A quantity per flow, request or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Seconds from the start of a transfer or of a request to its last byte.
    Completion,
    /// Seconds from the start of a transfer or of a request to its first byte.
    FirstByte,
    /// Payload delivered per second of a flow, in bits per second, after the warm-up.
    Goodput,
    /// Payload of a request over the time it took, in bits per second.
    Bandwidth,
    /// Share of the flow's own link used by the class, headers included, 0 to 1.
    Utilisation,
    /// Share of the selected flows in the payload delivered by all flows of the run, 0 to 1.
    Share,
    /// RTTs measured by senders, one for each acknowledgement, in seconds. Kernels do not report them.
    Rtt,
    /// Smoothed RTTs of senders, sampled at a constant interval, in seconds: of kernels only.
    RttTime,
    /// Queueing delay of packets, in seconds.
    QueueDelay,
    /// Bytes retransmitted over bytes sent, 0 to 1.
    Retransmitted,
    /// Packets dropped by queues and policers over packets sent, 0 to 1.
    Dropped,
    /// Retransmission timeouts of a flow.
    Timeouts,
    /// Jain's fairness index of the class's goodputs within a run.
    Jain,
    /// Seconds from click to sound or picture.
    PlaybackLatency,
    /// Playback interruptions for lack of data, per listener or viewer.
    Stutters,
    /// Seconds of such interruptions over seconds of intended playback, 0 to 1.
    Stalled,
    /// Mean encoded rate played, in bits per second.
    PlayedRate,
    /// Changes of the encoded rate, per viewer.
    Switches,
}

/// A statistic of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The value not exceeded by this share of all values, 0 to 1.
    Quantile(f64),
    /// The sum within each run.
    Sum,
}

/// A selection of cells and flows that are evaluated together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The class; `None` for all non-background classes.
    pub class: Option<String>,
    /// Only the flows of this controller, in a class that has several.
    pub cc: Option<String>,
    /// Only the cells where an axis has this value: (axis, value).
    pub at: Vec<(usize, usize)>,
    /// Only objects of at least this many bytes.
    pub at_least_bytes: Option<u64>,
    /// Only objects of less than this many bytes.
    pub less_than_bytes: Option<u64>,
}

/// A requirement for every selected cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// Description of the measurement, such as `completion.p50 / cubic's`.
    pub measures: String,
    /// Lower bound as written in the file.
    pub min_text: String,
    /// Upper bound as written in the file.
    pub max_text: String,
    /// The selection.
    pub of: Selection,
    /// The measured quantity.
    pub quantity: Quantity,
    /// Divided by the same quantity of these, if given.
    pub over: Option<Selection>,
    /// Less the same quantity of these, if given; not together with `over`.
    pub minus: Option<Selection>,
    /// The required bounds.
    pub expected: Expectation,
}

/// Bounds of a quantity in its own unit (seconds, bits per second, a share, a ratio).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expectation {
    /// Lower bound.
    pub min: Option<f64>,
    /// Upper bound.
    pub max: Option<f64>,
}

/// A published result to compare with the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Description.
    pub what: String,
    /// The published figure.
    pub value: String,
    /// Its source.
    pub source: String,
    /// The selection measured here.
    pub of: Selection,
    /// The quantity.
    pub quantity: Quantity,
    /// Divided by the same quantity of these, if given.
    pub over: Option<Selection>,
    /// Whether the ratio is printed as a change: 1.1 as +10 %.
    pub as_change: bool,
    /// The range in which both agree; `None` if the publication does not say enough for one.
    pub range: Option<PublishedRange>,
    /// A remark.
    pub note: String,
}

/// The range in which a measurement agrees with a publication.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRange {
    /// Its bounds.
    pub bounds: Expectation,
    /// Where it comes from.
    pub from: String,
}

/// A figure of the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Its content.
    pub kind: FigureKind,
    /// The selection of cells and flows.
    pub of: Selection,
}

/// Content of a figure. Axes are indices into the scenario's.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureKind {
    /// A quantity over two axes. With `over`, the gain over that selection.
    HeatMap {
        /// Columns.
        x: usize,
        /// Rows.
        y: usize,
        /// The quantity.
        quantity: Quantity,
        /// The selection it is divided by.
        over: Option<Selection>,
    },
    /// The distribution of a metric, one curve per value of `by` and per controller.
    Cdf {
        /// The metric.
        metric: Metric,
        /// One curve for each value of this axis.
        by: Option<usize>,
        /// Whether its scale is logarithmic.
        log: bool,
    },
    /// A quantity along an axis, one curve per value of `by` and per controller.
    Lines {
        /// The x axis.
        x: usize,
        /// The quantity.
        quantity: Quantity,
        /// One curve for each value of this axis.
        by: Option<usize>,
        /// Logarithmic x axis.
        log_x: bool,
        /// Logarithmic y axis.
        log_y: bool,
        /// Published points: (label, index of the value of x, value).
        published: Vec<(String, usize, f64)>,
    },
    /// Quantiles of a metric with their confidence intervals, one group per value of `by` and per
    /// class.
    Bars {
        /// The metric.
        metric: Metric,
        /// The statistics.
        statistics: Vec<Statistic>,
        /// One group for each value of this axis.
        by: Option<usize>,
    },
    /// The states of the first seed's flows over time, in the selected cells.
    TimeSeries,
    /// Median completion time by object size: the gain of one controller over another.
    BySize {
        /// Edges of the size classes in bytes.
        edges: Vec<u64>,
        /// The quantity.
        quantity: Quantity,
        /// The axis: its values are the rows.
        y: usize,
        /// The selection it is divided by.
        over: Option<Selection>,
    },
}
