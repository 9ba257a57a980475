//! What a build with SQL is tested by too (`--features tables`).

#[path = "../support/mod.rs"]
mod support;

mod licences;
mod query;
