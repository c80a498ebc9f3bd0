//! Tests of the whole state machine: closed loops over a simple link, and scripted events.

extern crate std;

mod states;
mod window;
