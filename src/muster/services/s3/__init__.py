"""S3: buckets, objects and their versions, multipart uploads, and the events of all that.

`service` makes it from the folder of blobs; `runners` are what it needs carried outside transactions.
"""

from collections.abc import Awaitable, Callable

from muster.operation import Service
from muster.services.s3 import events, schema
from muster.services.s3.digests import DIGEST, DigestRunner
from muster.services.s3.operations import operations
from muster.store.blobs import Blobs
from muster.transaction import Carried, Transaction

Carry = Callable[[Carried], Awaitable[Callable[[Transaction], None]]]


def service(blobs: Blobs) -> Service:
    """The S3 service on these blobs."""
    return Service(
        name="s3",
        operations=operations(blobs),
        migrations=schema.MIGRATIONS,
        carriers={events.NOTIFY: events.carry_notification},
    )


def runners(blobs: Blobs) -> dict[str, Carry]:
    """Delivery kind → runner: reading stored content for its digests."""
    return {DIGEST: DigestRunner(blobs).carry}
