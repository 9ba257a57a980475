//! The rule of one's own in `docs/query.md`, run as it stands there.

use crate::support::{recording, root};
use holdup_testkit::needs;
use std::process::Command;

#[needs(jq)]
#[test]
fn a_rule_of_ones_own_fails_where_it_is_broken_only() {
    let text = std::fs::read_to_string(root().join("docs/query.md")).unwrap();
    let (_, rest) = text.split_once("<!-- rule -->\n```sh\n").unwrap();
    let rule = rest.split_once("\n```").unwrap().0;
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_holdup")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    for (scenario, code) in [("thr_private_c2", 1), ("healthy_naps_c2", 0)] {
        let mut shell = Command::new("sh");
        shell.args(["-c", rule]).env("PATH", &path).env("TRACE", recording(scenario));
        assert_eq!(shell.output().unwrap().status.code(), Some(code), "{scenario}");
    }
}
