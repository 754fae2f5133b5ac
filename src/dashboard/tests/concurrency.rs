//! Putting slots right by hand: the question, what it does, and who may not.
use super::*;
use crate::{
    document::read_json,
    domain::{
        admission::{Demand, Kinds, Owner},
        ids::RequestId,
        moment::Moment,
        pool::document::Mode,
        protocol::Protocol,
    },
    engine::{
        admission::{Denied, Lease},
        live::{Live, Stage},
    },
    store::audit::Written,
};
use futures_util::poll;
use std::{future::Future, pin::pin, time::Duration};

const RESET: &str = "/concurrency/reset";

/// An account of two ordinary slots, and a session.
async fn pool() -> Bench {
    let bench = bench().await;
    bench.set_up().await;
    let document = r#"{
        "endpoints": [{"name": "e", "preset": "openai"}],
        "accounts": [{"name": "team", "stream_limit": 3, "create_limit": 0}],
        "credentials": [{"name": "c", "secret": "sk-upstream-secret-0001", "accounts": ["team"], "endpoints": ["e"]}],
        "keys": [{"name": "ci", "secret": "fl-a-key-of-these-tests-1"}]
    }"#;
    let document = read_json(document.as_bytes()).unwrap();
    let store = bench.state.store();
    store.import(document, Mode::Merge).await.unwrap();
    bench.state.reload().now().await.unwrap();
    bench
}

impl Bench {
    fn admit(&self, holder: u128) -> impl Future<Output = Result<Lease, Denied>> {
        let configuration = self.state.reload().configuration();
        let admission = configuration.admission().clone();
        let demand = Arc::new(Demand {
            holder: RequestId::from_u128(holder),
            key: configuration.pool().keys().first().cloned(),
            protocol: Protocol::OpenAi,
            model: Some("m".into()),
            kinds: Kinds::STREAM,
            reattach: false,
            owner: Owner::Nobody,
            preferred: None,
            tried: Vec::new(),
            until: Moment::from_millis(u64::MAX),
            is_moving: false,
        });
        let patience = Duration::from_mins(1);
        async move { admission.admit(&demand, patience, || ()).await }
    }

    /// What the audit log says of slots, the newest first: who did what to what, and what else.
    async fn written(&self) -> Vec<[String; 4]> {
        let lines = self.state.store().audit_lines(None, 50).await.unwrap();
        let is_of_slots =
            |line: &Written| ["reset_semaphores", "release_lease"].contains(&&*line.action);
        let lines = lines.into_iter().filter(is_of_slots);
        lines
            .map(|l| [l.actor, l.action, l.subject, l.detail])
            .collect()
    }

    /// The first request, as it is shown while it is in flight.
    fn in_flight(&self) -> Live {
        let desk = self.state.live().desk();
        let live = desk.enter(RequestId::from_u128(1), false);
        live.reach(Stage::Admitted);
        live
    }

    fn leases(&self) -> usize {
        self.state.reload().configuration().admission().counts().0
    }

    /// Where the page leads that releases the lease of a request that is in flight.
    async fn release(&self) -> String {
        let page = self.get("/concurrency").await;
        let start = "href=\"/concurrency/release?lease=";
        let (_, rest) = page.text.split_once(start).unwrap();
        let lease = rest.split('"').next().unwrap();
        format!("/concurrency/release?lease={lease}")
    }
}

/// What the page's form sends if its button is pressed.
fn form(page: &Answer, action: &str) -> String {
    let start = format!("<form method=\"post\" action=\"{action}\"");
    let (_, rest) = page.text.split_once(&start).unwrap();
    let form = rest.split("</form>").next().unwrap();
    assert!(form.contains("<button type=\"submit\""), "{form}");
    let fields = form.split("<input type=\"hidden\" name=\"").skip(1);
    let pairs = fields.map(|field| {
        let (name, rest) = field.split_once("\" value=\"").unwrap();
        format!("{name}={}", rest.split('"').next().unwrap())
    });
    pairs.collect::<Vec<_>>().join("&")
}

#[tokio::test]
async fn counting_anew_says_what_it_looks_at_and_is_written_down() {
    let bench = pool().await;
    let _held = [bench.admit(1).await.unwrap(), bench.admit(2).await.unwrap()];
    let mut waits = pin!(bench.admit(3));
    assert!(poll!(&mut waits).is_pending());
    bench
        .get("/concurrency")
        .await
        .says(&format!("href=\"{RESET}\""));
    let page = bench.get(RESET).await;
    for words in [
        "Count every slot anew?",
        "The slots in use are counted anew from the 2 leases that are held.",
        "The one request that waits is looked at again.",
        "Nothing that runs is cut off",
    ] {
        page.says(words);
    }
    assert_eq!(bench.written().await.len(), 0);
    let done = bench.post(RESET, &form(&page, RESET)).await;
    let after = "/concurrency?done=reset&slots=0&granted=0";
    assert_eq!(done.location(), after);
    let page = bench.get(after).await;
    page.says("Counted anew. Slots that were wrong: 0. Requests let in: 0.");
    let expect = [
        "dashboard",
        "reset_semaphores",
        "admission",
        "2 leases, 1 waiting",
    ];
    assert_eq!(bench.written().await, [expect]);
    assert_eq!(bench.leases(), 2);
}

#[tokio::test]
async fn a_lease_is_released_by_a_plain_form_and_the_next_in_turn_goes() {
    let bench = pool().await;
    let _live = bench.in_flight();
    let _held = [bench.admit(1).await.unwrap(), bench.admit(2).await.unwrap()];
    let mut waits = pin!(bench.admit(3));
    assert!(poll!(&mut waits).is_pending());
    let path = bench.release().await;
    let lease = path.split('=').next_back().unwrap();
    let page = bench.get(&path).await;
    for words in [
        &*format!("Release the slots of {lease}?"),
        "It gives back on team: streams 1, starts 0, jobs 0.",
        "by ci.",
        "Its request runs on.",
        "One request waits and may go.",
    ] {
        page.says(words);
    }
    assert_eq!((bench.written().await.len(), bench.leases()), (0, 2));
    let sent = form(&page, "/concurrency/release");
    let done = bench.post("/concurrency/release", &sent).await;
    assert_eq!(done.location(), "/concurrency?done=released");
    let _third = waits.await.unwrap();
    let page = bench.get(done.location()).await;
    page.says("The slots of that lease are free.");
    let holder = RequestId::from_u128(1).to_string();
    let expect = ["dashboard", "release_lease", lease, &*holder];
    assert_eq!(bench.written().await, [expect]);
    // The form that is sent twice meets nobody else.
    gone(&bench, &path, &sent).await;
    assert_eq!((bench.written().await.len(), bench.leases()), (1, 2));
}

/// Neither the question nor its answer finds that lease, and both say so.
async fn gone(bench: &Bench, path: &str, sent: &str) {
    for answer in [
        bench.get(path).await,
        bench.post("/concurrency/release", sent).await,
    ] {
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        answer.says("<h1>These slots are free already</h1>");
        answer.says("has ended meanwhile");
        answer.says("<a href=\"/concurrency\">To the concurrency page</a>");
    }
}

#[tokio::test]
async fn a_lease_that_is_gone_is_told_plainly_and_nothing_is_written() {
    let bench = pool().await;
    let _live = bench.in_flight();
    let held = bench.admit(1).await.unwrap();
    let path = bench.release().await;
    let sent = form(&bench.get(&path).await, "/concurrency/release");
    // Whoever holds it now is not who was asked about.
    let of_another = sent.replace(
        &RequestId::from_u128(1).to_string(),
        &RequestId::from_u128(2).to_string(),
    );
    assert_ne!(of_another, sent);
    let answer = bench.post("/concurrency/release", &of_another).await;
    answer.says("These slots are free already");
    assert_eq!(bench.leases(), 1);
    drop(held);
    gone(&bench, &path, &sent).await;
    let headers = [("hx-request", "true")];
    let piece = bench
        .send(Method::POST, "/concurrency/release", &sent, &headers)
        .await;
    assert_eq!(piece.header("hx-retarget"), "#problems");
    piece.says("These slots are free already");
    // What is no lease at all is an address that leads nowhere.
    for path in ["/concurrency/release", "/concurrency/release?lease=7"] {
        let page = bench.get(path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND);
        page.says("There is no such page");
    }
    assert_eq!(bench.written().await.len(), 0);
}

#[tokio::test]
async fn slots_are_put_right_by_nobody_else() {
    let bench = pool().await;
    let _live = bench.in_flight();
    let _held = bench.admit(1).await.unwrap();
    let path = bench.release().await;
    let sent = form(&bench.get(&path).await, "/concurrency/release");
    let forms = [(RESET, ""), ("/concurrency/release", &*sent)];
    // A page of another site has no part in it, whatever the browser lends it.
    let foreign = [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ];
    for (path, form) in forms {
        let answer = bench.send(Method::POST, path, form, &foreign).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
        answer.says("This was refused");
    }
    *bench.cookie.lock().unwrap() = String::new();
    for page in [RESET, &*path] {
        let next = page.replace('?', "%3F").replace('=', "%3D");
        let login = format!("/login?next={next}");
        assert_eq!(bench.get(page).await.location(), login);
    }
    for (path, form) in forms {
        assert_eq!(bench.post(path, form).await.location(), "/login");
    }
    assert_eq!((bench.written().await.len(), bench.leases()), (0, 1));
}
