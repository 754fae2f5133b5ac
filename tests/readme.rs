//! What the README says of the program is what the program says of itself.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts test functions, not their helpers"
)]

use std::{fs, process::Command};

fn fairlane(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fairlane"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_settings_reference_is_the_programs_own() {
    let readme = fs::read_to_string("README.md").unwrap();
    let (_, rest) = readme.split_once("<!-- settings -->\n").unwrap();
    let (table, _) = rest.split_once("\n<!-- /settings -->").unwrap();
    assert_eq!(table, fairlane(&["settings", "--markdown"]).trim());
}

#[test]
fn every_command_is_listed() {
    let readme = fs::read_to_string("README.md").unwrap();
    let help = fairlane(&["--help"]);
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\nOptions:").unwrap();
    // Names stand two columns in; what they do may go on further right.
    let names = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|n| *n != "help") {
        assert!(readme.contains(&format!("| `{name}")), "{name} is missing");
    }
}
