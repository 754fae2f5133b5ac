//! Moments and spans as people read them, in the zone that the browser told us, else in UTC.
use super::shell::Shell;
use jiff::{Timestamp, ZonedDateTime, civil::Date, tz::TimeZone};
use std::time::Duration;

/// A time zone by its name, such as `Asia/Seoul`.
#[derive(Clone, Debug)]
pub(super) struct Zone(TimeZone);

impl Zone {
    /// The zone of that name; UTC if there is none.
    pub(super) fn of(name: Option<&str>) -> Self {
        let found = name.and_then(|name| TimeZone::get(name).ok());
        Self(found.unwrap_or(TimeZone::UTC))
    }

    fn at(&self, unix_ms: i64) -> ZonedDateTime {
        let moment = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        moment.to_zoned_datetime(self.0.clone())
    }

    /// The day of that moment, as inputs of type `date` write it: `2030-01-31`.
    pub(super) fn day(&self, unix_ms: i64) -> String {
        self.at(unix_ms).date().to_string()
    }

    /// The first moment of a day that is written so.
    pub(super) fn first_moment(&self, day: &str) -> Option<i64> {
        let day: Date = day.trim().parse().ok()?;
        let begins = day.to_zoned_datetime(self.0.clone()).ok()?;
        Some(begins.timestamp().as_millisecond())
    }

    /// Its name, for saying which one times are in.
    pub(super) fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }
}

impl Shell {
    /// `14:03:22`.
    pub(super) fn clock(&self, unix_ms: i64) -> String {
        self.zone.at(unix_ms).strftime("%H:%M:%S").to_string()
    }

    /// `14:03`.
    pub(super) fn clock_short(&self, unix_ms: i64) -> String {
        self.zone.at(unix_ms).strftime("%H:%M").to_string()
    }

    /// Date and time to the second, as the language writes them.
    pub(super) fn date_time(&self, unix_ms: i64) -> String {
        let at = self.zone.at(unix_ms);
        let date = self
            .t("date")
            .text("year", at.year())
            // A number, by which English chooses its word.
            .num("month", u64::from(at.month().unsigned_abs()))
            .text("day", at.day());
        let text = self.t("date-time").text("date", date);
        text.text("time", at.strftime("%H:%M:%S")).to_string()
    }

    /// For the attribute `datetime`.
    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    pub(super) fn machine_time(&self, unix_ms: i64) -> String {
        crate::document::format_millis(unix_ms)
    }

    /// A span in its largest fitting unit: `340 ms`, `12 s`, `6 min`, `3 h`, `2 d`.
    pub(super) fn span(&self, span: Duration) -> String {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let (key, unit) = match ms {
            0..1_000 => ("span-milliseconds", 1),
            1_000..60_000 => ("span-seconds", 1_000),
            60_000..3_600_000 => ("span-minutes", 60_000),
            3_600_000..86_400_000 => ("span-hours", 3_600_000),
            _ => ("span-days", 86_400_000),
        };
        self.t(key).num("count", ms / unit).to_string()
    }

    /// A span in milliseconds, as [`span`](Self::span).
    pub(super) fn span_ms(&self, ms: u64) -> String {
        self.span(Duration::from_millis(ms))
    }
}
