//! Pages in a browser: no error, no request, the right numbers, sorting, zooming, keys, contrast.
//!
//! `tests/browser/page.mjs` drives headless Chromium and says what is wrong, a line each.

use crate::support::{recording, root, stdout};
use holdup_testkit::needs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Open `page` in all widths and themes, and hold it against `report`.
#[track_caller]
fn right_in_a_browser(page: &Path, report: &Path) {
    // Browsers beside each other only slow each other down.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut node = Command::new("timeout");
    node.args(["480", "node"]).arg(root().join("tests/browser/page.mjs"));
    node.arg(root().join("target/ci-node")).args([page, report]).stdin(Stdio::null());
    let out = node.output().expect("node runs");
    let (said, errors) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{}: {said}{errors}", page.display());
}

/// Write the page and the JSON of one command, and open it.
#[track_caller]
fn opens(args: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let (page, report) = (folder.path().join("page.html"), folder.path().join("report.json"));
    for (format, path) in [("html", &page), ("json", &report)] {
        let output = ["--format", format, "-o", path.to_str().unwrap()];
        stdout(&[args, &output].concat());
    }
    right_in_a_browser(&page, &report);
}

#[needs(chromium, node_browser)]
#[test]
fn a_diagnosis_opens_and_shows_the_figures_of_json() {
    opens(&["diagnose", recording("imb_server_c4").to_str().unwrap()]);
}

#[needs(chromium, node_browser)]
#[test]
fn a_page_with_control_groups_opens() {
    opens(&["diagnose", recording("groups_c2").to_str().unwrap()]);
}

#[needs(chromium, node_browser)]
#[test]
fn a_trace_without_calls_and_waits_opens() {
    opens(&["diagnose", recording("native_cpu2").to_str().unwrap()]);
}

#[needs(chromium, node_browser)]
#[test]
fn comparisons_and_predictions_open() {
    let (a, b) = (recording("native_pipe_pair"), recording("native_chain_think"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    opens(&["diff", a, b]);
    opens(&["predict", "--demand", "6%"]);
}

/// Names that would end the data block, or the page, if they could.
#[needs(chromium, node_browser)]
#[test]
fn hostile_names_stay_text() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("hostile.txt");
    let names =
        ["</script><script>alert(1)", "<img src=x onerror=alert(2)>", "\u{202e}evil\u{1b}["];
    let mut text = String::from("# tracer: nop\n#\n");
    for i in 0..400_u32 {
        let (name, other) = (names[i as usize % 3], names[(i as usize + 1) % 3]);
        let (tid, next) = (100 + i % 3, 100 + (i + 1) % 3);
        text.push_str(&format!(
            " {name}-{tid} [000] d..2. {}.{:06}: sched_switch: prev_comm={name} prev_pid={tid} \
             prev_prio=120 prev_state=S ==> next_comm={other} next_pid={next} next_prio=120\n",
            10 + i / 100,
            i % 100 * 10_000
        ));
    }
    std::fs::write(&trace, text).unwrap();
    let (page, report) = (folder.path().join("page.html"), folder.path().join("report.json"));
    for (format, path) in [("html", &page), ("json", &report)] {
        let path = path.to_str().unwrap();
        crate::support::run(&["diagnose", trace.to_str().unwrap(), "--format", format, "-o", path]);
    }
    let written = std::fs::read_to_string(&page).unwrap();
    assert!(written.contains("alert(1)"), "the names are in the page");
    right_in_a_browser(&page, &report);
}
