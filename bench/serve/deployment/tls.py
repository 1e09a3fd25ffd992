"""A certificate for a TLS listener on the loopback interface, signed by itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench import programs
from bench.errors import BenchError

DAYS = 30
SUBJECT = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")


def make_certificate(folder: Path) -> None:
    """Write privkey.pem, fullchain.pem and, for servers that read one file, both.pem into `folder`.

    Raises BenchError without openssl, or on its failure.
    """
    openssl = programs.find(["openssl"])
    if openssl is None:
        raise BenchError("openssl not found: it makes the certificate for listener=tls; install openssl")
    folder.mkdir(exist_ok=True)
    key, certificate = folder / "privkey.pem", folder / "fullchain.pem"
    argv = [str(openssl), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-days", str(DAYS), "-keyout", str(key), "-out", str(certificate), *SUBJECT]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise BenchError(f"{openssl} made no certificate: {done.stderr.strip().splitlines()[-1]}")
    (folder / "both.pem").write_bytes(certificate.read_bytes() + key.read_bytes())
