//! `diagnose` and `rules` from outside: figures, thresholds, all reasons, Markdown.

#[track_caller]
fn text(code: i32, args: &[&str]) -> String {
    let out = crate::support::run(args);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(if code == 2 { out.stderr } else { out.stdout }).unwrap()
}

const SERVER: &str = "fixtures/imb_server_c4/perf.data";

#[test]
fn reports() {
    insta::assert_snapshot!("text", text(0, &["diagnose", SERVER]));
    insta::assert_snapshot!("explain", text(0, &["diagnose", "--explain", SERVER]));
    insta::assert_snapshot!("markdown", text(0, &["diagnose", "--format", "md", SERVER]));
    for case in 1..=4 {
        insta::assert_snapshot!(
            format!("aix_case_{case}"),
            text(
                0,
                &["diagnose", "--metrics", &format!("fixtures/published/aix-case-{case}.toml")]
            )
        );
    }
}

#[test]
fn figures_of_several_cases_need_a_choice() {
    let file = "fixtures/published/bier-vernon-table-1.toml";
    assert!(text(2, &["diagnose", "--metrics", file]).contains("compile-12-c4"));
    assert!(text(2, &["diagnose", "--metrics", file, "--case", "moon"]).contains("compile-12-c4"));
    let report = text(0, &["diagnose", "-v", "--metrics", file, "--case", "compile-12-c4"]);
    assert!(
        report.contains("VERDICT: kernel-lock-conflict")
            && report.contains("3.03")
            && report.contains("effective processors, predicted"),
        "{report}"
    );
    text(
        1,
        &[
            "diagnose",
            "--metrics",
            file,
            "--case",
            "compile-12-c4",
            "--fail-on",
            "kernel-lock-conflict",
        ],
    );
    text(2, &["diagnose", "--metrics", "fixtures/none.toml"]);
    text(2, &["diagnose", "--metrics", "Cargo.toml"]);
    text(2, &["diagnose", "--metrics", file, SERVER]);
}

#[test]
fn thresholds_come_from_a_file_and_show() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    let strict = file("strict.toml", "[all]\nmatters_pct = 99\n");
    let report = text(0, &["diagnose", "--thresholds", &strict, SERVER]);
    assert!(
        report.contains(
            "threshold all.matters_pct is set to 99 % of wanted CPU time; the default is 15"
        ),
        "{report}"
    );
    assert!(!report.contains("VERDICT: workload-imbalance"), "{report}");
    let json: serde_json::Value =
        serde_json::from_str(&text(0, &["diagnose", "-j", "--thresholds", &strict, SERVER]))
            .unwrap();
    assert_eq!(json["thresholds"][0]["key"], "all.matters_pct");
    let wrong = file("wrong.toml", "[all]\nmaters_pct = 99\n");
    assert!(
        text(2, &["diagnose", "--thresholds", &wrong, SERVER]).contains("all.matters_pct"),
        "names the known ones"
    );
    assert!(text(2, &["guide", "-y", "--thresholds", &wrong, SERVER]).contains("all.matters_pct"));
}

#[test]
fn rules_print_their_manual() {
    let list = text(0, &["rules"]);
    for rule in holdup_diagnose::rules::ALL {
        assert!(list.contains(rule.id));
        let page = text(0, &["rules", rule.id]);
        assert!(page.contains("What it does") && page.contains("Thresholds"), "{page}");
        let json: serde_json::Value =
            serde_json::from_str(&text(0, &["rules", "-j", rule.id])).unwrap();
        assert_eq!(json["rows"][0]["id"], rule.id);
    }
    assert!(text(2, &["rules", "moon"]).contains("io-bound"));
}
