"""DynamoDB: tables of items with keys, conditions, indexes, transactions and expiry, on the one store."""

from muster.operation import Service
from muster.services.dynamodb.operations import OPERATIONS
from muster.services.dynamodb.schema import MIGRATIONS
from muster.services.dynamodb.upkeep import CARRIERS

SERVICE = Service("dynamodb", OPERATIONS, MIGRATIONS, CARRIERS)
