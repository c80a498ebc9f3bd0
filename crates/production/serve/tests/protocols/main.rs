//! Requests and responses over HTTP/1.1, HTTP/2 and HTTP/3.
//! One program, because each links the whole server.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/frames.rs"]
mod frames;
#[path = "../common/lossy.rs"]
mod lossy;
#[path = "../common/talker.rs"]
mod talker;

mod http;
mod http2;
mod http3;
mod replaced;
mod traversal;
