//! What the environment says wrong is said back, all of it, before anything is touched.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose program does not play along has failed its test"
)]

use crate::program::{Home, Ran, files};

/// The commands that read the environment.
const COMMANDS: [&[&str]; 7] = [
    &["serve"],
    &["check"],
    &["export"],
    &["settings"],
    &["import", "-"],
    &["admin", "create-key", "--name", "k"],
    &["healthcheck"],
];

fn check(env: &[(&str, &str)], expect: &[&str]) {
    let home = Home::new();
    for command in COMMANDS {
        let Ran { code, out, err } = home.run_with(command, env, "{}");
        assert_eq!((code, &*out), (Some(1), ""), "{command:?}: {err}");
        let text = err.strip_prefix("fairlane: ").unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), expect.len(), "{err}");
        for word in expect {
            assert!(lines.iter().any(|l| l.starts_with(word)), "{word}: {err}");
        }
    }
    assert_eq!(files(home.path()), []);
}

#[test]
fn every_mistake_is_said_at_once() {
    check(
        &[
            ("FAIRLANE_LISTEN", "8080"),
            ("FAIRLANE_LOG_FORMAT", "xml"),
            ("FAIRLANE_STAGE_TRACE", "maybe"),
            ("FAIRLANE_MAX_ATTEMPTS", "5s"),
            ("FAIRLANE_CORS_ALLOWED_ORIGINS", "not an origin"),
            ("FAIRLANE_MAX_ATTEMPT", "5"),
            ("FAIRLANE_KEYS_OPENAI", "sk-with a space"),
            ("OTHERLANE_X", "ignored"),
        ],
        &[
            "FAIRLANE_LISTEN: \"8080\"",
            "FAIRLANE_LOG_FORMAT: \"xml\"",
            "FAIRLANE_STAGE_TRACE: \"maybe\"",
            "FAIRLANE_MAX_ATTEMPTS: \"5s\"",
            "FAIRLANE_CORS_ALLOWED_ORIGINS: \"not an origin\"",
            "FAIRLANE_MAX_ATTEMPT: is not a variable of fairlane; did you mean FAIRLANE_MAX_ATTEMPTS?",
            "FAIRLANE_KEYS_OPENAI",
        ],
    );
}

/// Every setting that is a number, by its variable.
fn numbers(home: &Home) -> Vec<String> {
    let reference = home.run(&["settings", "--markdown"]).out;
    let rows = reference.lines().filter(|l| l.contains("a whole number"));
    let variable = |l: &str| {
        let cell = l.split('`').find(|c| c.starts_with("FAIRLANE_"));
        cell.unwrap().to_owned()
    };
    rows.map(variable).collect()
}

#[test]
fn every_number_is_judged_alike() {
    let home = Home::new();
    let numbers = numbers(&home);
    assert!(numbers.len() > 8, "{numbers:?}");
    for bad in [
        "5s",
        "abc",
        "-1",
        "1e9",
        "",
        "0x10",
        "1.5",
        "99999999999999999999",
        "200000",
    ] {
        let env: Vec<_> = numbers.iter().map(|n| (&**n, bad)).collect();
        let ran = home.run_with(&["settings"], &env, "");
        assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{bad:?}");
        for number in &numbers {
            let line =
                format!("{number}: \"{bad}\" is not accepted; accepted: a whole number from ");
            assert!(ran.err.contains(&line), "{bad:?} {number}: {}", ran.err);
        }
    }
    let env: Vec<_> = numbers.iter().map(|n| (&**n, " 7 ")).collect();
    let ran = home.run_with(&["settings"], &env, "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sevens = ran.out.lines().filter(|l| l.ends_with(" 7  environment"));
    assert_eq!(sevens.count(), numbers.len(), "{}", ran.out);
}

#[test]
fn no_mistake_shows_a_secret() {
    let home = Home::new();
    let env = [
        ("FAIRLANE_KEYS_OPENAI", "sk-good-marker-1,sk-bad marker-2"),
        ("FAIRLANE_KEYS_ANTHROPIC", "sk-ant-marker\u{7}-3"),
        ("FAIRLANE_UNKNOWN_SECRET", "sk-marker-4"),
    ];
    let ran = home.run_with(&["serve"], &env, "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.err.contains("marker"), "{}", ran.err);
}
