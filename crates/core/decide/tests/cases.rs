//! The cases that hold both implementations to the same rules: `conformance/decisions.json`.
#![expect(clippy::unwrap_used, reason = "a case that cannot be read has failed")]

use serde_json::{Value, json};
use uncork_decide::{
    Action, Advice, Block, Case, CellDecision, Decision, Estimate, Group, Guardrail, Harm, Reason,
    decide,
};

fn number(value: &Value, name: &str) -> Option<f64> {
    value.get(name).and_then(Value::as_f64)
}

fn interval(value: &Value, low: &str, high: &str) -> Option<[f64; 2]> {
    Some([number(value, low)?, number(value, high)?])
}

fn df(value: &Value) -> f64 {
    number(value, "df").unwrap_or(f64::INFINITY)
}

fn guardrail(value: &Value) -> Guardrail {
    let harm = |harm| {
        let interval = interval(value, "low", "high")?;
        Some(Harm { value: harm, interval, df: df(value), p: number(value, "p") })
    };
    Guardrail {
        measure: value["measure"].as_str().unwrap().to_owned(),
        limit: number(value, "limit").unwrap(),
        harm: number(value, "harm").and_then(harm),
        valid: interval(value, "valid_low", "valid_high"),
    }
}

fn group(value: &Value) -> Group {
    let estimate = |gain| Estimate {
        gain,
        error: number(value, "error").unwrap(),
        df: df(value),
        p: number(value, "p"),
    };
    Group {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        share: number(value, "share").unwrap_or(1.0),
        estimate: number(value, "gain").map(estimate),
        guardrails: value["guardrails"].as_array().into_iter().flatten().map(guardrail).collect(),
    }
}

fn case(value: &Value) -> Case {
    let block = match value["block"].as_str().unwrap_or_default() {
        "blocked" => Some(Block::Blocked),
        "refused" => Some(Block::Refused),
        "A/A" => Some(Block::AaTest),
        "" => None,
        other => panic!("block {other}"),
    };
    let usual = Case::of(group(&value["whole"]));
    Case {
        cells: value["cells"].as_array().into_iter().flatten().map(group).collect(),
        worth: number(value, "worth").unwrap_or(usual.worth),
        level: number(value, "level").unwrap_or(usual.level),
        alpha: number(value, "alpha").unwrap_or(usual.alpha),
        is_final: value["is_final"].as_bool().unwrap_or(usual.is_final),
        other_tests: number(value, "other_tests").map_or(0, |tests| tests as usize),
        block,
        ..usual
    }
}

const fn block(block: Block) -> &'static str {
    match block {
        Block::Blocked => "blocked",
        Block::Refused => "refused",
        Block::AaTest => "A/A",
    }
}

const fn action(action: Action) -> &'static str {
    match action {
        Action::Enable => "enable",
        Action::EnableSome => "enable some",
        Action::Keep => "keep",
        Action::Wait => "wait",
        Action::Stop => "stop",
        Action::None(why) => block(why),
    }
}

const fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Better => "better",
        Reason::Worse => "worse",
        Reason::NoGainLeft => "no gain left",
        Reason::GuardrailBroken => "guardrail broken",
        Reason::GuardrailLikelyBroken => "guardrail likely broken",
        Reason::NotEnoughData => "not enough data",
        Reason::NoInterval => "no interval",
        Reason::Stop => "stop",
        Reason::Blocked(why) => block(why),
    }
}

fn cell(cell: &CellDecision) -> Value {
    let advice = match cell.advice {
        Advice::Enable => "enable",
        Advice::Keep => "keep",
        Advice::Wait => "wait",
        Advice::None => "none",
    };
    json!({
        "name": cell.name,
        "advice": advice,
        "reason": reason(cell.reason),
        "state": cell.state.name(),
        "guardrails": states(&cell.guardrails),
    })
}

fn states(
    states: &std::collections::BTreeMap<String, uncork_decide::GuardrailState>,
) -> serde_json::Map<String, Value> {
    states.iter().map(|(measure, state)| (measure.clone(), state.name().into())).collect()
}

fn verdict(decision: &Decision) -> Value {
    let named = |advice| decision.named(advice).collect::<Vec<_>>();
    json!({
        "decision": action(decision.action),
        "state": decision.state.name(),
        "enable": named(Advice::Enable),
        "keep": named(Advice::Keep),
        "wait": named(Advice::Wait),
        "worse": decision.worse,
        "broken": decision.broken,
        "heterogeneous": decision.is_heterogeneous,
        "guardrails": states(&decision.guardrails),
        "exit_status": decision.exit_status,
        "cells": decision.cells.iter().map(cell).collect::<Vec<_>>(),
    })
}

#[test]
fn every_case_has_its_verdict() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../conformance/decisions.json");
    let text = std::fs::read_to_string(file).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let cases = document["cases"].as_array().unwrap();
    assert!(cases.len() >= 39, "{}", cases.len());
    for one in cases {
        assert_eq!(verdict(&decide(&case(&one["input"]))), one["verdict"], "{}", one["name"]);
    }
}
