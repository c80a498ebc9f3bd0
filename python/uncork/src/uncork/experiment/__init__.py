"""Experiments: design, health, decisions, verdicts, reports."""
