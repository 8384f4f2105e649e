"""A queue's policy by labels: AddPermission and RemovePermission edit the statements of its Policy attribute."""

from collections.abc import Mapping
from typing import Any

import orjson

from muster.services.sqs.queues import Queue, arn_of, store
from muster.services.sqs.refusals import invalid_value
from muster.transaction import Transaction


def add(tx: Transaction, queue: Queue, request: Mapping[str, Any]) -> None:
    """Allow accounts some actions under a label."""
    resource = arn_of(tx, queue.name)
    policy = _policy(queue) or {"Version": "2008-10-17", "Id": f"{resource}/SQSDefaultPolicy", "Statement": []}
    label = request["Label"]
    if any(statement.get("Sid") == label for statement in policy["Statement"]):
        raise invalid_value(label, "Label", "Already exists.")
    accounts = [f"arn:aws:iam::{account}:root" for account in request["AWSAccountIds"]]
    actions = [f"SQS:{action}" for action in request["Actions"]]
    policy["Statement"].append(
        {
            "Sid": label,
            "Effect": "Allow",
            "Principal": {"AWS": accounts if len(accounts) > 1 else accounts[0]},
            "Action": actions if len(actions) > 1 else actions[0],
            "Resource": resource,
        }
    )
    _keep(tx, queue, policy)


def remove(tx: Transaction, queue: Queue, label: str) -> None:
    """Take a label's statement away."""
    policy = _policy(queue) or {"Statement": []}
    left = [statement for statement in policy["Statement"] if statement.get("Sid") != label]
    if len(left) == len(policy["Statement"]):
        raise invalid_value(label, "Label", "can't find label.")
    _keep(tx, queue, {**policy, "Statement": left})


def _policy(queue: Queue) -> dict[str, Any] | None:
    text = queue.attributes.get("Policy")
    policy: dict[str, Any] | None = orjson.loads(text) if text else None
    return policy


def _keep(tx: Transaction, queue: Queue, policy: dict[str, Any]) -> None:
    attributes = {name: value for name, value in queue.attributes.items() if name != "Policy"}
    if policy["Statement"]:
        attributes["Policy"] = orjson.dumps(policy).decode()
    store(tx, queue.name, attributes)
