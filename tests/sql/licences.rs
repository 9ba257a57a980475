//! What is linked in: nothing but what `deny.toml` allows.
//!
//! `cargo deny check` looks at more; these are the parts that need neither a tool nor a network.

use crate::support::root;
use holdup_testkit::needs;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// What a tool prints that comes with Rust.
fn output(command: &mut Command) -> String {
    let out = command.current_dir(root()).output().expect("it runs");
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("UTF-8")
}

/// The packages that a build on this machine is made of, with their licences. Those of SQL count
/// where that is built: elsewhere they need not even be there.
fn packages() -> Vec<(String, String)> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "--edges", "normal,build,dev"])
        .args(["--prefix", "none", "--format", "{p}|{l}"]);
    if cfg!(feature = "tables") {
        tree.arg("--workspace");
    }
    let tree = output(&mut tree);
    let split = |line: &str| {
        let (name, licence) = line.split_once('|').expect("name and licence");
        // Stars stand behind what was listed before.
        (name.to_owned(), licence.trim_end_matches(" (*)").to_owned())
    };
    let packages: BTreeSet<_> = tree.lines().filter(|l| !l.is_empty()).map(split).collect();
    assert!(packages.len() > 50, "{} packages", packages.len());
    packages.into_iter().collect()
}

#[test]
fn every_package_has_a_licence_that_deny_toml_allows() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let deny: toml::Table = deny.parse().expect("TOML");
    let allowed: Vec<&str> =
        deny["licenses"]["allow"].as_array().unwrap().iter().filter_map(|l| l.as_str()).collect();
    let refused: Vec<String> = packages()
        .iter()
        .filter_map(|(name, licence)| {
            // Old packages write `MIT/Apache-2.0`.
            let fits = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX)
                .is_ok_and(|e| e.evaluate(|one| allowed.contains(&one.to_string().as_str())));
            (!fits).then(|| format!("{name}: {licence:?}"))
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn every_package_comes_from_crates_io_in_a_version_that_is_named() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let lock: toml::Table = lock.parse().expect("TOML");
    for package in lock["package"].as_array().unwrap() {
        if let Some(source) = package.get("source").and_then(|s| s.as_str()) {
            assert_eq!(source, "registry+https://github.com/rust-lang/crates.io-index");
        }
    }
    let members = output(Command::new(env!("CARGO")).args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
        "--locked",
        "--offline",
    ]));
    let members: Value = serde_json::from_str(&members).expect("JSON");
    for package in members["packages"].as_array().unwrap() {
        for dependency in package["dependencies"].as_array().unwrap() {
            let open = dependency["req"] == "*" && dependency["path"].is_null();
            assert!(!open, "{}: any version of {}", package["name"], dependency["name"]);
        }
    }
}

/// A release says what is linked in, with the licence texts: by the tree that cargo prints.
#[needs(python, crates)]
#[test]
fn the_bill_of_a_release_lists_what_is_linked_in() {
    let folder = tempfile::tempdir().unwrap();
    let (bill, texts) = (folder.path().join("bill.json"), folder.path().join("texts.txt"));
    let target = "x86_64-unknown-linux-musl";
    output(
        Command::new(root().join("packaging/bill.py"))
            .args([target.as_ref(), bill.as_os_str(), texts.as_os_str()])
            .env("CARGO_NET_OFFLINE", "true")
            .env("SOURCE_DATE_EPOCH", "1700000000"),
    );
    let bill: Value = serde_json::from_slice(&std::fs::read(bill).unwrap()).expect("JSON");
    let names: BTreeSet<&str> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|component| component["name"].as_str().unwrap())
        .collect();
    for linked in ["holdup-trace", "zstd-sys", "serde_json", "rust-std"] {
        assert!(names.contains(linked), "{linked}: {names:?}");
    }
    // Macros, and what only tests, leave nothing in the binary.
    for not in ["serde_derive", "syn", "insta", "holdup-testkit", "cc"] {
        assert!(!names.contains(not), "{not}");
    }
    assert_eq!(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
    let refs: BTreeSet<&str> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .chain([&bill["metadata"]["component"]])
        .map(|component| component["bom-ref"].as_str().unwrap())
        .collect();
    for entry in bill["dependencies"].as_array().unwrap() {
        for used in entry["dependsOn"].as_array().unwrap() {
            assert!(refs.contains(used.as_str().unwrap()), "{used}");
        }
    }
    let texts = std::fs::read_to_string(texts).unwrap();
    assert!(texts.contains("zstd-sys 2") && texts.contains("Meta Platforms"));
    assert!(!texts.contains("GNU GENERAL PUBLIC LICENSE\n"));
}
