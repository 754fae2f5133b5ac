//! The answer that shows a secret: the only one that ever does.
use crate::{
    dashboard::{
        State,
        shell::{Shell, render},
        snippets::{self, Filling, Snippet},
    },
    domain::{ids::KeyId, secret::Secret},
};
use askama::Template;
use axum::response::Response;
use std::sync::Arc;

/// A secret that was just made, and whose it is.
pub(super) struct Made {
    pub(super) id: KeyId,
    pub(super) name: Arc<str>,
    pub(super) secret: Secret,
    /// The models that the key may ask for; `None` means all.
    pub(super) models: Option<Vec<Arc<str>>>,
    /// Whether another secret was in its place.
    pub(super) is_new_secret: bool,
}

#[derive(Template)]
#[template(path = "keys/made.html")]
struct MadePage {
    shell: Shell,
    made: Made,
    base_url: String,
    path: String,
    requests: String,
    snippets: Vec<Snippet>,
}

/// Shows it.
pub(super) async fn show(state: &State, shell: Shell, made: Made, base_url: String) -> Response {
    let filling = Filling {
        base_url: &base_url,
        secret: made.secret.expose(),
    };
    let snippets = snippets::filled(state, &filling, made.models.as_deref()).await;
    render(&MadePage {
        shell,
        path: super::path_of(made.id),
        requests: super::requests_of(made.id),
        made,
        snippets,
        base_url,
    })
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let filling = Filling {
        base_url: "http://127.0.0.1:8080",
        secret: "0",
    };
    let openai = crate::domain::protocol::Protocol::OpenAi;
    let page = |is_new_secret, snippets| {
        let id = KeyId::from_u128(1);
        let page = MadePage {
            shell: shell.clone(),
            path: super::path_of(id),
            requests: super::requests_of(id),
            made: Made {
                id,
                name: "1".into(),
                secret: Secret::clean("0").unwrap().0,
                models: None,
                is_new_secret,
            },
            base_url: filling.base_url.to_owned(),
            snippets,
        };
        ("keys/made", page.render().unwrap())
    };
    vec![
        page(false, snippets::snippets(openai, "1", &filling)),
        page(true, Vec::new()),
    ]
}
