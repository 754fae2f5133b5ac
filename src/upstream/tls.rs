//! TLS towards providers: one client configuration for the process, built when first needed.
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, OnceLock};

/// The bundled roots, and those of the machine, so that a bare container works and a company's
/// own authority too.
fn roots() -> RootCertStore {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "some of the machine's certificates could not be read");
    }
    let (_, ignored) = roots.add_parsable_certificates(native.certs);
    if ignored > 0 {
        tracing::debug!(ignored, "certificates of the machine that are not usable");
    }
    roots
}

/// HTTP/1.1 only: with one request on a connection the write witness can attribute every byte.
pub(super) fn client_config() -> Result<Arc<ClientConfig>, rustls::Error> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let mut config = ClientConfig::builder_with_provider(crate::crypto::provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}
