//! Rotating and revoking a key, each behind a page that says beforehand what it does.
use super::{
    Done, answer, find,
    made::{self, Made},
    path_of, requests_of,
};
use crate::{
    clock,
    dashboard::{
        State,
        error::Trouble,
        form::{Faults, Form},
        session::{Operator, go},
        shell::{Shell, render},
        snippets::Reached,
        wants::Wants,
    },
    document::single::{Refusal, Which, plan_one},
    domain::{
        pool::{ClientKey, document::Mistake},
        secret::Secret,
        settings::Name,
    },
    entropy,
    store::ledger::KeyUse,
};
use askama::Template;
use axum::{
    extract::{self, Path},
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, json};
use std::sync::Arc;

/// How far back the use of a key is looked at.
const LOOKED_BACK_MS: i64 = 24 * 60 * 60 * 1000;

/// What a confirmation sends along.
#[derive(Default, Deserialize)]
pub(super) struct Confirmed {
    /// The end of the secret that is to be replaced: a form that is sent again finds another one
    /// and replaces nothing.
    #[serde(default)]
    hint: String,
    /// The key's name, typed where much hangs on it.
    #[serde(default)]
    name: String,
}

/// What hangs on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Traffic {
    in_flight: usize,
    /// `None` where no requests are kept, so that nothing can be known.
    used: Option<KeyUse>,
}

impl Traffic {
    /// The log is read on every question anew, so that the answer is judged by what is true then.
    async fn of(state: &State, key: &ClientKey) -> Result<Self, Trouble> {
        let settings = state.reload().configuration().settings();
        let is_kept = settings.integer(Name::RequestLogRetentionDays) > 0;
        let used = if is_kept {
            let since_ms = clock::unix_millis().saturating_sub(LOOKED_BACK_MS);
            Some(state.store().use_of_key(key.id, since_ms).await?)
        } else {
            None
        };
        let in_flight = state.live().count_of(key.id);
        Ok(Self { in_flight, used })
    }

    /// Whether somebody may depend on the key today: then its name is to be typed.
    fn is_wide(&self) -> bool {
        self.in_flight > 0 || self.used.is_none_or(|used| used.count > 0)
    }

    fn in_flight_word(&self, shell: &Shell) -> String {
        let word = shell.t("keys-in-flight").num("count", self.in_flight);
        word.to_string()
    }

    fn used_word(&self, shell: &Shell) -> String {
        match self.used {
            None => shell.t("keys-use-unknown"),
            Some(KeyUse {
                count,
                last_at: Some(at),
            }) => shell
                .t("keys-used")
                .num("count", count)
                .text("last", shell.date_time(at)),
            Some(_) => shell.t("keys-not-used"),
        }
        .to_string()
    }
}

#[derive(Template)]
#[template(path = "keys/rotate.html")]
struct RotatePage {
    shell: Shell,
    /// Where the answer goes, and where it comes back to.
    answer_to: String,
    path: String,
    subject: Arc<str>,
    hint: Arc<str>,
    in_flight: String,
    used: String,
    faults: Faults,
}

impl RotatePage {
    fn new(shell: Shell, key: &ClientKey, traffic: Traffic) -> Self {
        Self {
            answer_to: format!("{}/rotate", path_of(key.id)),
            path: path_of(key.id),
            subject: Arc::clone(&key.name),
            hint: Arc::clone(&key.secret_hint),
            in_flight: traffic.in_flight_word(&shell),
            used: traffic.used_word(&shell),
            faults: Faults::default(),
            shell,
        }
    }
}

/// `GET /keys/{id}/rotate`.
pub(super) async fn ask_rotate(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path(id): Path<String>,
) -> Response {
    let page = rotate_page(&state, &shell, &id).await;
    answer(page.map(|page| render(&page)), &shell, wants)
}

async fn rotate_page(state: &State, shell: &Shell, id: &str) -> Result<RotatePage, Trouble> {
    let (_, key) = find(state, id).await?;
    let traffic = Traffic::of(state, &key).await?;
    Ok(RotatePage::new(shell.clone(), &key, traffic))
}

/// `POST /keys/{id}/rotate`: the one answer that shows the new secret.
pub(super) async fn rotate(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    (Path(id), Reached(base_url)): (Path<String>, Reached),
    Form(confirmed): Form<Confirmed>,
) -> Response {
    match rotated(&state, &shell, &id, confirmed.hint).await {
        Ok(Ok(made)) => made::show(&state, shell, made, base_url).await,
        Ok(Err(page)) => (StatusCode::UNPROCESSABLE_ENTITY, render(&*page)).into_response(),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

/// The question again, if the secret is not the one that was to be replaced.
async fn rotated(
    state: &State,
    shell: &Shell,
    id: &str,
    hint: String,
) -> Result<Result<Made, Box<RotatePage>>, Trouble> {
    let (_, key) = find(state, id).await?;
    let text = entropy::secret(entropy::CLIENT_KEY);
    let secret = Secret::clean(&text).map_err(|e| Trouble::Internal(e.to_string()))?;
    let said = Map::from_iter([("secret".to_owned(), json!(text))]);
    let key_id = key.id;
    let planned = state.store().change_pool(move |existing, tools| {
        let stored = existing.keys.iter().find(|key| key.id == key_id);
        if stored.is_some_and(|key| *key.secret_hint != *hint) {
            return Err(Refusal::Mistakes(vec![Mistake::new("hint", "is another")]));
        }
        plan_one::<ClientKey>(existing, tools, Which::Stored(key_id), said)
    });
    match planned.await? {
        Ok(_) => {
            state.reload().now().await?;
            Ok(Ok(Made {
                id: key.id,
                name: Arc::clone(&key.name),
                secret: secret.0,
                models: key.models.clone(),
                is_new_secret: true,
            }))
        }
        Err(Refusal::Missing) => Err(Trouble::NotFound),
        Err(_) => {
            let mut page = rotate_page(state, shell, id).await?;
            let fault = shell.t("keys-rotated-already").text("hint", &page.hint);
            page.faults.add("confirm", fault);
            Ok(Err(Box::new(page)))
        }
    }
}

#[derive(Template)]
#[template(path = "keys/revoke.html")]
struct RevokePage {
    shell: Shell,
    /// Where the answer goes, and where it comes back to.
    answer_to: String,
    path: String,
    requests: String,
    subject: Arc<str>,
    in_flight: String,
    used: String,
    asks_name: bool,
    typed: String,
    faults: Faults,
}

impl RevokePage {
    fn new(shell: Shell, key: &ClientKey, traffic: Traffic) -> Self {
        Self {
            answer_to: format!("{}/revoke", path_of(key.id)),
            path: path_of(key.id),
            requests: requests_of(key.id),
            subject: Arc::clone(&key.name),
            in_flight: traffic.in_flight_word(&shell),
            used: traffic.used_word(&shell),
            asks_name: traffic.is_wide(),
            typed: String::new(),
            faults: Faults::default(),
            shell,
        }
    }
}

/// `GET /keys/{id}/revoke`.
pub(super) async fn ask_revoke(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path(id): Path<String>,
) -> Response {
    let page = revoke_page(&state, &shell, &id).await;
    answer(page.map(|(page, _)| render(&page)), &shell, wants)
}

async fn revoke_page(
    state: &State,
    shell: &Shell,
    id: &str,
) -> Result<(RevokePage, Arc<ClientKey>), Trouble> {
    let (_, key) = find(state, id).await?;
    let traffic = Traffic::of(state, &key).await?;
    Ok((RevokePage::new(shell.clone(), &key, traffic), key))
}

/// `POST /keys/{id}/revoke`.
pub(super) async fn revoke(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path(id): Path<String>,
    Form(confirmed): Form<Confirmed>,
) -> Response {
    match revoked(&state, &shell, &id, confirmed.name).await {
        Ok(None) => go(Done::Revoked.address().to_owned(), wants),
        Ok(Some(page)) => (StatusCode::UNPROCESSABLE_ENTITY, render(&page)).into_response(),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

/// The question again, if the name was not typed where it must be.
async fn revoked(
    state: &State,
    shell: &Shell,
    id: &str,
    typed: String,
) -> Result<Option<RevokePage>, Trouble> {
    let (mut page, key) = revoke_page(state, shell, id).await?;
    if page.asks_name && typed.trim() != &*key.name {
        page.faults.add("name", shell.t("keys-name-differs"));
        page.typed = typed;
        return Ok(Some(page));
    }
    if !state.store().remove_key(key.id).await? {
        return Err(Trouble::NotFound);
    }
    state.reload().now().await?;
    Ok(None)
}

#[cfg(test)]
pub(super) fn samples(
    shell: &Shell,
    contents: &crate::domain::pool::edges::Contents,
) -> Vec<(&'static str, String)> {
    let key = &contents.keys[0];
    let used = |count, last_at| Some(KeyUse { count, last_at });
    let mut all = Vec::new();
    for (in_flight, used) in [
        (0, used(0, None)),
        (1, None),
        (3, used(1, Some(super::tests::NOW_MS))),
        (0, used(1204, Some(super::tests::NOW_MS))),
    ] {
        let traffic = Traffic { in_flight, used };
        let mut rotate = RotatePage::new(shell.clone(), key, traffic);
        all.push(("keys/rotate", rotate.render().unwrap()));
        let fault = shell.t("keys-rotated-already").text("hint", 1);
        rotate.faults.add("confirm", fault);
        all.push(("keys/rotate", rotate.render().unwrap()));
        let mut revoke = RevokePage::new(shell.clone(), key, traffic);
        all.push(("keys/revoke", revoke.render().unwrap()));
        if revoke.asks_name {
            revoke.faults.add("name", shell.t("keys-name-differs"));
            all.push(("keys/revoke", revoke.render().unwrap()));
        }
    }
    all
}
