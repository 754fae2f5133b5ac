//! The fairness report: the same incident under four ways of giving out slots.
//!
//! Invariant: the table in the README is the one that comes out here.
mod figures;
mod incident;

use self::{
    figures::Figures,
    incident::{Arm, Incident},
};
use std::{fmt::Write, fs, sync::LazyLock};

const ARMS: [Arm; 4] = [
    Arm {
        name: "first come, refused at the cap; clients try again after 1 s",
        may_park: false,
        threshold_pct: 0,
        weight: 1,
    },
    Arm {
        name: "waiting in lanes, fair share off",
        may_park: true,
        threshold_pct: 0,
        weight: 1,
    },
    Arm {
        name: "fair share at 80",
        may_park: true,
        threshold_pct: 80,
        weight: 1,
    },
    Arm {
        name: "fair share at 80, the bursty key of weight 4",
        may_park: true,
        threshold_pct: 80,
        weight: 4,
    },
];

static PLAYED: LazyLock<Vec<Figures>> =
    LazyLock::new(|| ARMS.iter().map(|arm| Incident::play(*arm)).collect());

fn seconds(ms: u64) -> String {
    format!("{}.{:02}", ms / 1000, ms % 1000 / 10)
}

fn table() -> String {
    let mut table = String::from(
        "| slots are given | Jain's index | max-min error | idle while wanted \
         | bursty | steady | interactive |\n|---|---|---|---|---|---|---|\n",
    );
    for (arm, figures) in ARMS.iter().zip(&*PLAYED) {
        let (jain, error, idle) = (figures.jain(), figures.max_min_error(), figures.idle());
        let name = arm.name;
        let (error, idle) = (error * 100.0, idle * 100.0);
        write!(table, "| {name} | {jain:.2} | {error:.1} % | {idle:.1} % |").unwrap();
        for class in 0..3 {
            let [half, most] = [50, 99].map(|percent| seconds(figures.wait(class, percent)));
            let refused = figures.refused[class];
            write!(table, " {half} / {most} s, {refused} refused |").unwrap();
        }
        table.push('\n');
    }
    table
}

#[test]
fn the_readme_shows_the_table_that_comes_out() {
    let table = table();
    println!("{table}");
    let readme = fs::read_to_string("README.md").unwrap();
    let (_, rest) = readme.split_once("<!-- fairness -->\n").unwrap();
    let (shown, _) = rest.split_once("<!-- /fairness -->").unwrap();
    assert!(
        shown.contains(&table),
        "the table is now\n{table}\nand the README has\n{shown}"
    );
}

#[test]
fn with_the_gate_at_80_interactive_keys_are_never_refused_and_stand_first() {
    for figures in &PLAYED[2..] {
        assert!(figures.waits[2].len() > 1_000);
        assert_eq!(figures.refused[2], 0);
        assert_eq!(figures.overtaken, 0);
    }
}

#[test]
fn whoever_only_refuses_at_the_cap_starves_the_light_keys() {
    let [first_come, lanes, gate, _] = PLAYED.as_slice() else {
        panic!("four arms");
    };
    assert!(first_come.refused[2] > 100);
    assert!(first_come.wait(2, 99) > 10 * gate.wait(2, 99));
    assert!(first_come.max_min_error() > 10.0 * lanes.max_min_error());
    assert!(first_come.max_min_error() > gate.max_min_error());
    assert!(first_come.jain() < gate.jain());
}
