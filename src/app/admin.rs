//! How the admin side is reached: on a listener of its own, or through the data plane's threads.
//!
//! Invariant: it runs on one runtime, whichever thread a request comes in on.
use super::{listen, stopping};
use crate::{
    gateway::{Elsewhere, Reply},
    peer::Peer,
    tasks,
};
use axum::{Router, extract::ConnectInfo};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use std::{io, net::SocketAddr, sync::Arc};
use tokio::{sync::watch, task::JoinHandle};
use tower::ServiceExt as _;

/// Serves on a listener of its own until `stopped`; gives where that is.
pub(super) async fn serve(
    address: SocketAddr,
    router: Router,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<(SocketAddr, JoinHandle<()>)> {
    let listener = listen(address).await?;
    let bound = listener.local_addr()?;
    let router = router.layer(axum::middleware::map_request(name_peer));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let task = tasks::spawn("admin listener", async move {
        let serving = axum::serve(listener, service).with_graceful_shutdown(stopping(stopped));
        if let Err(error) = serving.await {
            tracing::error!(%error, "the admin listener ended");
        }
    });
    Ok((bound, task))
}

/// Says who is there, as the main listener does.
async fn name_peer(
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    mut request: axum::extract::Request,
) -> axum::extract::Request {
    let is_tls = false;
    request.extensions_mut().insert(Peer { address, is_tls });
    request
}

/// Runs the admin side's router on the runtime that is current now, whichever thread asks.
pub(super) fn hand_over(router: Router) -> Elsewhere {
    let runtime = tokio::runtime::Handle::current();
    Arc::new(move |request: Request<Incoming>| {
        let router = router.clone();
        let _on = runtime.enter();
        let (sender, answer) = tokio::sync::oneshot::channel();
        tasks::spawn("admin request", async move {
            let answered = router.oneshot(request.map(axum::body::Body::new)).await;
            let Ok(response) = answered;
            // The client may have left meanwhile.
            let _ = sender.send(response.map(|b| Reply::foreign(MapError(b))));
        });
        Box::pin(async move {
            answer.await.unwrap_or_else(|_| {
                let mut response = Response::new(Reply::whole("internal error\n"));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                response
            })
        })
    })
}

/// An axum body with an `io::Error`, as the gateway's bodies have it.
struct MapError(axum::body::Body);

impl http_body::Body for MapError {
    type Data = bytes::Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, io::Error>>> {
        std::pin::Pin::new(&mut self.0)
            .poll_frame(cx)
            .map_err(io::Error::other)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.0.size_hint()
    }
}
