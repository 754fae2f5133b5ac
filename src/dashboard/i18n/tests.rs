//! The message files, held against one another and against the source.
use super::*;
use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Every message of a language, with its arguments.
fn messages(tag: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for path in Sources::iter().filter(|p| p.starts_with(&format!("{tag}/"))) {
        let text = String::from_utf8(Sources::get(&path).unwrap().data.into_owned()).unwrap();
        let parsed = fluent_syntax::parser::parse(text).unwrap_or_else(|e| panic!("{path}: {e:?}"));
        for entry in parsed.body {
            if let Entry::Message(message) = entry {
                let mut arguments = BTreeSet::new();
                collect(message.value.as_ref().unwrap(), &mut arguments);
                found.insert(message.id.name, arguments);
            }
        }
    }
    found
}

fn collect(pattern: &Pattern<String>, arguments: &mut BTreeSet<String>) {
    for element in &pattern.elements {
        let PatternElement::Placeable { expression } = element else {
            continue;
        };
        let inline = match expression {
            Expression::Inline(inline) => inline,
            Expression::Select { selector, variants } => {
                for variant in variants {
                    collect(&variant.value, arguments);
                }
                selector
            }
        };
        if let InlineExpression::VariableReference { id } = inline {
            arguments.insert(id.name.clone());
        }
    }
}

#[test]
fn every_language_has_the_same_files_messages_and_arguments() {
    let files = |tag: &str| -> BTreeSet<String> {
        let of_language = |path: &str| path.strip_prefix(&format!("{tag}/")).map(str::to_owned);
        Sources::iter()
            .filter_map(|path| of_language(&path))
            .collect()
    };
    let reference = messages("en");
    for (tag, _) in LANGUAGES {
        assert_eq!(files(tag), files("en"), "{tag}");
        let found = messages(tag);
        let keys = |m: &BTreeMap<String, _>| m.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys(&found), keys(&reference), "{tag}");
        for (key, arguments) in found {
            // A language may do without a number that only chooses a plural in another.
            let unknown: Vec<_> = arguments.difference(&reference[&key]).collect();
            assert_eq!(unknown, [] as [&String; 0], "{tag}: {key}");
            let left_out: Vec<_> = reference[&key].difference(&arguments).collect();
            let is_allowed = (tag, &*key) == ("ko", "date") || left_out.is_empty();
            assert!(is_allowed, "{tag}: {key} leaves out {left_out:?}");
        }
    }
}

/// Every quoted word of the source that could be a key.
fn quoted() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for root in ["src/dashboard", "src/dashboard.rs", "templates"] {
        walk(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(root),
            &mut |text| {
                found.extend(text.split('"').map(str::to_owned));
            },
        );
    }
    found
}

/// Every key that a page asks for in so many words.
fn asked_for() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for root in ["src/dashboard", "templates"] {
        walk(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(root),
            &mut |text| {
                let calls = text.split("shell.t(\"").skip(1);
                found.extend(calls.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            },
        );
    }
    found
}

fn walk(path: &Path, visit: &mut impl FnMut(&str)) {
    if path.is_file() {
        visit(&fs::read_to_string(path).unwrap());
        return;
    }
    for entry in fs::read_dir(path).unwrap() {
        walk(&entry.unwrap().path(), visit);
    }
}

#[test]
fn every_message_is_used_and_every_key_that_is_used_is_a_message() {
    let known: BTreeSet<String> = messages("en").into_keys().collect();
    let quoted = quoted();
    let unused: Vec<_> = known.difference(&quoted).collect();
    assert_eq!(unused, [] as [&String; 0]);
    let asked = asked_for();
    assert!(
        asked.len() > 50,
        "the keys are not found in the source any more"
    );
    let missing: Vec<_> = asked.difference(&known).collect();
    assert_eq!(missing, [] as [&String; 0]);
}

fn locale(tag: &str) -> Locale {
    I18n::load().unwrap().locale(Some(tag), None)
}

#[test]
fn what_the_person_chose_comes_first_then_what_the_browser_asks_for() {
    let i18n = I18n::load().unwrap();
    let check = |chosen, header, expect: &str| {
        assert_eq!(
            i18n.locale(chosen, header).tag(),
            expect,
            "{chosen:?} {header:?}"
        );
    };
    check(Some("ko"), Some("en"), "ko");
    check(Some("xx"), Some("ko-KR,ko;q=0.9,en;q=0.5"), "ko");
    check(None, Some("zh-TW,zh;q=0.9"), "zh-CN");
    check(None, Some("zh-CN"), "zh-CN");
    check(None, Some("fr-FR"), "en");
    check(None, Some("fr-FR, ko;q=0.4"), "ko");
    check(None, None, "en");
}

#[test]
fn plurals_and_large_numbers_follow_the_language() {
    let check = |tag, count: u64, expect: &str| {
        let locale = locale(tag);
        let text = locale
            .t("attention-waiting")
            .num("count", count)
            .to_string();
        assert_eq!(text, expect);
    };
    check("en", 0, "Nothing waits.");
    check("en", 1, "One request waits.");
    check("en", 1_234_567, "1,234,567 requests wait.");
    check("ko", 1, "요청 1건이 대기 중입니다.");
    check("zh-CN", 1204, "1,204 个请求排队中。");
}

#[test]
fn digits_are_grouped_by_three() {
    let check = |digits: &str, expect: &str| assert_eq!(group(digits), expect);
    check("0", "0");
    check("999", "999");
    check("1000", "1,000");
    check("-12345678", "-12,345,678");
}
