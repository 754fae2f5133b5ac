//! Which edges exist, which models they serve, and what upstream is asked for.
use super::{sample::contents, *};
use crate::domain::pool::ModelRow;

fn rows(names: &[(&str, Option<&str>)]) -> Arc<[ModelRow]> {
    let row = |(model, upstream): &(&str, Option<&str>)| ModelRow {
        model: (*model).into(),
        upstream_model: upstream.map(Into::into),
    };
    names.iter().map(row).collect()
}

fn serving(pool: &Pool, model: &str) -> Vec<usize> {
    pool.candidates(Protocol::OpenAi, Some(model))
        .map(|e| pool.edge(e).credential)
        .collect()
}

#[test]
fn without_a_catalog_every_model_is_served() {
    let pool = Pool::new(contents(2));
    assert_eq!(serving(&pool, "anything/at:all"), [0, 1]);
    assert_eq!(pool.candidates(Protocol::Gemini, Some("m")).count(), 0);
}

#[test]
fn catalogs_of_endpoint_and_credential_narrow_together() {
    let mut c = contents(3);
    c.endpoints[0].models = Some(rows(&[("a", None), ("b", Some("b-2"))]));
    c.credentials[1].models = Some(rows(&[("fast", Some("b")), ("gone", Some("x"))]));
    c.credentials[2].models = Some(rows(&[("a", None)]));
    let pool = Pool::new(c);
    assert_eq!(serving(&pool, "a"), [0, 2]);
    assert_eq!(serving(&pool, "b"), [0]);
    assert_eq!(serving(&pool, "fast"), [1]);
    assert_eq!(serving(&pool, "gone"), [] as [usize; 0]);
    let names: Vec<_> = pool.catalog(Protocol::OpenAi);
    let names: Vec<&str> = names.iter().map(|(m, _)| &***m).collect();
    assert_eq!(names, ["a", "b", "fast"]);
    let renamed = |edge: usize, model| pool.upstream_model(&pool.edges()[edge], model).to_owned();
    assert_eq!(renamed(0, "b"), "b-2");
    assert_eq!(renamed(1, "fast"), "b-2");
    assert_eq!(renamed(2, "a"), "a");
}

#[test]
fn a_credential_without_its_account_has_no_edge() {
    let mut c = contents(2);
    c.accounts.remove(0);
    let pool = Pool::new(c);
    assert_eq!(serving(&pool, "m"), [1]);
}

#[test]
fn scope_covers_every_account_that_is_charged() {
    let mut c = contents(2);
    c.credentials[0].accounts = vec![AccountId::from_u128(1), AccountId::from_u128(2)];
    let pool = Pool::new(c);
    let both = &pool.edges()[0];
    let one = [AccountId::from_u128(1)];
    assert!(!pool.is_in_scope(both, Some(&one)));
    assert!(pool.is_in_scope(both, None));
}
