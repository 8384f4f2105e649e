"""Digests of content that is already stored: known from its row, read at once when small, else found outside.

Keeps true: nothing large is read inside a transaction; a copy that must be read waits for a delivery that reads it and
records what it found. Does not know what the digests are for.
"""

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from muster.operation import Answer, Wait
from muster.services.s3 import content
from muster.services.s3.checksums import DEFAULT, Hasher
from muster.services.s3.content import PLAIN_BYTES_MAX, Slices
from muster.services.s3.refusals import refusal
from muster.store.blobs import Blobs, BlobSlice
from muster.transaction import Carried, Delivery, Transaction

DIGEST = "s3.digest"
CHUNK_BYTES = 1 << 20
# Reading 5 GiB from a slow disk takes minutes; after this long something else is wrong.
WAIT_SECONDS = 3600.0
KEEP_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Digests:
    """MD5 in hexadecimal, and checksums: algorithm → base64."""

    md5: str
    checksums: dict[str, str]


Then = Callable[[Transaction, Digests], Answer]


def with_digests(
    tx: Transaction, blobs: Blobs, owner: str, start: int, length: int, algorithm: str, then: Then
) -> Answer | Wait:
    """Go on with the digests of a range of content, at once if it is small, else when it has been read."""
    algorithms = {DEFAULT, algorithm} - {""}
    found = content.slices(tx, owner, start, length)
    if length <= PLAIN_BYTES_MAX:
        hasher = Hasher(algorithms)
        hasher.update(content.read(blobs, found))
        return then(tx, Digests(hasher.md5, hasher.checksums()))
    asked = tx.new_id()
    tx.post(Delivery(DIGEST, asked, {"algorithms": sorted(algorithms), "pieces": _described(found)}))
    until = tx.now + WAIT_SECONDS

    def once_found(tx: Transaction) -> Answer | Wait:
        row = tx.one("DELETE FROM s3_digests WHERE id = :id RETURNING answer", id=asked)
        if row is not None:
            answer = orjson.loads(row["answer"])
            if answer is None:
                raise refusal("NoSuchKey", "The source was removed while it was being copied.")
            return then(tx, Digests(answer["md5"], answer["checksums"]))
        if tx.now >= until:
            raise refusal("InvalidRequest", "The source could not be read in time; try again.")
        return Wait(f"{DIGEST}.{asked}", until, once_found)

    return Wait(f"{DIGEST}.{asked}", until, once_found)


def _described(found: Slices) -> list[Any]:
    return [
        [piece.id, piece.start, piece.length] if isinstance(piece, BlobSlice) else base64.b64encode(piece).decode()
        for piece in found.pieces
    ]


@dataclass(frozen=True, slots=True)
class DigestRunner:
    """Reads what `with_digests` asked for; `carry` is the runner of its deliveries."""

    blobs: Blobs

    async def carry(self, delivery: Carried) -> Callable[[Transaction], None]:
        found = await asyncio.to_thread(self._read, delivery.payload)
        answer = orjson.dumps(found).decode()

        def record(tx: Transaction) -> None:
            tx.run("DELETE FROM s3_digests WHERE found_at < :old", old=tx.now - KEEP_SECONDS)
            tx.run(
                "INSERT INTO s3_digests (id, answer, found_at) VALUES (:id, :answer, :now)",
                id=delivery.subject,
                answer=answer,
                now=tx.now,
            )
            tx.wake(f"{DIGEST}.{delivery.subject}")

        return record

    def _read(self, payload: dict[str, Any]) -> dict[str, Any] | None:
        hasher = Hasher(payload["algorithms"])
        try:
            for piece in payload["pieces"]:
                if isinstance(piece, str):
                    hasher.update(base64.b64decode(piece))
                else:
                    blob_id, start, length = piece
                    for offset in range(0, length, CHUNK_BYTES):
                        hasher.update(self.blobs.read(blob_id, start + offset, min(CHUNK_BYTES, length - offset)))
        except FileNotFoundError:
            return None
        return {"md5": hasher.md5, "checksums": hasher.checksums()}
