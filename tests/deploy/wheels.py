"""The installed packages as wheels, so that pip installs them again without a network."""

from __future__ import annotations

import hashlib
import importlib.metadata
import zipfile
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

# The rest of the head of a compiled module that nobody compares with its source (PEP 552): flags, and no hash.
UNCHECKED = (1).to_bytes(4, "little") + bytes(8)


def lock(folder: Path, *names: str) -> str:
    """Pack the named distributions into `folder`; returns what a file of requirements with hashes says."""
    lines = []
    for name in names:
        wheel = pack(importlib.metadata.distribution(name), folder)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines.append(f"{name}=={importlib.metadata.version(name)} --hash=sha256:{digest}\n")
    return "".join(lines)


def pack(found: importlib.metadata.Distribution, folder: Path) -> Path:
    """The wheel of an installed distribution, made of the files that its RECORD lists."""
    files = [file for file in found.files or [] if ".." not in file.parts and "__pycache__" not in file.parts]
    *_, tag = [line.partition(": ")[2] for line in (found.read_text("WHEEL") or "").splitlines() if "Tag: " in line]
    record = next(file for file in files if file.name == "RECORD")
    wheel = folder / f"{record.parts[0].removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for file in files:
            if file.name not in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                packed.write(file.locate(), str(file))
                if compiled := _compiled(Path(file.locate())):
                    packed.writestr(cache_from_source(str(file)), compiled)
        listed = "".join(f"{name},,\n" for name in packed.namelist())
        packed.writestr(str(record), f"{listed}{record},,\n")
    return wheel


def _compiled(source: Path) -> bytes:
    """What Python has compiled of a module, if it has, to be taken for its source whatever time that has."""
    found = Path(cache_from_source(str(source))) if source.suffix == ".py" else source
    if found == source or not found.is_file():
        return b""
    return MAGIC_NUMBER + UNCHECKED + found.read_bytes()[16:]
