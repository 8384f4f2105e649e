"""Several writes that happen together or not at all.

Keeps true: every condition is asked of the items as they were before any of the writes; a request token makes a
repeated request succeed without writing again, for ten minutes. Source: API reference, TransactWriteItems.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.languages.expressions import ExpressionError, Item
from muster.languages.expressions.value import size_of_item
from muster.services.dynamodb import capacity, items, write
from muster.services.dynamodb import table as tables
from muster.services.dynamodb.capacity import Consumed
from muster.services.dynamodb.refusal import invalid
from muster.services.dynamodb.table import Table
from muster.services.dynamodb.write import Write
from muster.services.dynamodb.written import binary_written
from muster.transaction import Transaction

ACTIONS_MAX = 100
BYTES_MAX = 4 * 1024 * 1024
TOKEN_SECONDS = 600

# More than the one that is noted, so that what has expired shrinks.
TOKENS_DROPPED_WITH_EACH = 20

_KINDS: Mapping[str, Callable[[Table, Mapping[str, Any]], Write]] = {
    "Put": write.put,
    "Update": write.update,
    "Delete": write.delete,
    "ConditionCheck": write.check,
}


def transact_write(tx: Transaction, request: Mapping[str, Any]) -> dict[str, Any]:
    """Do all the writes, or raise TransactionCanceledException with a reason for each."""
    actions: Sequence[Mapping[str, Any]] = request["TransactItems"]
    if not 1 <= len(actions) <= ACTIONS_MAX:
        raise invalid(
            "1 validation error detected: Value at 'transactItems' failed to satisfy constraint: "
            f"Member must have length less than or equal to {ACTIONS_MAX}"
        )
    writes = [_write(tx, action) for action in actions]
    if len({(each.table.id, each.key) for each in writes}) != len(writes):
        raise invalid("Transaction request cannot include multiple operations on one item")
    token = request.get("ClientRequestToken")
    repeated = token is not None and _is_repeated(tx, token, actions)
    olds = [items.get(tx, each.table, each.key) for each in writes]
    consumed: dict[str, Consumed] = {}
    collections: dict[str, list[dict[str, Any]]] = {}
    if repeated:
        # The second time the items are only read.
        for each, old in zip(writes, olds, strict=True):
            units = consumed.setdefault(each.table.name, Consumed(each.table))
            units.read_units += 2 * capacity.read_units(size_of_item(old or {}), True)
    else:
        news = _decided(writes, olds)
        for each, old, new in zip(writes, olds, news, strict=True):
            write.store(tx, each, old, new)
            collection = capacity.collection(each.table, old, new)
            if collection is not None:
                collections.setdefault(each.table.name, []).append(collection)
            for _ in range(2):
                consumed[each.table.name] = capacity.of_write(each.table, old, new, consumed.get(each.table.name))
    answer: dict[str, Any] = {}
    if request.get("ReturnItemCollectionMetrics") == "SIZE":
        answer["ItemCollectionMetrics"] = collections
    capacity.added_for_all(answer, request, consumed.values(), split=True)
    return answer


def _write(tx: Transaction, action: Mapping[str, Any]) -> Write:
    if len(action) != 1:
        raise invalid("TransactItems can only contain one of Check, Put, Update or Delete")
    [(kind, wanted)] = action.items()
    return _KINDS[kind](tables.for_items(tx, wanted["TableName"]), wanted)


def _decided(writes: Sequence[Write], olds: Sequence[Item | None]) -> list[Item | None]:
    news: list[Item | None] = []
    reasons: list[dict[str, Any]] = []
    for each, old in zip(writes, olds, strict=True):
        reason: dict[str, Any] = {"Code": "None"}
        try:
            news.append(write.decide(each, old))
        except ServiceError as error:
            code = "ConditionalCheckFailed" if error.code == "ConditionalCheckFailedException" else "ValidationError"
            reason = {"Code": code, "Message": error.message, **error.fields}
        except ExpressionError as error:
            reason = {"Code": "ValidationError", "Message": error.message}
        reasons.append(reason)
    if len(news) < len(writes):
        codes = ", ".join(reason["Code"] for reason in reasons)
        raise ServiceError(
            "TransactionCanceledException",
            f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
            fields={"CancellationReasons": reasons},
        )
    if sum(size_of_item(new) for new in news if new) > BYTES_MAX:
        raise invalid("Aggregate size of the items in the transaction cannot exceed 4 MB")
    return news


def _is_repeated(tx: Transaction, token: str, actions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the token was used for the same request within ten minutes; it is noted otherwise."""
    content = orjson.dumps(actions, default=binary_written, option=orjson.OPT_SORT_KEYS)
    fingerprint = hashlib.sha256(content).hexdigest()
    tx.run(
        "DELETE FROM dynamodb_request_tokens WHERE token IN"
        " (SELECT token FROM dynamodb_request_tokens WHERE expires_at <= :now ORDER BY expires_at LIMIT :many)",
        now=tx.now,
        many=TOKENS_DROPPED_WITH_EACH,
    )
    row = tx.one(
        "SELECT fingerprint FROM dynamodb_request_tokens WHERE token = :token AND expires_at > :now",
        token=token,
        now=tx.now,
    )
    if row is None:
        tx.run(
            "INSERT INTO dynamodb_request_tokens (token, fingerprint, expires_at)"
            " VALUES (:token, :fingerprint, :expires_at) ON CONFLICT (token) DO UPDATE"
            " SET fingerprint = excluded.fingerprint, expires_at = excluded.expires_at",
            token=token,
            fingerprint=fingerprint,
            expires_at=tx.now + TOKEN_SECONDS,
        )
        return False
    if row["fingerprint"] != fingerprint:
        raise ServiceError(
            "IdempotentParameterMismatchException",
            "The request uses the same client token as a previous, but non-identical request.",
        )
    return True
