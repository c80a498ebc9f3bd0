//! What many rows have in common: engine, controller, listener, policy and arm. Each is stored once.

use std::collections::HashMap;
use std::hash::Hash;

use smol_str::SmolStr;
use uncork_flow::FlowRecord;

/// The part of a row's key that has few values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Group {
    pub(crate) engine: SmolStr,
    pub(crate) class: SmolStr,
    pub(crate) cc: SmolStr,
    pub(crate) scope: Option<SmolStr>,
    pub(crate) protocol: Option<SmolStr>,
    pub(crate) listener: Option<SmolStr>,
    pub(crate) country: Option<SmolStr>,
    pub(crate) region: Option<SmolStr>,
    pub(crate) policy: Option<SmolStr>,
    pub(crate) rule: Option<SmolStr>,
    pub(crate) chosen: Option<SmolStr>,
    pub(crate) experiment: Option<SmolStr>,
    pub(crate) arm: Option<SmolStr>,
    /// The bits of a number: equal propensities are equal keys.
    pub(crate) propensity: Option<u64>,
}

impl Group {
    pub(crate) fn of(record: &FlowRecord) -> Self {
        let service = record.service.as_ref();
        let choice = record.choice.as_ref();
        let arm = choice.and_then(|choice| choice.arm.as_ref());
        Self {
            engine: record.engine.clone(),
            class: record.group.clone(),
            cc: record.cc.clone(),
            scope: service.map(|it| it.scope.name().into()),
            protocol: service.map(|it| it.protocol.clone()),
            listener: service.map(|it| it.listener.clone()),
            country: service.and_then(|it| it.country.clone()),
            region: service.and_then(|it| it.region.clone()),
            policy: choice.and_then(|it| it.known_policy()).cloned(),
            rule: choice.map(|it| it.rule.clone()),
            chosen: choice.and_then(|it| it.cc.clone()),
            experiment: arm.map(|it| it.experiment.clone()),
            arm: arm.map(|it| it.arm.clone()),
            propensity: arm.map(|it| it.propensity.to_bits()),
        }
    }

    /// Without the client's place: what the checks of a whole listener need.
    pub(crate) fn anywhere(&self) -> Self {
        Self { country: None, region: None, ..self.clone() }
    }

    /// Without all that is of the connection: what traffic is counted by.
    pub(crate) fn place(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            scope: self.scope.clone(),
            listener: self.listener.clone(),
            country: self.country.clone(),
            region: self.region.clone(),
            ..Self::default()
        }
    }
}

/// Values by a small number.
#[derive(Clone, Debug)]
pub(crate) struct Interner<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    pub(crate) fn number(&mut self, value: &T) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value.clone(), number);
        number
    }

    /// The value that [`Self::number`] numbered.
    pub(crate) fn value(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}
