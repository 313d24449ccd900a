//! Encrypted connections, where the server or the address asks for them.

use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Trusts what the operating system trusts.
pub(super) fn connector() -> MakeRustlsConnect {
    let mut roots = RootCertStore::empty();
    for certificate in rustls_native_certs::load_native_certs().certs {
        let _ = roots.add(certificate);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports what rustls asks for")
        .with_root_certificates(roots)
        .with_no_client_auth();
    MakeRustlsConnect::new(config)
}
