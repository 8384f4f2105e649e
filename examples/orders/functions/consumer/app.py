"""Charges the customer of each order once, and sends one receipt, however often the event is delivered.

The record of an event is written before the work, under the event's id; the id goes on to the payment service as the
idempotency key, so that work which a crash cut in two may be repeated. A refusal is not answered with another try
here: the message stays in the queue, and comes back when its visibility timeout has passed.
"""

import json
import os
import urllib.error
import urllib.request
from typing import Any

import boto3

from muster.idempotency import Records, each_record, idempotent

PAYMENT_URL = os.environ["PAYMENT_URL"]
# Less than the function's timeout: a service that hangs is an error with a name.
CALL_SECONDS_MAX = 5

s3 = boto3.client("s3")
seen = Records(os.environ["SEEN_TABLE"])


class PaymentRefused(Exception):
    """The payment service's own words."""


def ask(path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """One call to the payment service; PaymentRefused when it does not do what it was asked."""
    request = urllib.request.Request(
        PAYMENT_URL + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}},
    )
    try:
        with urllib.request.urlopen(request, timeout=CALL_SECONDS_MAX) as response:
            answer: dict[str, Any] = json.load(response)
            return answer
    except urllib.error.HTTPError as refusal:
        raise PaymentRefused(f"{refusal.code}: {refusal.read().decode()}") from None


@idempotent(seen)
def charge(record: dict[str, Any], *, idempotency_key: str) -> dict[str, Any]:
    """Charge and send the receipt. Each call by itself is safe to repeat, because both carry the event's id."""
    detail = json.loads(record["body"])["detail"]
    uploaded = s3.get_object(Bucket=detail["bucket"]["name"], Key=detail["object"]["key"])
    order = json.load(uploaded["Body"])
    attempt = record["attributes"]["ApproximateReceiveCount"]
    charged = ask("/charges", order, idempotency_key=idempotency_key, attempt=attempt)
    told = {"customer": order["customer"], "charge": charged["id"]}
    receipt = ask("/receipts", told, idempotency_key=idempotency_key, attempt=attempt)
    return {"charge": charged["id"], "receipt": receipt["id"]}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Of a batch, only what failed is delivered again."""
    return each_record(event, charge, context)
