//! Whether a request is to be answered with a whole page or with a piece of one.
use axum::extract::FromRequestParts;
use axum_htmx::{HX_HISTORY_RESTORE_REQUEST, HX_REQUEST};
use http::{HeaderMap, request::Parts};
use std::convert::Infallible;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Page,
    Fragment,
}

impl Wants {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        // A browser that goes back after its cache was emptied needs the whole page again.
        if headers.contains_key(HX_REQUEST) && !headers.contains_key(HX_HISTORY_RESTORE_REQUEST) {
            Self::Fragment
        } else {
            Self::Page
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Wants {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_for_whoever_asks_for_one_and_is_not_going_back() {
        let wants = |names: &[&'static str]| {
            let pairs = names
                .iter()
                .map(|n| (n.parse().unwrap(), "true".parse().unwrap()));
            Wants::of(&pairs.collect())
        };
        assert_eq!(wants(&[]), Wants::Page);
        assert_eq!(wants(&["hx-request"]), Wants::Fragment);
        assert_eq!(
            wants(&["hx-request", "hx-history-restore-request"]),
            Wants::Page
        );
    }
}
