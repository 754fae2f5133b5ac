//! Times as documents write them: RFC 3339, to and from milliseconds since 1970.
//!
//! The calendar is the proleptic Gregorian one; days are counted in 400-year eras that begin on
//! the first of March, so that the leap day is the last of a year.

const DAY_MS: i64 = 86_400_000;

/// Writes a time in UTC, such as `2030-01-31T18:00:00Z`; milliseconds only where there are any.
pub fn format_millis(millis: i64) -> String {
    let (year, month, day) = date_of(millis.div_euclid(DAY_MS));
    let rest = millis.rem_euclid(DAY_MS);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    let fraction = match rest % 1000 {
        0 => String::new(),
        ms => format!(".{ms:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Reads a time such as `2030-01-31T18:00:00Z`, `2030-01-31 18:00:00.5+09:00` or a mere date,
/// which is its first instant in UTC.
pub fn parse_millis(text: &str) -> Option<i64> {
    let text = text.trim();
    let days = day_number(text.get(..10)?)?;
    let Some(time) = text.get(10..).filter(|rest| !rest.is_empty()) else {
        return Some(days * DAY_MS);
    };
    let time = time.strip_prefix(['T', 't', ' '])?;
    let zone_at = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone_at);
    Some(days * DAY_MS + clock_ms(clock)? - zone_ms(zone)?)
}

/// `hh:mm:ss` with an optional fraction.
fn clock_ms(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let hour = two_digits(parts.next()?, 23)?;
    let minute = two_digits(parts.next()?, 59)?;
    let second = two_digits(parts.next()?, 59)?;
    if parts.next().is_some() || text.ends_with('.') {
        return None;
    }
    let mut millis = 0;
    for n in 0..3 {
        millis = millis * 10 + i64::from(fraction.as_bytes().get(n).map_or(0, |b| b & 15));
    }
    fraction
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then_some(((hour * 60 + minute) * 60 + second) * 1000 + millis)
}

fn zone_ms(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (two_digits(hours, 23)? * 60 + two_digits(minutes, 59)?) * 60_000)
}

fn two_digits(text: &str, max: i64) -> Option<i64> {
    let is_number = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| is_number && *n <= max)
}

/// Days from 1970-01-01 to a date written `yyyy-mm-dd`.
fn day_number(text: &str) -> Option<i64> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let is_number = year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit());
    let year: i64 = year.parse().ok().filter(|_| is_number)?;
    let (month, day) = (two_digits(month, 12)?, two_digits(day, 31)?);
    let shifted = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let number = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    // A date that does not exist, such as the 30th of February, comes back as another one.
    (date_of(number) == (year, month, day)).then_some(number)
}

/// The date that is `number` days after 1970-01-01.
fn date_of(number: i64) -> (i64, i64, i64) {
    let shifted = number + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: Option<i64>) {
        assert_eq!(parse_millis(text), expect, "{text}");
    }

    #[test]
    fn usual_ways_to_write_a_time_are_read() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("2024-02-29T12:30:45.250Z", Some(1_709_209_845_250));
        check("2024-02-29T21:30:45.25+09:00", Some(1_709_209_845_250));
        check("2024-02-29 12:30:45.2509Z", Some(1_709_209_845_250));
        check("1969-12-31", Some(-86_400_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "soon",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+9",
            "+024-01-01",
        ] {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read_back(millis in 0i64..253_402_300_800_000) {
            prop_assert_eq!(parse_millis(&format_millis(millis)), Some(millis));
        }
    }
}
