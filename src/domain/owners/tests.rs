//! The rules about owners, and the bounds of what is remembered.
use super::{affinity::*, *};
use proptest::{collection::vec, prelude::*};
use std::collections::HashSet;

fn owner(credential: u128, endpoint: u128) -> Owner {
    Owner {
        credential: CredentialId::from_u128(credential),
        endpoint: Some(EndpointId::from_u128(endpoint)),
    }
}

fn check(named: &[(Role, Sighting)], expect: Binding) {
    assert_eq!(resolve(named.iter().copied()), expect, "{named:?}");
    let backwards = resolve(named.iter().rev().copied());
    assert_eq!(backwards, expect, "{named:?} backwards");
}

use Role::{Continued, Doubtful, Needed};
use Sighting::{Foreign, Never, Own};

#[test]
fn a_request_goes_to_the_owner_of_what_it_names() {
    check(&[], Binding::None);
    check(&[(Needed, Own(owner(1, 1)))], Binding::Bound(owner(1, 1)));
    let twice = [
        (Continued, Own(owner(1, 1))),
        (Needed, Own(owner(1, 1))),
        (Needed, Never),
    ];
    check(&twice, Binding::Bound(owner(1, 1)));
    let apart = [(Needed, Own(owner(1, 1))), (Needed, Own(owner(1, 2)))];
    let anywhere = Owner {
        endpoint: None,
        ..owner(1, 1)
    };
    check(&apart, Binding::Bound(anywhere));
}

#[test]
fn two_owners_that_disagree_are_a_conflict() {
    let named = [
        (Needed, Own(owner(1, 1))),
        (Needed, Own(owner(2, 1))),
        (Needed, Own(owner(1, 1))),
        (Continued, Never),
    ];
    check(&named, Binding::Conflict);
}

#[test]
fn what_was_never_seen_is_told_from_what_another_key_made() {
    let unknown = |is_continued| Binding::Unknown { is_continued };
    let foreign = |is_continued| Binding::Foreign { is_continued };
    check(&[(Needed, Never)], unknown(false));
    check(&[(Continued, Never), (Needed, Never)], unknown(true));
    check(&[(Needed, Foreign)], foreign(false));
    check(&[(Continued, Foreign), (Needed, Foreign)], foreign(true));
    check(&[(Continued, Never), (Needed, Foreign)], foreign(false));
    check(
        &[(Needed, Own(owner(1, 1))), (Doubtful, Foreign)],
        foreign(false),
    );
}

#[test]
fn what_may_be_no_object_counts_only_where_it_is_one() {
    check(&[(Doubtful, Never)], Binding::None);
    check(&[(Doubtful, Own(owner(1, 1)))], Binding::Bound(owner(1, 1)));
    check(
        &[(Doubtful, Foreign)],
        Binding::Foreign {
            is_continued: false,
        },
    );
}

#[test]
fn a_row_is_its_makers_alone() {
    let key = |n| Some(KeyId::from_u128(n));
    let made_by = |key| OwnerRow {
        object: Object::new(ObjectKind::File, "file-1"),
        owner: owner(1, 1),
        key,
        made_at: 0,
    };
    let check = |maker, caller, expect| {
        assert_eq!(Sighting::of(Some(&made_by(maker)), caller), expect);
    };
    check(key(1), key(1), Own(owner(1, 1)));
    check(key(1), key(2), Foreign);
    check(key(1), None, Foreign);
    check(None, key(1), Foreign);
    check(None, None, Own(owner(1, 1)));
    assert_eq!(Sighting::of(None, key(1)), Never);
}

#[test]
fn names_of_kinds_read_back() {
    for kind in ObjectKind::ALL {
        assert_eq!(ObjectKind::from_name(kind.name()), Some(*kind));
    }
}

fn sighting() -> impl Strategy<Value = Sighting> {
    prop_oneof![
        Just(Foreign),
        Just(Never),
        (1u128..3, 1u128..3).prop_map(|(c, e)| Own(owner(c, e))),
    ]
}

proptest! {
    #[test]
    fn a_binding_is_never_more_than_the_sightings_say(
        named in vec((prop_oneof![Just(Needed), Just(Continued), Just(Doubtful)], sighting()), 0..6),
    ) {
        let owners: HashSet<CredentialId> = named.iter().filter_map(|(_, s)| match s {
            Own(owner) => Some(owner.credential),
            Foreign | Never => None,
        }).collect();
        let is_foreign = named.iter().any(|(_, s)| *s == Foreign);
        match resolve(named.iter().copied()) {
            Binding::Foreign { .. } => prop_assert!(is_foreign),
            Binding::Conflict => prop_assert!(!is_foreign && owners.len() > 1),
            Binding::Bound(owner) => {
                prop_assert!(!is_foreign);
                prop_assert_eq!(owners, HashSet::from([owner.credential]));
            }
            Binding::Unknown { .. } | Binding::None => {
                prop_assert!(!is_foreign && owners.is_empty());
            }
        }
    }

    #[test]
    fn the_recent_half_stays_and_the_rest_is_bounded(
        keys in vec(0u32..40, 1..300), capacity in 2usize..20,
    ) {
        let mut recent = Recent::new(capacity);
        for (at, key) in keys.iter().enumerate() {
            if recent.use_of(key).is_none() {
                recent.put(*key, *key);
            }
            prop_assert!(recent.count() <= capacity);
            let mut latest: Vec<u32> = Vec::new();
            for key in keys[..=at].iter().rev() {
                if !latest.contains(key) && latest.len() < capacity / 2 {
                    latest.push(*key);
                }
            }
            for key in latest.iter().rev() {
                prop_assert_eq!(recent.use_of(key).copied(), Some(*key));
            }
        }
    }
}

fn at(now_ms: u64) -> Moment {
    Moment {
        now_ms,
        ttl_ms: 100,
    }
}

fn named(value: &str) -> AffinityKey {
    AffinityKey::new(None, AffinitySource::SessionId, value.as_bytes())
}

fn edge(n: u128) -> Preferred {
    Preferred {
        credential: CredentialId::from_u128(n),
        endpoint: EndpointId::from_u128(n),
    }
}

#[test]
fn a_preference_lasts_as_long_as_it_is_used() {
    let mut affinities = Affinities::new(10);
    affinities.prefer(named("a"), edge(1), at(1000));
    for n in 1..9 {
        let found = affinities.preferred(named("a"), at(1000 + n * 99));
        assert_eq!(found, Some(edge(1)), "after {n}");
    }
    assert_eq!(affinities.preferred(named("a"), at(1892)), None);
    affinities.prefer(named("a"), edge(2), at(1900));
    affinities.prefer(named("a"), edge(3), at(1901));
    assert_eq!(affinities.preferred(named("a"), at(1902)), Some(edge(3)));
}

#[test]
fn without_a_lifetime_there_are_no_preferences() {
    let mut affinities = Affinities::new(10);
    let off = Moment {
        now_ms: 5,
        ttl_ms: 0,
    };
    affinities.prefer(named("a"), edge(1), off);
    assert_eq!(affinities.preferred(named("a"), off), None);
}

#[test]
fn preferences_are_bounded_and_go_with_time() {
    let mut affinities = Affinities::new(100);
    for n in 0..1000u32 {
        affinities.prefer(named(&n.to_string()), edge(1), at(1));
        assert!(affinities.count() <= 100);
    }
    assert_eq!(affinities.preferred(named("0"), at(2)), None);
    assert_eq!(affinities.preferred(named("999"), at(2)), Some(edge(1)));
    for now in [500, 1000, 1500] {
        affinities.preferred(named("other"), at(now));
    }
    assert_eq!(affinities.count(), 0);
}

#[test]
fn conversations_are_apart_by_key_source_and_name() {
    let key = |n| Some(KeyId::from_u128(n));
    let mut keys = HashSet::new();
    for caller in [None, key(1), key(2)] {
        for (source, _) in AffinitySource::HEADERS {
            for value in ["a", "b"] {
                keys.insert(AffinityKey::new(caller, source, value.as_bytes()));
            }
        }
    }
    assert_eq!(keys.len(), 3 * 5 * 2);
    assert_eq!(named("a"), named("a"));
}
