//! No spelling of a path leads outside the root or to a hidden file.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::{Scratch, Served, spec};

const SECRET: &str = "top secret";

/// Each path is sent unchanged. The secrets are next to the root, in a dotfile and behind links.
const SPELLINGS: [&str; 58] = [
    "/../secret",
    "/../../secret",
    "/a/../../secret",
    "/a/../b/../../secret",
    "/./../secret",
    "/a/./../../secret",
    "/..",
    "/../",
    "/a/..",
    "/%2e%2e/secret",
    "/%2E%2E/secret",
    "/.%2e/secret",
    "/%2e./secret",
    "/%2e%2e%2fsecret",
    "/..%2fsecret",
    "/..%2Fsecret",
    "/a%2f..%2f..%2fsecret",
    "/a/%2e%2e/%2e%2e/secret",
    "/%252e%252e/secret",
    "/%252e%252e%252fsecret",
    "/%25252e%25252e/secret",
    "/..%252fsecret",
    "/..\\secret",
    "/..%5csecret",
    "/..%5Csecret",
    "/a%5c..%5c..%5csecret",
    "/a\\..\\..\\secret",
    "/%5c..%5csecret",
    "//../secret",
    "///../secret",
    "//secret",
    "/a//../../secret",
    "/....//secret",
    "/..../secret",
    "/..;/secret",
    "/..;a=b/secret",
    "/%c0%ae%c0%ae/secret",
    "/%c0%ae%c0%ae%c0%afsecret",
    "/%e0%80%ae%e0%80%ae/secret",
    "/%f0%80%80%ae%f0%80%80%ae/secret",
    "/..%c0%afsecret",
    "/..%c1%9csecret",
    "/%uff0e%uff0e/secret",
    "/%ef%bc%8e%ef%bc%8e/secret",
    "/..%00/secret",
    "/%00../secret",
    "/secret%00.html",
    "/..%0a/secret",
    "/..%0d%0a/secret",
    "/%2e%2e%20/secret",
    "/.hidden",
    "/%2ehidden",
    "/a/.hidden",
    "/.git/config",
    "/out",
    "/absolute",
    "/directory/secret",
    "/a/up/secret",
];

fn site() -> Scratch {
    let scratch = Scratch::new("serve");
    scratch.write("secret", SECRET);
    scratch.write("root/a/b/file", "fine");
    for hidden in ["root/.hidden", "root/a/.hidden", "root/.git/config"] {
        scratch.write(hidden, SECRET);
    }
    symlink("../secret", scratch.path("root/out")).expect("a link");
    symlink(scratch.path("secret"), scratch.path("root/absolute")).expect("a link");
    symlink("..", scratch.path("root/directory")).expect("a link");
    symlink("../..", scratch.path("root/a/up")).expect("a link");
    symlink("a/b/file", scratch.path("root/inside")).expect("a link");
    scratch
}

#[test]
fn no_path_spelling_escapes_the_root() {
    let scratch = site();
    let mut spec = spec(&scratch.path("root"));
    spec.site.index = true;
    let served = Served::new(&spec);
    for path in SPELLINGS {
        let response = served.get(path, "");
        assert!(matches!(response.status, 400 | 404), "{path}: {}", response.status);
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert!(!text.contains(SECRET), "{path}");
    }
    assert_eq!(served.get("/a/b/file", "").body, b"fine");
    assert_eq!(served.get("/inside", "").body, b"fine", "a link that stays inside");
    assert_eq!(served.get("/%61/%62/f%69le", "").body, b"fine");
    served.stop();
}

/// A directory is replaced with a link to the outside between two requests, and during requests.
#[test]
fn replacing_a_directory_with_a_link_does_not_escape_the_root() {
    let scratch = site();
    scratch.write("outside/file", SECRET);
    let served = Served::new(&spec(&scratch.path("root")));
    let (real, link) = (scratch.path("root/real"), scratch.path("root/link"));
    fs::create_dir(&real).expect("a directory");
    fs::write(real.join("file"), "fine").expect("a file");
    symlink("../outside", &link).expect("a link");
    let mut client = served.connect();
    let (now, other) = (scratch.path("root/now"), scratch.path("root/other"));
    for round in 0..300 {
        let (from, back) = if round % 2 == 0 { (&real, &link) } else { (&link, &real) };
        let exchange = || {
            fs::rename(from, &now)?;
            fs::rename(&now, &other)?;
            fs::rename(&other, from)
        };
        exchange().expect("renamed");
        fs::rename(back, &now).expect("renamed");
        let response = client.request("GET", "/now/file", "").expect("a response");
        assert!(response.body != SECRET.as_bytes(), "round {round}");
        assert_eq!(response.status, if back == &real { 200 } else { 404 }, "round {round}");
        fs::rename(&now, back).expect("renamed");
    }
    served.stop();
}

#[test]
fn only_regular_files_are_served() {
    let scratch = site();
    let pipe = scratch.path("root/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(scratch.path("root/s")).expect("a socket");
    symlink("loop", scratch.path("root/loop")).expect("a link");
    let long = format!("/{}", "x".repeat(300));
    let served = Served::new(&spec(&scratch.path("root")));
    for path in ["/pipe", "/s", "/loop", "/a", "/a/", "/", "/a/b/file/", "/a/b/file/x", &long] {
        assert_eq!(served.get(path, "").status, 404, "{path}");
    }
    served.stop();
}
