"""Certificate store of the recording browser: authorities that it trusts for one recording.

On Linux, Chromium takes authorities beside its own from NSS's database below its HOME
("Linux certificate management" in its documentation), and asks of their chains all that it asks
of others.  NSS is a library that the browser links to; its calls are those of
``certutil -A -t C,,``.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_ulong, c_void_p
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from testbed.base.errors import ConfigurationError, MissingError, StorageError

STORE = Path(".pki") / "nssdb"
_NSS = "libnss3.so"
_TRUSTED_AUTHORITY = 1 << 3 | 1 << 4  # CERTDB_VALID_CA, CERTDB_TRUSTED_CA (certdb.h)
_NO_OBJECT = 0  # CK_INVALID_HANDLE: no private key goes with it


class _Item(ctypes.Structure):
    """SECItem (seccomon.h)."""

    _fields_ = (("kind", c_int), ("data", c_char_p), ("length", c_uint))


class _Trust(ctypes.Structure):
    """CERTCertTrust (certt.h)."""

    _fields_ = (("ssl", c_uint), ("email", c_uint), ("signing", c_uint))


_SIGNATURES = {
    "NSS_InitReadWrite": (c_int, c_char_p),
    "NSS_Shutdown": (c_int,),
    "PK11_GetInternalKeySlot": (c_void_p,),
    "PK11_FreeSlot": (None, c_void_p),
    "PK11_InitPin": (c_int, c_void_p, c_char_p, c_char_p),
    "PK11_ImportCert": (c_int, c_void_p, c_void_p, c_ulong, c_char_p, c_int),
    "CERT_GetDefaultCertDB": (c_void_p,),
    "CERT_NewTempCertificate": (c_void_p, c_void_p, POINTER(_Item), c_char_p, c_int, c_int),
    "CERT_ChangeCertTrust": (c_int, c_void_p, c_void_p, POINTER(_Trust)),
    "CERT_DestroyCertificate": (None, c_void_p),
}
"""What each function returns and takes (nss.h, pk11pub.h, cert.h)."""


def read_authorities(path: Path) -> list[bytes]:
    """Return the certificates of the PEM file ``path`` in DER.

    Raises:
        ConfigurationError: it cannot be read, or holds anything but certificates of authorities.
    """
    try:
        certificates = x509.load_pem_x509_certificates(path.read_bytes())
        leaves = [c.subject.rfc4514_string() for c in certificates if not _is_authority(c)]
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            [f"--ca {path}: {error}; name a PEM file with the authority's certificate"]
        ) from None
    if leaves:
        what = f"{', '.join(leaves)} is no authority (RFC 5280, basic constraints)"
        raise ConfigurationError([f"--ca {path}: {what}; name the certificate of who signed it"])
    return [certificate.public_bytes(Encoding.DER) for certificate in certificates]


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return True  # certificates before version 3 do not say


def write_store(home: Path, authorities: list[bytes]) -> None:
    """Make the store below ``home`` of a browser that trusts these, each in DER, for TLS.

    Raises:
        MissingError: this machine has no NSS.
        StorageError: NSS could not write the store.
    """
    try:
        nss = ctypes.CDLL(_NSS)
    except OSError as error:
        raise MissingError(f"{error}; --ca takes NSS, which Debian's libnss3 brings") from None
    for name, (returned, *taken) in _SIGNATURES.items():
        function = getattr(nss, name)
        function.restype, function.argtypes = returned, taken
    folder = home / STORE
    folder.mkdir(parents=True, mode=0o700)
    ok: bool = nss.NSS_InitReadWrite(f"sql:{folder}".encode()) == 0
    if ok:
        slot = nss.PK11_GetInternalKeySlot()
        ok = nss.PK11_InitPin(slot, None, b"") == 0
        ok = ok and all(_add(nss, slot, number, der) for number, der in enumerate(authorities))
        nss.PK11_FreeSlot(slot)
        ok = nss.NSS_Shutdown() == 0 and ok
    if not ok:
        raise StorageError(f"{folder}: NSS cannot write the browser's store of authorities")


def _add(nss: ctypes.CDLL, slot: int, number: int, der: bytes) -> bool:
    database = nss.CERT_GetDefaultCertDB()
    item = _Item(0, der, len(der))
    certificate = nss.CERT_NewTempCertificate(database, byref(item), None, 0, 1)
    if not certificate:
        return False
    name = f"authority {number}".encode()
    added: bool = nss.PK11_ImportCert(slot, certificate, _NO_OBJECT, name, 0) == 0
    trust = _Trust(_TRUSTED_AUTHORITY, 0, 0)
    added = added and nss.CERT_ChangeCertTrust(database, certificate, byref(trust)) == 0
    nss.CERT_DestroyCertificate(certificate)
    return added
