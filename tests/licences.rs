//! What is linked in: nothing but what `deny.toml` allows.
//!
//! `cargo deny check` looks at more; these are the parts that need neither a tool nor a network.

mod support;

use serde_json::Value;
use std::process::Command;
use support::root;

/// What a tool prints that comes with Rust.
fn output(command: &mut Command) -> String {
    let out = command.current_dir(root()).output().expect("it runs");
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("UTF-8")
}

/// The packages a build on this machine is made of.
fn packages() -> Vec<Value> {
    let rustc = output(Command::new("rustc").arg("-vV"));
    let host = rustc.lines().find_map(|l| l.strip_prefix("host: ")).expect("rustc says its host");
    let metadata = output(
        Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked", "--offline"])
            .args(["--filter-platform", host]),
    );
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list").clone();
    assert!(packages.len() > 50, "{} packages", packages.len());
    packages
}

#[test]
fn every_package_has_a_licence_that_deny_toml_allows() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let deny: toml::Table = deny.parse().expect("TOML");
    let allowed: Vec<&str> =
        deny["licenses"]["allow"].as_array().unwrap().iter().filter_map(|l| l.as_str()).collect();
    let refused: Vec<String> = packages()
        .iter()
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("");
            // Old packages write `MIT/Apache-2.0`.
            let fits = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX)
                .is_ok_and(|e| e.evaluate(|one| allowed.contains(&one.to_string().as_str())));
            (!fits).then(|| format!("{}: {licence:?}", package["name"]))
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn every_package_comes_from_crates_io_in_a_version_that_is_named() {
    for package in packages() {
        let name = &package["name"];
        if let Some(source) = package["source"].as_str() {
            assert!(source.starts_with("registry+https://github.com/rust-lang/crates.io-index"));
            continue;
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            let open = dependency["req"] == "*" && dependency["path"].is_null();
            assert!(!open, "{name}: any version of {}", dependency["name"]);
        }
    }
}
