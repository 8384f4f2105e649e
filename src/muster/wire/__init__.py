"""The edge that speaks AWS's protocols over HTTP: bytes in, an operation asked for, bytes out."""
