//! TLS in both directions: the cryptography of the whole program, and the listener's certificate.
use anyhow::Context as _;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
};
use std::{path::Path, sync::Arc};
use tokio_rustls::TlsAcceptor;

/// The one place that chooses an implementation.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(chain: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .ok()
        .filter(|all| !all.is_empty())
        .with_context(|| format!("FAIRLANE_TLS_CERT: no certificate in {}", chain.display()))
}

/// What accepts TLS connections with the certificate chain and private key of those PEM files.
pub fn acceptor(chain: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let certificates = certificates(chain)?;
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

/// A client that trusts whoever holds the first certificate of that PEM file, and nobody else:
/// for an instance that asks itself, whatever name the certificate is for.
pub fn trusting_only(chain: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    let own = certificates(chain)?.swap_remove(0);
    let provider = provider();
    let verifier = Pinned {
        own,
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Accepts one certificate; that the peer holds its key is verified as ever.
#[derive(Debug)]
struct Pinned {
    own: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *presented == self.own {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General(
                "another certificate than the configured one".into(),
            ))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
