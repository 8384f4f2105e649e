"""DynamoDB: tables of items with keys, conditions, indexes, transactions, expiry and streams, on the one store.

`SERVICE` is the database, `STREAMS` the API through which its streams are read; both use the tables of `SERVICE`.
"""

from muster.operation import Service
from muster.services.dynamodb.operations import OPERATIONS
from muster.services.dynamodb.schema import MIGRATIONS
from muster.services.dynamodb.stream_reading import STREAMS
from muster.services.dynamodb.upkeep import CARRIERS

__all__ = ["SERVICE", "STREAMS"]

SERVICE = Service("dynamodb", OPERATIONS, MIGRATIONS, CARRIERS)
