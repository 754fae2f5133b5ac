//! The last quarter of an hour as three charts: how requests ended, how soon their first byte came,
//! how full the pool was.
use super::super::{
    chart::{Bars, HEIGHT, Lines, Series, WIDTH},
    fullness::{STEP_MS, STEPS, Seen},
    shell::Shell,
};
use crate::{
    domain::ledger::Outcome,
    store::ledger::{self, FirstBytes, Tally},
};

/// The window of the charts and counts.
const MINUTES: i64 = 15;

const MINUTE_MS: i64 = 60_000;

/// Where the window begins.
pub(super) fn since(now_ms: i64) -> i64 {
    (now_ms / MINUTE_MS - MINUTES + 1) * MINUTE_MS
}

/// The requests that began in the window and have ended, and how full the pool was meanwhile.
pub(super) struct Recent {
    /// Whether a log is kept at all; without one nothing can be said of requests.
    pub(super) is_kept: bool,
    pub(super) ok: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) left: u64,
    pub(super) bars: Bars,
    /// For the table: the minute as text and its counts.
    pub(super) rows: Vec<(String, [u64; 4])>,
    pub(super) first_bytes: FirstByteChart,
    pub(super) fullness: FullnessChart,
}

/// How soon answers began.
pub(super) struct FirstByteChart {
    pub(super) lines: Lines,
    pub(super) rows: Vec<(String, Option<FirstBytes>)>,
    pub(super) in_all: Option<FirstBytes>,
    /// Whether there were more than are looked at.
    pub(super) is_cut: bool,
}

/// How full the pool was.
pub(super) struct FullnessChart {
    pub(super) lines: Lines,
    /// For the table: the minute, and the most that were in flight in it; `None` where nobody
    /// looked.
    pub(super) rows: Vec<(String, Option<u64>)>,
    pub(super) now: u64,
    pub(super) peak: u64,
    pub(super) capacity: Option<u64>,
}

impl Recent {
    pub(super) fn total(&self) -> u64 {
        self.ok + self.refused + self.failed + self.left
    }

    /// The last minute that is over, and how many of its requests have ended.
    pub(super) fn last_minute(&self) -> (&str, u64) {
        let over = self.rows.iter().rev().nth(1);
        over.map_or(("", 0), |(minute, counts)| (minute, counts.iter().sum()))
    }

    pub(super) fn first(&self) -> &str {
        self.rows.first().map_or("", |(minute, _)| minute)
    }

    pub(super) fn last(&self) -> &str {
        self.rows.last().map_or("", |(minute, _)| minute)
    }

    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    pub(super) fn view_box(&self) -> String {
        format!("0 0 {WIDTH} {HEIGHT}")
    }

    pub(super) fn new(
        shell: &Shell,
        (recent, is_kept): (&ledger::Recent, bool),
        (seen, in_flight): (&[Option<Seen>], u64),
        now_ms: i64,
    ) -> Self {
        let minutes = minutes(now_ms);
        let steps: Vec<[u64; 4]> = minutes
            .clone()
            .map(|m| counts(&recent.tallies, m))
            .collect();
        let sum = |n: usize| steps.iter().filter_map(|step| step.get(n)).sum();
        let clock = |minute: i64| shell.clock_short(minute * MINUTE_MS);
        Self {
            is_kept,
            ok: sum(0),
            refused: sum(1),
            failed: sum(2),
            left: sum(3),
            rows: minutes.clone().map(clock).zip(steps.clone()).collect(),
            bars: Bars::new(&steps, ["ok", "refused", "failed", "left"]),
            first_bytes: FirstByteChart::new(shell, recent, minutes),
            fullness: FullnessChart::new(shell, (seen, in_flight), now_ms),
        }
    }
}

fn minutes(now_ms: i64) -> std::ops::RangeInclusive<i64> {
    let last = now_ms / MINUTE_MS;
    last - MINUTES + 1..=last
}

/// What ended well, what was refused by us, what failed upstream, and whose client left.
fn counts(tallies: &[Tally], minute: i64) -> [u64; 4] {
    let of = |outcomes: &[Outcome]| {
        let matching = tallies
            .iter()
            .filter(|t| t.minute == minute && outcomes.contains(&t.outcome));
        matching.map(|t| t.count).sum()
    };
    [
        of(&[Outcome::Ok]),
        of(&[Outcome::Refused]),
        of(&[Outcome::Failed, Outcome::Broken]),
        of(&[Outcome::ClientGone]),
    ]
}

impl FirstByteChart {
    fn new(shell: &Shell, recent: &ledger::Recent, minutes: std::ops::RangeInclusive<i64>) -> Self {
        let at = |minute| {
            let found = recent.first_bytes.iter().find(|m| m.minute == minute);
            found.copied()
        };
        let known: Vec<Option<FirstBytes>> = minutes.clone().map(at).collect();
        let series = |class, label, value: fn(FirstBytes) -> u64| Series {
            values: known.iter().map(|m| m.map(value)).collect(),
            class,
            label: shell.t(label).to_string(),
        };
        let lines = Lines::new(vec![
            series("line-1", "first-byte-p50", |m| m.p50_ms),
            series("line-2", "first-byte-p95", |m| m.p95_ms),
        ]);
        let clock = |minute: i64| shell.clock_short(minute * MINUTE_MS);
        Self {
            lines,
            rows: minutes.map(clock).zip(known).collect(),
            in_all: recent.first_bytes_in_all,
            is_cut: recent.is_cut,
        }
    }
}

impl FullnessChart {
    fn new(shell: &Shell, (seen, now): (&[Option<Seen>], u64), now_ms: i64) -> Self {
        let series = |class, label, value: fn(Seen) -> Option<u64>| Series {
            values: seen.iter().map(|seen| seen.and_then(value)).collect(),
            class,
            label: shell.t(label).to_string(),
        };
        let lines = Lines::new(vec![
            series("line-1", "fullness-in-flight", |s| Some(s.in_flight)),
            series("line-cap", "fullness-capacity", |s| s.capacity),
        ]);
        let most = |minute: i64| {
            let of_minute = seen.iter().flatten();
            let of_minute = of_minute.filter(|s| s.step * STEP_MS / MINUTE_MS == minute);
            of_minute.map(|s| s.in_flight).max()
        };
        // The steps of the window may begin within a minute, which the table then shows as well.
        let first = (now_ms / STEP_MS - STEPS + 1) * STEP_MS / MINUTE_MS;
        let rows = first..=now_ms / MINUTE_MS;
        let last = seen.iter().flatten().next_back();
        Self {
            lines,
            rows: rows
                .map(|m| (shell.clock_short(m * MINUTE_MS), most(m)))
                .collect(),
            now,
            peak: seen
                .iter()
                .flatten()
                .map(|s| s.in_flight)
                .max()
                .unwrap_or(0),
            capacity: last.and_then(|s| s.capacity),
        }
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;

    pub(in super::super) const NOW_MS: i64 = 1_700_000_000_000;

    /// A quarter of an hour with something of everything, gaps included.
    pub(in super::super) fn busy(shell: &Shell) -> Recent {
        let minute = NOW_MS / MINUTE_MS;
        let tally = |ago: i64, outcome, count| Tally {
            minute: minute - ago,
            outcome,
            count,
        };
        let first_bytes = |ago: i64, p50_ms, p95_ms| FirstBytes {
            minute: minute - ago,
            p50_ms,
            p95_ms,
            count: 7,
        };
        let found = ledger::Recent {
            tallies: vec![
                tally(0, Outcome::Ok, 1204),
                tally(1, Outcome::Refused, 2),
                tally(3, Outcome::Broken, 1),
                tally(4, Outcome::ClientGone, 1),
            ],
            first_bytes: vec![
                first_bytes(5, 200, 900),
                first_bytes(4, 210, 905),
                first_bytes(1, 190, 1840),
                first_bytes(0, 205, 990),
            ],
            first_bytes_in_all: Some(first_bytes(5, 205, 990)),
            is_cut: true,
        };
        let step = NOW_MS / STEP_MS;
        let seen = |n: i64| Seen {
            step: step - STEPS + 1 + n,
            in_flight: u64::try_from(n % 7).unwrap(),
            capacity: Some(12),
        };
        let seen: Vec<_> = (0..STEPS).map(|n| (n > 40).then(|| seen(n))).collect();
        Recent::new(shell, (&found, true), (&seen, 3), NOW_MS)
    }

    /// One without anything, with or without a log.
    pub(in super::super) fn empty(shell: &Shell, is_kept: bool) -> Recent {
        let found = ledger::Recent::default();
        Recent::new(shell, (&found, is_kept), (&[], 0), NOW_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_by_us_and_failed_upstream_are_two_things() {
        let tally = |minute, outcome, count| Tally {
            minute,
            outcome,
            count,
        };
        let tallies = [
            tally(7, Outcome::Ok, 5),
            tally(7, Outcome::Refused, 1),
            tally(7, Outcome::Failed, 2),
            tally(7, Outcome::Broken, 3),
            tally(7, Outcome::ClientGone, 4),
            tally(8, Outcome::Ok, 9),
        ];
        assert_eq!(counts(&tallies, 7), [5, 1, 5, 4]);
        assert_eq!(counts(&tallies, 6), [0; 4]);
    }
}
