"""The check of requests against AWS's models: what passes, and AWS's sentences about what does not."""

from typing import Any

import pytest

from muster import models
from muster.errors import ServiceError

TABLE = {
    "TableName": "orders",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def refusal(service: str, operation: str, request: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(ServiceError) as refused:
        models.validate(service, operation, request)
    return refused.value.code, refused.value.message


def test_right_request_passes() -> None:
    models.validate("dynamodb", "CreateTable", TABLE)
    models.validate("lambda", "Invoke", {"FunctionName": "f", "Payload": b"{}"})
    models.validate("events", "PutEvents", {"Entries": [{"Time": 1.5, "Source": "s"}]})
    models.validate("sqs", "ListQueues", {})


def test_absent_members_may_be_null() -> None:
    models.validate("dynamodb", "CreateTable", {**TABLE, "StreamSpecification": None})


@pytest.mark.parametrize(
    ("service", "operation", "request_", "code", "violation"),
    [
        (
            "stepfunctions",
            "CreateActivity",
            {"name": ""},
            "ValidationException",
            "Value '' at 'name' failed to satisfy constraint: Member must have length greater than or equal to 1",
        ),
        (
            "dynamodb",
            "PutItem",
            {"TableName": "t"},
            "ValidationException",
            "Value null at 'item' failed to satisfy constraint: Member must not be null",
        ),
        (
            "dynamodb",
            "CreateTable",
            {**TABLE, "KeySchema": [{"AttributeName": "id", "KeyType": "SORT"}]},
            "ValidationException",
            "Value 'SORT' at 'keySchema.1.member.keyType' failed to satisfy constraint: "
            "Member must satisfy enum value set: [HASH, RANGE]",
        ),
        (
            "dynamodb",
            "BatchWriteItem",
            {"RequestItems": {"t": []}},
            "ValidationException",
            "Value '{t=[]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: "
            "[Member must have length less than or equal to 25, Member must have length greater than or equal to 1]",
        ),
        (
            "dynamodb",
            "Scan",
            {"TableName": "t", "Limit": 0},
            "ValidationException",
            "Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
        ),
        (
            "logs",
            "CreateLogGroup",
            {"logGroupName": "a b"},
            "InvalidParameterException",
            "Value 'a b' at 'logGroupName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [\\.\\-_/#A-Za-z0-9]+",
        ),
        (
            "sts",
            "AssumeRole",
            {"RoleArn": "short", "RoleSessionName": "session"},
            "ValidationError",
            "Value 'short' at 'roleArn' failed to satisfy constraint: "
            "Member must have length greater than or equal to 20",
        ),
        (
            "cloudformation",
            "DeleteStack",
            {},
            "ValidationError",
            "Value null at 'stackName' failed to satisfy constraint: Member must not be null",
        ),
        (
            "stepfunctions",
            "StartExecution",
            {"stateMachineArn": 3},
            "ValidationException",
            "Value '3' at 'stateMachineArn' failed to satisfy constraint: Member must be a string",
        ),
    ],
)
def test_broken_constraint_is_told_in_aws_words(
    service: str, operation: str, request_: dict[str, Any], code: str, violation: str
) -> None:
    assert refusal(service, operation, request_) == (code, f"1 validation error detected: {violation}")


def test_all_broken_constraints_are_told_at_once() -> None:
    code, message = refusal("dynamodb", "CreateTable", {"TableName": "", "KeySchema": [], "AttributeDefinitions": []})
    assert code == "ValidationException"
    assert message.startswith("2 validation errors detected: Value '' at 'tableName'")
    assert "; Value '[]' at 'keySchema' failed" in message


def test_sensitive_value_is_not_repeated() -> None:
    _, message = refusal("stepfunctions", "StartExecution", {"stateMachineArn": "arn", "input": "x" * 300_000})
    assert message == (
        "1 validation error detected: Value at 'input' failed to satisfy constraint: "
        "Member must have length less than or equal to 262144"
    )


def test_queues_speak_of_one_parameter_at_a_time() -> None:
    assert refusal("sqs", "SendMessage", {}) == (
        "MissingParameter",
        "The request must contain the parameter QueueUrl.",
    )


def test_nested_member_that_no_model_names_is_refused_by_name() -> None:
    code, message = refusal("lambda", "CreateFunction", {"FunctionName": "f", "Role": "r", "Code": {"Zip": b""}})
    assert code == "NotImplemented"
    assert "Zip" in message


def test_top_member_that_no_model_names_is_left_to_the_operation() -> None:
    models.validate("sqs", "ListQueues", {"Sharpness": 3})


def test_recursion_has_an_end() -> None:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(5000):
        value = {"L": [value]}
    assert refusal("dynamodb", "PutItem", {"TableName": "t", "Item": {"a": value}}) == (
        "ValidationException",
        "The request is nested too deeply.",
    )


def test_unknown_operation_and_service_are_named() -> None:
    assert refusal("sqs", "Sharpen", {})[0] == "UnknownOperationException"
    assert refusal("sharpener", "Sharpen", {}) == ("NotImplemented", "Muster does not support the service sharpener.")
