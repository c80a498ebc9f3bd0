//! Values that are fixed, or drawn for each client.

use std::fmt;

use uncork_config::{Key, Node, Result, Section, Value};
use uncork_units::Probability;

use super::super::ScenarioError;
use super::super::draw::{Between, Draw, DrawError};
use super::super::keys;

/// A value, or a distribution.
pub(crate) enum FixedOrDrawn<T> {
    Fixed(T),
    /// The first value (until a client draws its own) and the distribution.
    Drawn(T, Draw<T>),
}

impl<T: Between> FixedOrDrawn<T> {
    pub(crate) fn first(&self) -> T {
        let (Self::Fixed(value) | Self::Drawn(value, _)) = self;
        *value
    }

    pub(crate) fn is_drawn(&self) -> bool {
        matches!(self, Self::Drawn(..))
    }

    pub(crate) fn draw(&self) -> Option<Draw<T>> {
        match self {
            Self::Fixed(_) => None,
            Self::Drawn(_, draw) => Some(draw.clone()),
        }
    }
}

/// Applies `read` to `node`, or to each value of a distribution table.
pub(crate) fn fixed_or_drawn<T: Between + fmt::Debug>(
    node: &Node,
    read: impl Fn(&Node) -> Result<T>,
) -> Result<FixedOrDrawn<T>> {
    if !matches!(node.value, Value::Table(_)) {
        return read(node).map(FixedOrDrawn::Fixed);
    }
    let section = Section::new("what is drawn", &node.place, node, keys::DRAW)?;
    let (key, list) = section.exactly_one(Key::names(keys::DRAW), "distribution")?;
    let (values, draw) = if key == "quantiles" {
        let pairs = list.pairs("[\"50%\", \"8mbit\"]")?;
        let point = |[share, value]: [&Node; 2]| Ok((share.parse::<Probability>()?, read(value)?));
        let points = pairs.into_iter().map(point).collect::<Result<Vec<_>>>()?;
        (points.iter().map(|(_, value)| *value).collect::<Vec<T>>(), Draw::quantiles(&points))
    } else {
        let pairs = list.pairs("[\"0%\", 0.7]")?;
        let option = |[value, weight]: [&Node; 2]| Ok((weight.number()?, read(value)?));
        let options = pairs.into_iter().map(option).collect::<Result<Vec<_>>>()?;
        (options.iter().map(|(_, value)| *value).collect(), Draw::choice(&options))
    };
    let draw = draw.map_err(|error| refused(error, list))?;
    values.first().map(|first| FixedOrDrawn::Drawn(*first, draw)).ok_or_else(|| {
        ScenarioError::new(&list.place, "no values to draw from").help("list some values")
    })
}

fn refused(error: DrawError, list: &Node) -> ScenarioError {
    let member = |index: usize| {
        let node = list.list().ok().and_then(|nodes| nodes.get(index));
        node.map_or(&list.place, |node| &node.place)
    };
    match error {
        DrawError::Shares => ScenarioError::new(&list.place, "these shares are not a distribution")
            .help("let them ascend from 0% to 100%"),
        DrawError::Order(index) => {
            ScenarioError::new(member(index), "this value is less than the one before")
                .help("let values ascend with their shares")
        }
        DrawError::Kind(index) => {
            ScenarioError::new(member(index), "nothing lies between this value and the one before")
                .help("use the same unit for both, and more than zero; or use `choice`")
        }
        DrawError::Weights => ScenarioError::new(&list.place, "the weights add up to nothing")
            .help("write choice = [[\"0%\", 0.7], [\"1%\", 0.3]]"),
    }
}
