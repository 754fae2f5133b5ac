//! What cools calms exactly what is limited; after it exactly one request finds out.
use super::*;
use crate::domain::{
    cooldown::{Stage, VERDICT_MS},
    ids::EndpointId,
};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

const LIMITED: Evidence = Evidence::Limited {
    wait_ms: Some(20_000),
    is_quota: false,
};

fn at(ms: u64) -> Moment {
    NOW.plus(ms)
}

/// A request for a stream that is sent off at `ms`.
fn send(a: &mut Admission, ms: u64) -> Result<(LeaseId, u128), Reason> {
    let asked = Demand {
        until: at(ms + 5_000),
        ..demand(STREAM)
    };
    match a.request(at(ms), &Arc::new(asked), &mut Effects::default()) {
        Decision::Granted(g) => Ok((g.lease, g.edge.credential().id.as_u128())),
        Decision::Refused(refusal) => Err(refusal.reason),
        Decision::Parked(waiter) => {
            let why = a
                .why_waiting(waiter, &mut Effects::default())
                .unwrap()
                .reason;
            a.withdraw(at(0), waiter, &mut Effects::default());
            Err(why)
        }
    }
}

/// A request that meets `evidence` at `ms`, and ends.
fn meet(a: &mut Admission, ms: u64, evidence: Evidence) -> u128 {
    let (lease, credential) = send(a, ms).unwrap();
    finish(a, ms + 1, lease, evidence);
    credential
}

fn finish(a: &mut Admission, ms: u64, lease: LeaseId, evidence: Evidence) {
    let mut effects = Effects::default();
    a.observe(at(ms), lease, evidence, &mut effects);
    a.release(at(ms), lease, Part::All, &mut effects);
}

fn pass_time(a: &mut Admission, ms: u64) -> Effects {
    let mut effects = Effects::default();
    a.handle_timeout(at(ms), &mut effects);
    effects
}

#[test]
fn a_limit_on_one_key_of_an_account_stops_all_three_and_one_shot_follows() {
    let one_account = |c: &mut Contents| {
        for credential in &mut c.credentials {
            credential.accounts = vec![AccountId::from_u128(1)];
        }
    };
    let mut a = admission(one_account, 3);
    meet(&mut a, 0, LIMITED);
    assert_eq!(send(&mut a, 2), Err(Reason::AccountCooling));
    pass_time(&mut a, 20_001);
    let (shot, _) = send(&mut a, 20_002).unwrap();
    assert_eq!(send(&mut a, 20_003), Err(Reason::AccountCooling));
    finish(&mut a, 20_010, shot, Evidence::Success);
    assert!(send(&mut a, 20_011).is_ok());
    assert!(send(&mut a, 20_012).is_ok());
}

#[test]
fn two_accounts_are_independent_and_so_are_credentials_of_scope_credential() {
    let mut a = admission(|_| (), 2);
    let limited = meet(&mut a, 0, LIMITED);
    for ms in 2..4 {
        assert_ne!(send(&mut a, ms).unwrap().1, limited);
    }
    let grouped = |c: &mut Contents| {
        c.accounts[0].quota_scope = QuotaScope::Credential;
        c.credentials[1].accounts = vec![AccountId::from_u128(1)];
    };
    let mut a = admission(grouped, 2);
    let limited = meet(&mut a, 0, LIMITED);
    assert_ne!(send(&mut a, 2).unwrap().1, limited);
}

#[test]
fn a_limit_on_a_credential_of_two_accounts_cools_both_and_takes_both_shots() {
    let both = |c: &mut Contents| {
        c.credentials[0].accounts = vec![AccountId::from_u128(1), AccountId::from_u128(2)];
        c.credentials[1].accounts = vec![AccountId::from_u128(2)];
    };
    let mut a = admission(both, 2);
    while meet(&mut a, 0, Evidence::Answered) != 1 {}
    let (lease, _) = loop {
        let sent = send(&mut a, 1).unwrap();
        if sent.1 == 1 {
            break sent;
        }
        finish(&mut a, 1, sent.0, Evidence::Answered);
    };
    finish(&mut a, 2, lease, LIMITED);
    assert_eq!(send(&mut a, 3), Err(Reason::AccountCooling));
    pass_time(&mut a, 20_002);
    send(&mut a, 20_003).unwrap();
    assert_eq!(send(&mut a, 20_004), Err(Reason::AccountCooling));
}

#[test]
fn only_the_model_cools_where_the_provider_limits_by_model() {
    let per_model = |c: &mut Contents| c.accounts[0].cooldown_per_model = true;
    let mut a = admission(per_model, 1);
    meet(&mut a, 0, LIMITED);
    assert_eq!(send(&mut a, 2), Err(Reason::AccountCooling));
    let other = Demand {
        model: Some("other".into()),
        ..demand(STREAM)
    };
    assert!(ask(&mut a, other).is_ok());
}

#[test]
fn work_that_holds_no_slot_is_no_evidence() {
    let mut a = admission(|_| (), 1);
    let counting = Demand {
        kinds: Kinds::NONE,
        ..demand(STREAM)
    };
    let (lease, _) = ask(&mut a, counting).unwrap();
    finish(&mut a, 1, lease, LIMITED);
    assert!(send(&mut a, 2).is_ok());
}

#[test]
fn a_shot_that_says_nothing_goes_to_the_next_and_a_slow_one_opens() {
    let mut a = admission(|_| (), 1);
    meet(&mut a, 0, LIMITED);
    pass_time(&mut a, 20_001);
    let (shot, _) = send(&mut a, 20_002).unwrap();
    finish(&mut a, 20_003, shot, Evidence::Answered);
    let (left, _) = send(&mut a, 20_004).unwrap();
    a.release(at(20_005), left, Part::All, &mut Effects::default());
    let (slow, _) = send(&mut a, 20_006).unwrap();
    pass_time(&mut a, 20_006 + VERDICT_MS);
    assert!(send(&mut a, 20_007 + VERDICT_MS).is_ok());
    finish(&mut a, 50_000, slow, Evidence::Success);
    assert!(send(&mut a, 50_001).is_ok());
}

#[test]
fn who_waits_for_a_cooling_account_goes_one_by_one_when_it_is_over() {
    let mut a = admission(|_| (), 1);
    meet(&mut a, 0, LIMITED);
    let asked = Arc::new(Demand {
        until: at(60_000),
        ..demand(STREAM)
    });
    for _ in 0..2 {
        let decision = a.request(at(2), &asked, &mut Effects::default());
        assert!(matches!(decision, Decision::Parked(_)));
    }
    let shot = pass_time(&mut a, 20_001).settled;
    assert_eq!((shot.len(), a.waiters()), (1, 1));
    let lease = shot[0].answer.as_ref().unwrap().lease;
    let mut effects = Effects::default();
    a.observe(at(20_005), lease, Evidence::Success, &mut effects);
    assert_eq!((effects.settled.len(), a.waiters()), (1, 0));
}

#[test]
fn nobody_waits_for_what_comes_back_too_late() {
    let mut a = admission(|_| (), 1);
    meet(&mut a, 0, LIMITED);
    let hasty = Demand {
        until: at(19_000),
        ..demand(STREAM)
    };
    let Decision::Refused(refusal) = a.request(at(2), &Arc::new(hasty), &mut Effects::default())
    else {
        panic!("parked");
    };
    assert_eq!(refusal.reason, Reason::AccountCooling);
    assert_eq!(refusal.free_at, Some(at(20_001)));
}

#[test]
fn a_used_up_quota_is_said_as_such_and_not_waited_for() {
    let mut a = admission(|_| (), 1);
    let used_up = Evidence::Limited {
        wait_ms: Some(3_000),
        is_quota: true,
    };
    meet(&mut a, 0, used_up);
    assert_eq!(send(&mut a, 2), Err(Reason::UsageLimitReached));
}

#[test]
fn clearing_wakes_who_waits_and_a_restart_does_not() {
    let mut a = admission(|_| (), 1);
    let (lease, _) = send(&mut a, 0).unwrap();
    let mut effects = Effects::default();
    a.observe(at(1), lease, LIMITED, &mut effects);
    let [
        Note::Cooled {
            subject,
            model,
            kept,
        },
    ] = &effects.notes[..]
    else {
        panic!("{:?}", effects.notes);
    };
    assert_eq!(
        (*subject, model),
        (Subject::Account(AccountId::from_u128(1)), &None)
    );
    let mut restarted = admission(|_| (), 1);
    restarted.restore(at(0), *subject, None, *kept);
    assert_eq!(send(&mut restarted, 1), Err(Reason::AccountCooling));
    let patient = Arc::new(Demand {
        until: at(60_000),
        ..demand(STREAM)
    });
    restarted.request(at(2), &patient, &mut Effects::default());
    let mut effects = Effects::default();
    assert!(restarted.clear_cooldown(at(3), *subject, &mut effects));
    assert_eq!(effects.settled.len(), 1);
    assert!(!restarted.clear_cooldown(at(3), *subject, &mut effects));
}

#[test]
fn failures_rest_the_endpoint_and_limits_never_do() {
    let two_endpoints = |c: &mut Contents| {
        c.endpoints.push(sample::endpoint(2, Protocol::OpenAi));
        c.credentials[1].endpoints = vec![EndpointId::from_u128(2)];
    };
    let mut a = admission(two_endpoints, 2);
    let mut failures = 0;
    while failures < LIMITS.breaker_threshold {
        let (lease, credential) = send(&mut a, 0).unwrap();
        let fails = credential == 1;
        failures += u32::from(fails);
        let evidence = if fails {
            Evidence::Failed
        } else {
            Evidence::Success
        };
        finish(&mut a, 1, lease, evidence);
    }
    for _ in 0..2 {
        assert_eq!(send(&mut a, 2).unwrap().1, 2);
    }
    pass_time(&mut a, 60_002);
    let (shot, credential) = send(&mut a, 60_003).unwrap();
    assert_eq!(credential, 1);
    finish(&mut a, 60_004, shot, Evidence::Success);
    assert_eq!(meet(&mut a, 60_005, Evidence::Answered), 1);
    let mut a = admission(|_| (), 1);
    let brief = Evidence::Limited {
        wait_ms: Some(0),
        is_quota: false,
    };
    for n in 0..10 {
        meet(&mut a, n * 2_000, brief);
        pass_time(&mut a, n * 2_000 + 1_002);
    }
    let standing = a.breakers();
    assert_eq!(standing[0].1, crate::domain::breaker::Breaker::default());
}

#[test]
fn an_endpoints_shot_that_comes_back_lets_in_who_waits_for_another_account() {
    let two_endpoints = |c: &mut Contents| {
        c.endpoints.push(sample::endpoint(2, Protocol::OpenAi));
        c.credentials[2].endpoints = vec![EndpointId::from_u128(2)];
    };
    let mut a = admission(two_endpoints, 3);
    let bound = |a: &mut Admission, ms, credential| {
        let asked = Demand {
            owner: Owner::Bound(CredentialId::from_u128(credential)),
            ..demand(STREAM)
        };
        match a.request(at(ms), &Arc::new(asked), &mut Effects::default()) {
            Decision::Granted(grant) => grant.lease,
            other => panic!("{other:?}"),
        }
    };
    for _ in 0..LIMITS.breaker_threshold {
        let lease = bound(&mut a, 0, 1);
        finish(&mut a, 1, lease, Evidence::Failed);
    }
    pass_time(&mut a, 60_002);
    let shot = bound(&mut a, 60_003, 1);
    for _ in 0..2 {
        bound(&mut a, 60_004, 3);
    }
    // The second account awaits the verdict, the third is full.
    let mut key = (*sample::key(2)).clone();
    key.accounts = Some([2, 3].map(AccountId::from_u128).to_vec());
    let scoped = Demand {
        key: Some(Arc::new(key)),
        until: at(600_000),
        ..demand(STREAM)
    };
    let asked = a.request(at(60_005), &Arc::new(scoped), &mut Effects::default());
    let Decision::Parked(waiter) = asked else {
        panic!("{asked:?}");
    };
    // The client of the shot leaves before there is an answer.
    let mut effects = Effects::default();
    a.release(at(60_006), shot, Part::All, &mut effects);
    let next = effects.settled.pop().unwrap();
    assert_eq!(next.waiter, waiter);
    assert_eq!(next.answer.unwrap().edge.credential().id.as_u128(), 2);
}

proptest! {
    #[test]
    fn at_most_one_shot_is_out_whatever_the_interleaving(
        steps in proptest::collection::vec((0..5u8, any::<usize>(), 1..25_000u64), 1..150)
    ) {
        let mut a = admission(|c| c.accounts[0].stream_limit = Some(0), 1);
        let account = Subject::Account(AccountId::from_u128(1));
        let (mut ms, mut out): (u64, Vec<LeaseId>) = (0, Vec::new());
        // Leases granted since the cooldown began, that have no verdict yet.
        let mut shots: Vec<LeaseId> = Vec::new();
        for (step, n, wait) in steps {
            let before = a.standing(account).unwrap().cooldown.stage();
            match step {
                0 | 1 => {
                    if let Ok((lease, _)) = send(&mut a, ms) {
                        out.push(lease);
                        if before != Stage::Open {
                            prop_assert_eq!(before, Stage::Due);
                            shots.push(lease);
                        }
                    }
                }
                2 | 3 if !out.is_empty() => {
                    let lease = out.remove(n % out.len());
                    let evidence = [LIMITED, Evidence::Success, Evidence::Answered, Evidence::Failed];
                    finish(&mut a, ms, lease, evidence[n % if step == 2 { 1 } else { 4 }]);
                    shots.retain(|s| *s != lease);
                }
                _ => {
                    ms += wait;
                    pass_time(&mut a, ms);
                    pass_time(&mut a, ms);
                }
            }
            match a.standing(account).unwrap().cooldown.stage() {
                Stage::Probing(_) => prop_assert!(!shots.is_empty()),
                // A later verdict, or time, has made the earlier shots ordinary requests.
                Stage::Open | Stage::Cooling(_) | Stage::Due => shots.clear(),
            }
            prop_assert!(shots.len() <= 1, "two shots are out");
        }
    }
}

mod editing;
