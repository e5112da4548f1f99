//! Certificates for TLS.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Writes `tls.crt` and `tls.key` of a process at 127.0.0.1, and `ca.crt` of a new authority that
/// has signed them, into a folder.
pub(crate) fn write_certificates(folder: &Path) {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&key).unwrap();
    let authority = Issuer::new(authority, key);

    let key = KeyPair::generate().unwrap();
    let process = CertificateParams::new(["127.0.0.1".to_owned()])
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("ca.crt"), certificate.pem()).unwrap();
    fs::write(folder.join("tls.crt"), process.pem()).unwrap();
    fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
}
