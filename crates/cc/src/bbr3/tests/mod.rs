//! Tests of the whole machine.
