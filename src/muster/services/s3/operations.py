"""S3's operations table: every operation that is offered, under AWS's name.

An operation that is not in the table is refused by name at every door.
"""

from muster.operation import Operation
from muster.services.s3 import bucket_operations, listing_operations, object_operations, upload_operations
from muster.store.blobs import Blobs


def operations(blobs: Blobs) -> dict[str, Operation]:
    """The whole table."""
    return {
        **bucket_operations.operations(),
        **object_operations.operations(blobs),
        **listing_operations.operations(),
        **upload_operations.operations(blobs),
    }
