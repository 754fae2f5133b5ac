//! Embedded files under an address that names their content, so that browsers keep them for ever.
use axum::{
    extract::Path,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header};
use std::{borrow::Cow, fmt::Write as _};

#[derive(rust_embed::Embed)]
#[folder = "assets/"]
struct Assets;

/// The script library; its version is in its name.
pub(super) const HTMX: &str = "htmx-2.0.11.min.js";

/// Bytes of the content's hash in an address: enough to tell contents apart.
const VERSION_BYTES: usize = 8;

/// The address of a file.
pub(super) fn url(file: &str) -> String {
    format!("/assets/{}/{file}", version(file))
}

fn version(file: &str) -> String {
    let hash = Assets::get(file).map(|f| f.metadata.sha256_hash());
    let bytes = hash.iter().flatten().take(VERSION_BYTES);
    bytes.fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `GET /assets/{version}/{file}`.
pub(super) async fn serve(Path((wanted, file)): Path<(String, String)>) -> Response {
    let Some(found) = Assets::get(&file) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // After an upgrade a page that is open still asks by the old version: it gets the new file,
    // which must not be kept under the old name.
    let caching = if wanted == version(&file) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind(&file))),
        (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
    ];
    match found.data {
        Cow::Borrowed(bytes) => (headers, bytes).into_response(),
        Cow::Owned(bytes) => (headers, bytes).into_response(),
    }
}

fn kind(file: &str) -> &'static str {
    match file.rsplit_once('.').map_or("", |(_, end)| end) {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;

    #[test]
    fn what_was_taken_from_elsewhere_is_what_was_reviewed() {
        let list = include_str!("../../assets/htmx-2.0.11.sha256");
        for line in list.lines() {
            let (expect, file) = line.split_once("  ").unwrap();
            let data = Assets::get(file).unwrap().data;
            let hash = digest::sha256(&data);
            let hex = hash.iter().fold(String::new(), |mut text, byte| {
                write!(text, "{byte:02x}").unwrap();
                text
            });
            assert_eq!(hex, expect, "{file}");
        }
        assert!(list.contains(HTMX));
    }

    #[tokio::test]
    async fn a_file_is_kept_for_ever_under_its_own_version_alone() {
        let caching = async |version: String| {
            let response = serve(Path((version, "app.css".to_owned()))).await;
            assert_eq!(response.status(), StatusCode::OK);
            response.headers()["cache-control"]
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert!(caching(version("app.css")).await.contains("immutable"));
        assert_eq!(caching("old".to_owned()).await, "no-cache");
        let unknown = serve(Path(("x".to_owned(), "../Cargo.toml".to_owned()))).await;
        assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    }
}
