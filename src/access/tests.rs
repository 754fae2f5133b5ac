//! Passwords, sessions and the set-up, on a database of their own.
use super::*;
use crate::domain::settings::{Layer, Value};
use std::net::IpAddr;

const PASSWORD: &str = "correct horse battery";

struct Bench {
    access: Access,
    store: Store,
    reload: Reload,
    _dir: tempfile::TempDir,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("f.db")).unwrap();
    let reload = Reload::first(&store, Layer::default()).unwrap();
    let proxies = TrustedProxies::default();
    Bench {
        access: Access::new(store.clone(), reload.clone(), proxies, None),
        store,
        reload,
        _dir: dir,
    }
}

fn sender(address: &str, is_local: bool) -> Sender {
    Sender {
        address: address.parse::<IpAddr>().unwrap(),
        is_tls: false,
        is_local,
    }
}

fn with_cookie(secret: &str) -> HeaderMap {
    let value = format!("other=1; {COOKIE}={secret}");
    HeaderMap::from_iter([(header::COOKIE, value.parse().unwrap())])
}

impl Bench {
    async fn set_up(&self) -> String {
        let local = sender("127.0.0.1", true);
        match self
            .access
            .set_up(&local, "", PASSWORD, "tests")
            .await
            .unwrap()
        {
            SetUp::Done(secret) => secret,
            other => panic!("{other:?}"),
        }
    }

    async fn is_open(&self, secret: &str) -> bool {
        let session = self.access.session(&with_cookie(secret)).await.unwrap();
        session.is_some()
    }
}

#[tokio::test]
async fn at_the_machine_the_first_password_needs_no_token_and_is_set_once() {
    let bench = bench();
    let secret = bench.set_up().await;
    assert!(bench.is_open(&secret).await);
    assert!(!bench.is_open("something else").await);
    let local = sender("127.0.0.1", true);
    let again = bench
        .access
        .set_up(&local, "", "another password", "")
        .await;
    assert!(matches!(again.unwrap(), SetUp::Already));
}

#[tokio::test]
async fn elsewhere_the_first_password_needs_the_printed_token() {
    let bench = bench();
    let token = bench.access.offer_set_up().await.unwrap().unwrap();
    let far = sender("192.0.2.1", false);
    for wrong in ["", "setup-guess"] {
        let tried = bench
            .access
            .set_up(&far, wrong, PASSWORD, "")
            .await
            .unwrap();
        assert!(matches!(tried, SetUp::WrongToken), "{wrong}");
    }
    // What is wrong with the password does not use the token up.
    let short = bench
        .access
        .set_up(&far, &token, "short", "")
        .await
        .unwrap();
    assert!(matches!(short, SetUp::Refused(PasswordError::TooShort)));
    let done = bench
        .access
        .set_up(&far, &token, PASSWORD, "")
        .await
        .unwrap();
    assert!(matches!(done, SetUp::Done(_)));
    assert!(bench.access.offer_set_up().await.unwrap().is_none());
}

#[tokio::test]
async fn a_login_opens_a_session_and_a_wrong_password_does_not() {
    let bench = bench();
    let far = sender("192.0.2.1", false);
    let early = bench.access.log_in(&far, PASSWORD, "").await.unwrap();
    assert!(matches!(early, Login::NotSetUp));
    bench.set_up().await;
    let wrong = bench
        .access
        .log_in(&far, "correct horse", "")
        .await
        .unwrap();
    assert!(matches!(wrong, Login::Wrong));
    match bench
        .access
        .log_in(&far, PASSWORD, "Browser")
        .await
        .unwrap()
    {
        Login::Opened(secret) => assert!(bench.is_open(&secret).await),
        other => panic!("{other:?}"),
    }
    let sessions = bench.store.sessions().await.unwrap();
    let seen: Vec<_> = sessions
        .iter()
        .map(|s| (&*s.address, &*s.user_agent))
        .collect();
    assert_eq!(seen, [("192.0.2.1", "Browser"), ("127.0.0.1", "tests")]);
}

#[tokio::test]
async fn many_failures_make_an_address_wait() {
    let bench = bench();
    bench.set_up().await;
    let far = sender("192.0.2.1", false);
    for _ in 0..5 {
        let tried = bench.access.log_in(&far, "wrong", "").await.unwrap();
        assert!(matches!(tried, Login::Wrong));
    }
    let tried = bench.access.log_in(&far, PASSWORD, "").await.unwrap();
    assert!(matches!(tried, Login::TooMany(_)), "{tried:?}");
}

#[tokio::test]
async fn sessions_end_by_hand_with_their_time_and_with_the_password() {
    let bench = bench();
    let first = bench.set_up().await;
    let session = bench
        .access
        .session(&with_cookie(&first))
        .await
        .unwrap()
        .unwrap();
    bench.access.log_out(session.id).await.unwrap();
    assert!(!bench.is_open(&first).await);

    let local = sender("127.0.0.1", true);
    let Login::Opened(second) = bench.access.log_in(&local, PASSWORD, "").await.unwrap() else {
        panic!("not opened");
    };
    let hash = hash_blocking("a new password").unwrap();
    bench.store.set_password_hash(hash).await.unwrap();
    assert!(!bench.is_open(&second).await);

    let old = Session {
        created_at: clock::unix_millis() - 2 * 3_600_000,
        expires_at: i64::MAX,
        ..session
    };
    bench.store.add_session(old).await.unwrap();
    assert!(bench.is_open(&first).await);
    let shorter = vec![(Name::SessionTtlHours, Some(Value::Integer(1)))];
    bench.store.change_settings(0, shorter).await.unwrap();
    bench.reload.now().await.unwrap();
    assert!(!bench.is_open(&first).await);
}

#[test]
fn the_cookie_is_secure_where_the_request_was() {
    let mut sender = sender("192.0.2.1", false);
    let text = |sender: &Sender| {
        let value = set_cookie(sender, "v", 60).unwrap();
        value.to_str().unwrap().to_owned()
    };
    let plain = "fairlane_session=v; HttpOnly; SameSite=Lax; Path=/; Max-Age=60";
    assert_eq!(text(&sender), plain);
    sender.is_tls = true;
    assert_eq!(text(&sender), format!("{plain}; Secure"));
}

#[test]
fn only_the_database_can_tell_what_a_hash_was_made_of() {
    let hash = hash_blocking(PASSWORD).unwrap();
    assert!(hash.starts_with("$argon2id$"), "{hash}");
    assert!(!hash.contains("horse"));
    assert_ne!(hash, hash_blocking(PASSWORD).unwrap(), "salted");
}
