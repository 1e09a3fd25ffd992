"""Certificates that openssl's command does not make, such as one that has expired."""

from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def issue(folder: Path, names: tuple[str, ...], days: int) -> None:
    """A certificate of these names that ends in so many days, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=2)).not_valid_after(
        now + datetime.timedelta(days=days)
    )
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(it) for it in names]), critical=False)
    pem = serialization.Encoding.PEM
    (folder / "fullchain.pem").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "privkey.pem").write_bytes(key.private_bytes(pem, *plain))
