"""Keys of signatures, in the files that a command reads."""

from cryptography.hazmat.primitives import serialization as pem


def write_keys(folder, key, *, password=None):
    """Write a private key, which nobody else may read, and its public part."""
    how = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, password or pem.NoEncryption())
    (folder / "own.pem").touch(mode=0o600)
    (folder / "own.pem").write_bytes(key.private_bytes(*how))
    public = key.public_key().public_bytes(how[0], pem.PublicFormat.SubjectPublicKeyInfo)
    (folder / "public.pem").write_bytes(public)
