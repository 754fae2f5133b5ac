//! When a credential that upstream refused is tried again by itself.
//!
//! Rule: after one minute, after ten, then every hour; the call costs nothing, and only a clear yes
//! enables it.

const MINUTE_MS: u64 = 60_000;

/// How long to wait before the test that follows `done` earlier ones, in milliseconds.
pub const fn wait_ms(done: u32) -> u64 {
    match done {
        0 => MINUTE_MS,
        1 => 9 * MINUTE_MS,
        _ => 60 * MINUTE_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::wait_ms;

    #[test]
    fn tests_come_after_one_minute_after_ten_and_then_every_hour() {
        let mut at = 0;
        let times = (0..4).map(|done| {
            at += wait_ms(done);
            at / 60_000
        });
        assert_eq!(times.collect::<Vec<u64>>(), [1, 10, 70, 130]);
    }
}
