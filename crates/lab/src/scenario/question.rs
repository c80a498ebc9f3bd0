//! What a scenario asks of its runs: thresholds, figures, and comparisons with what was published.

/// A number drawn from the runs of a cell: a statistic of a metric over flows and seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Of what.
    pub metric: Metric,
    /// Which number of its distribution.
    pub statistic: Statistic,
}

/// What is measured of each flow, each request or each run.
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
    /// Share of the flow's own link that the class fills, headers included, 0 to 1.
    Utilisation,
    /// Share of the selected flows in the payload that all flows of the run deliver, 0 to 1.
    Share,
    /// Round-trip times that senders measured, in seconds.
    Rtt,
    /// Time that packets waited in queues, in seconds.
    QueueDelay,
    /// Bytes sent again over bytes sent, 0 to 1.
    Retransmitted,
    /// Packets that queues and policers dropped over packets sent, 0 to 1.
    Dropped,
    /// Retransmission timeouts of a flow.
    Timeouts,
    /// Jain's index of the class's goodputs within a run.
    Jain,
    /// Seconds from click to sound or picture.
    PlaybackLatency,
    /// Interruptions of playback for want of data, of each listener or viewer.
    Stutters,
    /// Seconds of such interruptions over seconds of playback wanted, 0 to 1.
    Stalled,
    /// Mean encoded rate that was played, in bits per second.
    PlayedRate,
    /// Changes of the encoded rate of each viewer.
    Switches,
}

/// A number of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The value that this share of all does not exceed, 0 to 1.
    Quantile(f64),
    /// The sum within each run.
    Sum,
}

/// Cells and flows that are looked at together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The class; `None` is all that are not background.
    pub class: Option<String>,
    /// Only the flows of this controller, in a class that has several.
    pub cc: Option<String>,
    /// Only the cells where an axis has this value: (axis, value).
    pub at: Vec<(usize, usize)>,
    /// Only objects of at least so many bytes.
    pub at_least_bytes: Option<u64>,
    /// Only objects of less than so many bytes.
    pub less_than_bytes: Option<u64>,
}

/// Something that must hold in every cell that is selected.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// What is measured, in words, such as `completion.p50 / cubic's`.
    pub measures: String,
    /// What it may not be less than, as the file has it.
    pub min_text: String,
    /// What it may not be more than, as the file has it.
    pub max_text: String,
    /// What is looked at.
    pub of: Selection,
    /// What is measured.
    pub quantity: Quantity,
    /// Divided by the same quantity of these, if given.
    pub over: Option<Selection>,
    /// What is asked for.
    pub expected: Expectation,
}

/// Bounds of a quantity in its own unit (seconds, bits per second, a share, a ratio).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expectation {
    /// Not less.
    pub min: Option<f64>,
    /// Not more.
    pub max: Option<f64>,
}

/// Something that others measured, beside what is measured here.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// What it is.
    pub what: String,
    /// The published figure.
    pub value: String,
    /// Who says so, and where.
    pub source: String,
    /// What is measured here for it.
    pub of: Selection,
    /// The quantity.
    pub quantity: Quantity,
    /// Divided by the same quantity of these, if given.
    pub over: Option<Selection>,
    /// Whether the ratio is printed as a change: 1.1 as +10 %.
    pub as_change: bool,
    /// The range in which both agree, if the publication gives figures that allow one.
    pub agrees: Option<Expectation>,
    /// A remark.
    pub note: String,
}

/// A picture of the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// What to read from it.
    pub caption: String,
    /// What is shown.
    pub kind: FigureKind,
    /// Of which cells and flows.
    pub of: Selection,
}

/// What a picture shows. Axes are indices into the scenario's.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureKind {
    /// A quantity by two axes; divided by that of `over`, the gain.
    HeatMap {
        /// Columns.
        x: usize,
        /// Rows.
        y: usize,
        /// What is measured.
        quantity: Quantity,
        /// The selection it is divided by.
        over: Option<Selection>,
    },
    /// The distribution of a metric, one curve for each value of `by` and each controller.
    Cdf {
        /// Of what.
        metric: Metric,
        /// One curve for each value of this axis.
        by: Option<usize>,
        /// Whether its scale is logarithmic.
        log: bool,
    },
    /// A quantity along an axis, one curve for each value of `by` and each controller.
    Lines {
        /// Along what.
        x: usize,
        /// What is measured.
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
    /// Quantiles of a metric with their confidence intervals, a group for each value of `by` and each class.
    Bars {
        /// Of what.
        metric: Metric,
        /// Which numbers.
        statistics: Vec<Statistic>,
        /// A group for each value of this axis.
        by: Option<usize>,
    },
    /// The inside of the first seed's flows over time, in the selected cells.
    TimeSeries,
    /// Median completion time by object size, the gain of one controller over another.
    BySize {
        /// Edges of the size classes in bytes.
        edges: Vec<u64>,
        /// What is measured.
        quantity: Quantity,
        /// The axis whose values are the rows.
        y: usize,
        /// The selection it is divided by.
        over: Option<Selection>,
    },
}
