//! Files in turn, other users, and names of what threads wait at.

use crate::{done, info, place, recorder, said};
use holdup_testkit::needs;
use std::path::Path;
use std::process::Command;

#[needs(tracepoints)]
#[test]
fn a_recording_in_several_files_keeps_the_latest_and_loses_nothing() {
    let (folder, file) = place();
    let work = ["sh", "-c", "i=0; while [ $i -lt 40 ]; do sleep 0.05; i=$((i+1)); done"];
    let rotation = ["--switch-output", "400ms", "--switch-max-files", "3", "--"];
    let out = done(recorder(&file).args(rotation).args(work));
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    let last = names.last().unwrap();
    assert!(last > &"perf.data.0003".to_owned(), "{names:?}");
    assert!(said(&out).contains(&format!("diagnose {}", folder.path().join(last).display())));
    let mut ends = 0;
    for name in &names {
        let info = info(&folder.path().join(name));
        assert_eq!(info["trace"]["lost_events"], 0, "{name}");
        let at = |key: &str| info["trace"][key].as_u64().unwrap();
        if at("events") == 0 {
            // The work ended just as the last file began.
            assert_eq!(name, last);
            continue;
        }
        assert!(at("start_ns") >= ends, "one follows the other: {info}");
        ends = at("end_ns");
    }
    let out = recorder(Path::new("-")).args(rotation).arg("true").output().unwrap();
    assert_eq!(out.status.code(), Some(2), "a pipe is one file");
}

#[needs(tracepoints, root)]
#[test]
fn a_command_runs_as_another_user_while_root_records() {
    let (_folder, file) = place();
    let who = ["sh", "-c", "echo $(id -u) $(id -Gn) $USER $HOME"];
    let out = done(recorder(&file).args(["--user", "nobody", "--"]).args(who));
    let words = String::from_utf8(out.stdout).unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    assert!(words[0] != "0" && !words[1].contains("root") && words[2] == "nobody", "{words:?}");
    assert!(info(&file)["trace"]["events"].as_u64() > Some(0));
    let out = recorder(&file).args(["--user", "no such user", "--", "true"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(said(&out).contains("there is no such user"), "{}", said(&out));
}

/// Two threads that contend for a mutex that is a static variable.
const TURNS: &str = r#"
#include <pthread.h>
#include <unistd.h>
static struct { long other; pthread_mutex_t lock; } bank = { 0, PTHREAD_MUTEX_INITIALIZER };
static void *work(void *unused) {
    for (int i = 0; i < 60; i++) {
        pthread_mutex_lock(&bank.lock);
        usleep(2000);
        pthread_mutex_unlock(&bank.lock);
    }
    return unused;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, work, 0);
    pthread_create(&two, 0, work, 0);
    pthread_join(one, 0);
    return pthread_join(two, 0);
}
"#;

#[needs(tracepoints)]
#[test]
fn a_static_mutex_has_the_name_of_its_variable() {
    let (folder, file) = place();
    let (source, program) = (folder.path().join("turns.c"), folder.path().join("turns"));
    std::fs::write(&source, TURNS).unwrap();
    let mut cc = Command::new("cc");
    done(cc.args(["-g", "-pthread", "-Wl,--build-id", "-o"]).args([&program, &source]));
    done(recorder(&file).arg("--").arg(&program));
    let waits = |more: &[&str]| {
        let out =
            done(crate::holdup().args(["waits", "-j", "--comm", "turns"]).args(more).arg(&file));
        String::from_utf8(out.stdout).unwrap()
    };
    // Behind a long, which may be aligned.
    assert!(waits(&[]).contains("\"turns:bank+0x8\""), "{}", waits(&[]));
    assert!(!waits(&["--no-symbols"]).contains("bank"), "no file is opened");
    // Another build may have another variable there.
    std::fs::write(&source, TURNS.replace("long other", "long other[8]")).unwrap();
    done(Command::new("cc").args(["-pthread", "-Wl,--build-id", "-o"]).args([&program, &source]));
    assert!(!waits(&[]).contains("bank"), "{}", waits(&[]));
}
