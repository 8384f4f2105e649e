"""The bytes of an object: received with their digests, kept as pieces, and cut into what a range asks for.

Keeps true: a piece is bytes in the row or a slice of a blob; every slice of a blob is one use of it. Copying and
completing share blobs, and never move bytes. Does not know keys or versions: content has an id, and parts by number.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.services.s3.checksums import DEFAULT, Hasher, given
from muster.store import blobs as blob_rows
from muster.store.blobs import Blob, Blobs, BlobSlice
from muster.transaction import Row, Transaction

# Up to this size a body lies in the database row: one sync instead of three.
INLINE_BYTES_MAX = 64 * 1024
# Up to this size a body is answered as bytes, even when it lies in a blob; larger ones as slices to be streamed.
PLAIN_BYTES_MAX = 256 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes that have been received whole: in memory or in a finished blob, with their digests."""

    size: int
    md5: str
    checksums: Mapping[str, str]
    data: bytes | None = None
    blob: Blob | None = None

    @classmethod
    def of(cls, data: bytes, algorithms: Iterable[str] = (DEFAULT,)) -> "Content":
        """Content in memory, digested."""
        hasher = Hasher(algorithms)
        hasher.update(data)
        return cls(len(data), hasher.md5, hasher.checksums(), data=data)


@dataclass(frozen=True, slots=True)
class Slices:
    """A large answer body: bytes and slices of blobs, to be streamed one after the other."""

    length: int
    pieces: tuple[bytes | BlobSlice, ...]

    @property
    def blob_ids(self) -> list[str]:
        return [piece.id for piece in self.pieces if isinstance(piece, BlobSlice)]


def received(request: Mapping[str, Any], *algorithms: str) -> Content:
    """The body of a request: Content from the wire; bytes, text or any JSON value from a sibling."""
    body = request.get("Body")
    if isinstance(body, Content):
        return body
    if body is None:
        body = b""
    elif isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, bytes):
        body = orjson.dumps(body)
    if len(body) > PLAIN_BYTES_MAX:
        raise ServiceError(
            "EntityTooLarge",
            f"A body handed over inside a transaction may have at most {PLAIN_BYTES_MAX} bytes; this one has"
            f" {len(body)}. Upload it through the S3 endpoint.",
            status=400,
        )
    return Content.of(body, {DEFAULT, *algorithms, *given(request)})


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of content as a row describes it; `data` is fetched only for what is read."""

    part: int
    position: int
    length: int
    start: int
    blob: str | None


def store(tx: Transaction, owner: str, part: int, content: Content) -> None:
    """Make these bytes part `part` of the content `owner`."""
    if content.blob is not None:
        blob_rows.keep(tx, content.blob)
        _insert(tx, owner, Piece(part, 0, content.size, 0, content.blob.id), None)
    else:
        assert content.data is not None
        _insert(tx, owner, Piece(part, 0, content.size, 0, None), content.data)


def copy(tx: Transaction, source: str, start: int, length: int, owner: str, part: int) -> None:
    """Make `length` bytes from `start` on of another content part `part` of `owner`, sharing its blobs."""
    for position, (piece, first, count) in enumerate(cut(pieces(tx, source), start, length)):
        if piece.blob is not None:
            blob_rows.share(tx, piece.blob)
            _insert(tx, owner, Piece(part, position, count, piece.start + first, piece.blob), None)
        else:
            data = _data(tx, source, piece)[first : first + count]
            _insert(tx, owner, Piece(part, position, count, 0, None), data)


def forget(tx: Transaction, owner: str, part: int | None = None) -> None:
    """Let go of a content, or of one part of it."""
    for piece in pieces(tx, owner, part):
        if piece.blob is not None:
            blob_rows.drop(tx, piece.blob)
    condition = "" if part is None else " AND part = :part"
    values: dict[str, Any] = {} if part is None else {"part": part}
    tx.run(f"DELETE FROM s3_pieces WHERE content = :owner{condition}", owner=owner, **values)


def pieces(tx: Transaction, owner: str, part: int | None = None) -> list[Piece]:
    """The pieces of a content (or one part of it), in order, without their bytes."""
    condition = "" if part is None else " AND part = :part"
    values: dict[str, Any] = {} if part is None else {"part": part}
    rows = tx.all(
        "SELECT part, position, length, start, blob FROM s3_pieces"
        f" WHERE content = :owner{condition} ORDER BY part, position",
        owner=owner,
        **values,
    )
    return [_piece(row) for row in rows]


def cut(all_pieces: Sequence[Piece], start: int, length: int) -> list[tuple[Piece, int, int]]:
    """What of each piece lies within the range: the piece, the offset in it, and how many bytes."""
    found = []
    offset = 0
    end = start + length
    for piece in all_pieces:
        first = max(start, offset)
        last = min(end, offset + piece.length)
        if first < last:
            found.append((piece, first - offset, last - first))
        offset += piece.length
    return found


def slices(tx: Transaction, owner: str, start: int, length: int) -> Slices:
    """A range of content as bytes and slices of blobs."""
    found: list[bytes | BlobSlice] = []
    for piece, first, count in cut(pieces(tx, owner), start, length):
        if piece.blob is not None:
            found.append(BlobSlice(piece.blob, piece.start + first, count))
        else:
            found.append(_data(tx, owner, piece)[first : first + count])
    return Slices(length, tuple(found))


def read(blobs: Blobs, found: Slices) -> bytes:
    """The bytes of a few slices, at once."""
    return b"".join(
        piece if isinstance(piece, bytes) else blobs.read(piece.id, piece.start, piece.length) for piece in found.pieces
    )


def body(tx: Transaction, blobs: Blobs, owner: str, start: int, length: int) -> bytes | Slices:
    """A range of content: as bytes when it is small, else as slices to be streamed."""
    found = slices(tx, owner, start, length)
    return read(blobs, found) if length <= PLAIN_BYTES_MAX else found


def _insert(tx: Transaction, owner: str, piece: Piece, data: bytes | None) -> None:
    tx.run(
        "INSERT INTO s3_pieces (content, part, position, length, start, blob, data)"
        " VALUES (:owner, :part, :position, :length, :start, :blob, :data)",
        owner=owner,
        part=piece.part,
        position=piece.position,
        length=piece.length,
        start=piece.start,
        blob=piece.blob,
        data=data,
    )


def _piece(row: Row) -> Piece:
    return Piece(row["part"], row["position"], row["length"], row["start"], row["blob"])


def _data(tx: Transaction, owner: str, piece: Piece) -> bytes:
    row = tx.one(
        "SELECT data FROM s3_pieces WHERE content = :owner AND part = :part AND position = :position",
        owner=owner,
        part=piece.part,
        position=piece.position,
    )
    assert row is not None
    return bytes(row["data"])
