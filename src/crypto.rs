//! TLS in both directions: the cryptography of the whole program, and the listener's certificate.
use anyhow::Context as _;
use rustls::{
    ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use std::{path::Path, sync::Arc};
use tokio_rustls::TlsAcceptor;

/// The one place that chooses an implementation.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// What accepts TLS connections with the certificate chain and private key of those PEM files.
pub fn acceptor(chain: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("FAIRLANE_TLS_CERT: no certificate in {}", chain.display()))?;
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("FAIRLANE_TLS_KEY: no private key in {}", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .context("FAIRLANE_TLS_CERT and FAIRLANE_TLS_KEY do not go together")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
