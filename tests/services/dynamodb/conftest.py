"""A world with DynamoDB alone, and a table in it."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.services.dynamodb import SERVICE
from muster.testing import World

Table = Callable[..., dict[str, Any]]


@pytest.fixture
def world() -> World:
    return World([SERVICE])


@pytest.fixture
def table(world: World) -> Table:
    """Creates a table `things` with partition key `pk` (S) and, when asked, a sort key `sk` of some type."""

    def create(
        sort: str | None = None, *, name: str = "things", attributes: dict[str, str] | None = None, **more: Any
    ) -> Any:
        types = {"pk": "S", **({"sk": sort} if sort else {}), **(attributes or {})}
        schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
        if sort:
            schema.append({"AttributeName": "sk", "KeyType": "RANGE"})
        request: dict[str, Any] = {
            "TableName": name,
            "KeySchema": schema,
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": kind} for each, kind in types.items()],
            "BillingMode": "PAY_PER_REQUEST",
            **more,
        }
        return world.call("dynamodb", "CreateTable", **request)["TableDescription"]

    return create
