//! Those who make the traffic, each at an own pace.
use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    Desk, Profile, between,
    client::{Answer, Line},
};
use crate::sim::{CHAT_MODEL, MESSAGES_MODEL};

/// Streams of one volley: more than a small account carries.
const VOLLEY: usize = 12;

/// Nobody who was told to wait waits longer.
const PATIENCE: Duration = Duration::from_secs(10);

const QUESTIONS: [&str; 4] = [
    "Name three uses for an old bicycle wheel.",
    "Why does the sea look blue on a clear day and grey on a cloudy one?",
    "Give me a short plan for a week of simple dinners.",
    "Explain to a child how a letter finds its way to another country.",
];

/// How many there are behind a key.
pub(super) const fn number_of(profile: Profile) -> u64 {
    match profile {
        Profile::Interactive => 3,
        Profile::Bursty => 1,
        Profile::Batch => 2,
        Profile::Steady(streams) => streams,
    }
}

/// One who makes traffic.
pub(super) struct Person {
    pub(super) desk: Arc<Desk>,
    /// The key's position among the keys.
    pub(super) key: usize,
    pub(super) secret: String,
    pub(super) profile: Profile,
    /// Counts those behind one key.
    pub(super) number: u64,
}

/// Takes a request back out of those in flight, however it ends.
struct UnderWay<'a>(&'a Person);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let person = self.0;
        person.desk.count(person.key, |c| c.in_flight -= 1);
    }
}

impl Person {
    /// Lives for ever, asking.
    pub(super) async fn live(self) {
        let lines = if self.profile == Profile::Bursty {
            VOLLEY
        } else {
            1
        };
        let mut lines: Vec<_> = (0..lines).map(|_| Line::new(self.desk.address)).collect();
        // Those behind one key do not start in step.
        let apart = match self.profile {
            Profile::Steady(_) => 40,
            _ => 700,
        };
        sleep(Duration::from_millis(apart * self.number)).await;
        for turn in 0_u64.. {
            let asked = lines
                .iter_mut()
                .zip(0..)
                .map(|(line, n)| self.ask(line, turn + n));
            let told = join_all(asked).await.into_iter().max().unwrap_or_default();
            let rest = match self.profile {
                Profile::Interactive => between(2_000, 5_000),
                Profile::Bursty => between(6_000, 12_000),
                Profile::Batch => between(300, 900),
                Profile::Steady(_) => between(0, 50),
            };
            sleep(rest.max(told.min(PATIENCE))).await;
        }
    }

    /// Asks once and counts what came of it; returns how long it was told to wait.
    async fn ask(&self, line: &mut Line, turn: u64) -> Duration {
        let (path, body) = self.question(turn);
        self.desk.count(self.key, |c| c.in_flight += 1);
        let under_way = UnderWay(self);
        let answer = line.ask(path, &self.secret, &body).await;
        let mut told = Duration::ZERO;
        self.desk.count(self.key, |counts| match answer {
            Ok(Answer::Complete { tokens }) => {
                counts.ok += 1;
                counts.tokens += tokens;
            }
            Ok(Answer::Refused {
                reason,
                retry_after,
            }) => {
                *counts.refused.entry(reason).or_default() += 1;
                told = retry_after;
            }
            Err(_) => counts.failed += 1,
        });
        drop(under_way);
        told
    }

    fn question(&self, turn: u64) -> (&'static str, Value) {
        let at = usize::try_from(turn).unwrap_or(0) % QUESTIONS.len();
        let text = QUESTIONS.get(at).copied().unwrap_or_default();
        let messages = json!([{"role": "user", "content": text}]);
        let words = 20 + 15 * (turn % 5);
        if self.profile == Profile::Interactive && (turn + self.number) % 2 == 1 {
            let body = json!({
                "model": MESSAGES_MODEL, "stream": true, "max_tokens": words, "messages": messages,
            });
            return ("/v1/messages", body);
        }
        let mut body =
            json!({"model": CHAT_MODEL, "max_completion_tokens": words, "messages": messages});
        if self.profile != Profile::Batch
            && let Value::Object(fields) = &mut body
        {
            fields.insert("stream".to_owned(), json!(true));
            fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        ("/v1/chat/completions", body)
    }
}
