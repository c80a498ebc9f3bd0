//! Tests of the whole machine: closed loops over a simple link, and scripted events.

extern crate std;

mod states;
mod window;
