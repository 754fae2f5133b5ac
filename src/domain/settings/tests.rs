//! What the table promises, and how the layers lie over one another.
use super::*;

#[test]
fn every_name_is_its_own_position() {
    for (n, row) in TABLE.iter().enumerate() {
        assert_eq!(row.name as usize, n, "{}", row.key);
        assert_eq!(Name::from_key(row.key), Some(row.name));
        assert!(row.accept(row.default_value()).is_ok(), "{}", row.key);
    }
}

#[test]
fn clearing_an_override_reveals_the_environment() {
    let name = Name::AccountStreamLimit;
    let mut env = Layer::default();
    env.put(name, Some(Value::Integer(12)));
    let mut stored = Layer::default();
    stored.put(name, Some(Value::Integer(2)));
    let both = Settings::resolve(&env, &stored);
    assert_eq!(both.integer(name), 2);
    assert_eq!(both.setting(name).source, Source::Override);
    assert_eq!(both.setting(name).inherited, Value::Integer(12));
    stored.put(name, None);
    let cleared = Settings::resolve(&env, &stored);
    assert_eq!(cleared.integer(name), 12);
    assert_eq!(cleared.setting(name).source, Source::Environment);
}

#[test]
fn zero_and_false_are_values() {
    let mut stored = Layer::default();
    stored.put(Name::AccountStreamLimit, Some(Value::Integer(0)));
    stored.put(Name::RequireClientKey, Some(Value::Switch(false)));
    let settings = Settings::resolve(&Layer::default(), &stored);
    assert_eq!(settings.integer(Name::AccountStreamLimit), 0);
    assert!(!settings.is_on(Name::RequireClientKey));
    let setting = settings.setting(Name::RequireClientKey);
    assert_eq!(setting.source, Source::Override);
}

#[test]
fn refusals_name_what_is_accepted() {
    let check = |name: Name, text: &str, expect: Option<&str>| {
        let got = name.declaration().parse(text).map_err(|e| e.to_string());
        assert_eq!(got.err().as_deref(), expect);
    };
    check(Name::AccountStreamLimit, " 12 ", None);
    check(
        Name::AccountStreamLimit,
        "1e3",
        Some("\"1e3\" is not accepted; accepted: a whole number from 0 to 100000"),
    );
    check(
        Name::AccountStreamLimit,
        "-1",
        Some("\"-1\" is not accepted; accepted: a whole number from 0 to 100000"),
    );
    check(Name::StageTrace, "On", None);
    check(
        Name::StageTrace,
        "maybe",
        Some("\"maybe\" is not accepted; accepted: true or false (also on, off, 1, 0)"),
    );
    check(
        Name::CorsAllowedOrigins,
        "https://a.example, http://b:81",
        None,
    );
    check(
        Name::CorsAllowedOrigins,
        "a.example/x",
        Some(
            "\"a.example/x\" is not accepted; accepted: * or origins such as https://chat.example.com, separated by commas",
        ),
    );
}
