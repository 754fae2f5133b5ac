//! Every page with samples, in every language.
use super::super::{
    concurrency, error,
    i18n::{I18n, LANGUAGES},
    keys, login, overview, pool, requests, settings, setup,
    shell::{Shell, Theme},
    time::Zone,
};

pub(in crate::dashboard) fn shell(tag: &str) -> Shell {
    Shell {
        locale: I18n::load().unwrap().locale(Some(tag), None),
        theme: Theme::System,
        zone: Zone::of(Some("Asia/Seoul")),
        here: "/".into(),
    }
}

/// Every page's samples. Formatting a message that is missing or lacks an argument panics.
fn all(shell: &Shell) -> Vec<(&'static str, String)> {
    let mut pages = error::samples(shell);
    pages.extend(login::samples(shell));
    pages.extend(setup::samples(shell));
    pages.extend(overview::samples(shell));
    pages.extend(concurrency::samples(shell));
    pages.extend(requests::samples(shell));
    pages.extend(settings::samples(shell));
    pages.extend(pool::samples(shell));
    pages.extend(keys::samples(shell));
    pages
}

#[test]
fn every_page_is_rendered_in_every_language() {
    for (tag, _) in LANGUAGES {
        for (name, page) in all(&shell(tag)) {
            assert!(
                page.contains(&format!("<html lang=\"{tag}\"")),
                "{name} {tag}"
            );
            assert_eq!(page.matches("<h1").count(), 1, "{name} {tag}");
            assert!(!page.contains('\u{2068}'), "{name} {tag}");
        }
    }
}

#[test]
fn no_page_has_inline_script_or_style_or_an_address_elsewhere() {
    for (name, page) in all(&shell("en")) {
        assert!(!page.contains("style=\""), "{name}");
        assert!(!page.contains("<style"), "{name}");
        assert!(!page.contains(" onclick"), "{name}");
        for tag in page.split("<script").skip(1) {
            assert!(tag.starts_with(" src=\"/assets/"), "{name}: {tag:.60}");
        }
        for attribute in ["src=\"", "href=\""] {
            for address in page.split(attribute).skip(1) {
                assert!(
                    address.starts_with(['/', '#', '?']),
                    "{name}: {address:.60}"
                );
            }
        }
    }
}

#[test]
fn ids_are_unique_and_labels_name_fields() {
    for (name, page) in all(&shell("en")) {
        let values = |attribute: &str| -> Vec<String> {
            let opening = format!(" {attribute}=\"");
            let parts = page.split(&opening).skip(1);
            parts
                .map(|p| p.split('"').next().unwrap().to_owned())
                .collect()
        };
        let ids = values("id");
        for id in &ids {
            assert_eq!(
                ids.iter().filter(|other| *other == id).count(),
                1,
                "{name}: {id}"
            );
        }
        for wanted in values("for").into_iter().chain(values("aria-labelledby")) {
            assert!(ids.contains(&wanted), "{name}: {wanted}");
        }
        for wanted in values("aria-describedby").iter().flat_map(|v| v.split(' ')) {
            assert!(ids.iter().any(|id| id == wanted), "{name}: {wanted}");
        }
    }
}

/// The text that people see, without what is the same in every language.
fn visible(page: &str) -> String {
    let body = page.split("<body>").nth(1).unwrap();
    let mut text = String::new();
    let mut rest = body;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        if tag.contains("translate=\"no\"") && !tag.ends_with('/') {
            let name = tag.split(' ').next().unwrap();
            let (inside, after) = rest.split_once(&format!("</{name}>")).unwrap();
            assert!(!inside.contains(&format!("<{name}")), "nested: {inside}");
            rest = after;
        }
        text.push(' ');
    }
    text
}

#[test]
fn every_visible_word_is_part_of_a_message() {
    let mut shell = shell("en");
    shell.locale = shell.locale.pseudo();
    for (name, page) in all(&shell) {
        let mut rest = visible(&page);
        // The innermost ones first, since messages may hold messages.
        while let Some(end) = rest.find('⟧') {
            let start = rest[..end].rfind('⟦').unwrap();
            rest.replace_range(start..end + '⟧'.len_utf8(), "");
        }
        let words: String = rest.replace("&#", "");
        assert!(
            !words.chars().any(char::is_alphabetic),
            "{name}: {}",
            words.trim()
        );
    }
}

#[test]
fn a_moment_is_written_as_each_language_writes_it() {
    // 2026-11-30T01:03:05Z, seen from Seoul, and a January to tell the months apart.
    let check = |tag: &str, millis: i64, expect: &str| {
        assert_eq!(shell(tag).date_time(millis), expect, "{tag}");
    };
    let (november, january) = (1_796_000_585_000, 1_767_225_600_000);
    check("en", november, "30 Nov 2026, 10:03:05");
    check("en", january, "1 Jan 2026, 09:00:00");
    check("ko", november, "2026년 11월 30일 10:03:05");
    check("zh-CN", november, "2026 年 11 月 30 日 10:03:05");
}
