"""Tasks that call Muster's own services inside the machine's transaction, functions, and other executions."""

from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request, Service
from muster.services.dynamodb import SERVICE as DYNAMODB
from muster.services.sqs import SERVICE as SQS
from muster.transaction import Delivery, Transaction
from tests.services.stepfunctions.machinery import ROLE, Machinery, one, passing, task


def begin_invocation(tx: Transaction, request: Request) -> Answer:
    """A function service that answers at once: what it is sent, or the failure it is asked for."""
    if request["FunctionName"] == "missing":
        raise ServiceError("ResourceNotFoundException", "Function not found: missing", status=404)
    payload = orjson.loads(request["Payload"])
    answer: dict[str, Any] = {
        "InvocationId": "i",
        "StatusCode": 200,
        "FunctionError": None,
        "ExecutedVersion": "$LATEST",
    }
    answer["Payload"] = orjson.dumps({"got": payload}).decode()
    if isinstance(payload, dict) and "fail" in payload:
        answer["FunctionError"] = "Unhandled"
        answer["Payload"] = orjson.dumps({"errorType": payload["fail"], "errorMessage": "no"}).decode()
    reply = request["Reply"]
    tx.post(Delivery(reply["Kind"], reply["Subject"], answer))
    return {"InvocationId": "i"}


FUNCTIONS = Service(
    "lambda",
    {
        "BeginInvocation": Operation(
            begin_invocation,
            frozenset({"FunctionName", "Payload", "Reply", "ClientContext", "Qualifier"}),
            internal=True,
        )
    },
)


@pytest.fixture
def world() -> Machinery:
    world = Machinery([DYNAMODB, SQS, FUNCTIONS])
    world.call(
        "dynamodb",
        "CreateTable",
        TableName="files",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return world


def item(world: Machinery, key: str) -> Any:
    return world.call("dynamodb", "GetItem", TableName="files", Key={"id": {"S": key}}).get("Item")


def test_plain_texts_stand_for_attribute_values_in_the_optimised_integration(world: Machinery) -> None:
    put = task(
        "dynamodb:putItem",
        Parameters={"TableName": "files", "Item": {"id.$": "$.id", "kinds": ["a", "b"], "n": {"N": "1"}}},
        ResultPath=None,
    )
    assert world.output(world.begin(one("Put", put), {"id": "x"})) == {"id": "x"}
    assert item(world, "x") == {"id": {"S": "x"}, "kinds": {"SS": ["a", "b"]}, "n": {"N": "1"}}


def test_refused_condition_is_named_as_aws_names_it_and_can_be_caught(world: Machinery) -> None:
    parameters = {"TableName": "files", "Item": {"id": "x"}, "ConditionExpression": "attribute_not_exists(id)"}
    catch = [{"ErrorEquals": ["DynamoDB.ConditionalCheckFailedException"], "Next": "Seen"}]
    definition = one("Put", task("dynamodb:putItem", Parameters=parameters, Catch=catch), Seen=passing(Result="seen"))
    machine = world.create(definition)
    assert world.output(world.start(machine)) != "seen"
    assert world.output(world.start(machine)) == "seen"


def test_transaction_with_a_token_that_is_refused_fails_at_once_and_voids_the_token(world: Machinery) -> None:
    world.call("dynamodb", "PutItem", TableName="files", Item={"id": {"S": "done"}})
    parts = [
        {
            "ConditionCheck": {
                "TableName": "files",
                "Key": {"id": {"S": "done"}},
                "ConditionExpression": "attribute_not_exists(id)",
            }
        },
        {"Put": {"TableName": "files", "Item": {"id": {"S": "waiter"}, "token": {"S.$": "$$.Task.Token"}}}},
    ]
    register = task(
        "aws-sdk:dynamodb:transactWriteItems.waitForTaskToken",
        Parameters={"TransactItems": parts},
        Catch=[{"ErrorEquals": ["DynamoDb.TransactionCanceledException"], "Next": "On"}],
    )
    execution = world.begin(one("Register", register, On=passing(Result="went on")))
    assert world.output(execution) == "went on"
    assert item(world, "waiter") is None
    assert world.tokens() == []


def test_stored_token_is_answered_by_another_machine_with_an_object(world: Machinery) -> None:
    store = task(
        "dynamodb:updateItem.waitForTaskToken",
        Parameters={
            "TableName": "files",
            "Key": {"id": "x"},
            "UpdateExpression": "SET #t = :token",
            "ExpressionAttributeNames": {"#t": "token"},
            "ExpressionAttributeValues": {":token.$": "$$.Task.Token"},
        },
        ResultPath=None,
    )
    waiting = world.begin(
        one(
            "Wait for it",
            store,
        ),
        {"kept": True},
    )
    read = task(
        "dynamodb:getItem",
        Parameters={"TableName": "files", "Key": {"id": "x"}, "ConsistentRead": True},
        ResultSelector={"token.$": "$.Item.token.S"},
        Next="Tell",
    )
    tell = task(
        "aws-sdk:sfn:sendTaskSuccess", Parameters={"TaskToken.$": "$.token", "Output": {"by": "hand"}}, ResultPath=None
    )
    world.output(world.begin(one("Read", read, Tell=tell)))
    assert world.output(waiting) == {"kept": True}


def test_object_where_text_is_wanted_becomes_json_text(world: Machinery) -> None:
    queue = world.call("sqs", "CreateQueue", QueueName="q")["QueueUrl"]
    send = task("sqs:sendMessage", Parameters={"QueueUrl": queue, "MessageBody": {"a.$": "$.a"}})
    assert "MessageId" in world.output(world.begin(one("Send", send), {"a": 1}))
    received = world.call("sqs", "ReceiveMessage", QueueUrl=queue)
    assert received["Messages"][0]["Body"] == '{"a":1}'


def test_effect_and_transition_are_one_commit(world: Machinery) -> None:
    put = task("dynamodb:putItem", Parameters={"TableName": "files", "Item": {"id": "x"}})
    machine = world.create(one("Put", put))
    world.call("stepfunctions", "StartExecution", stateMachineArn=machine)

    def broken(tx: Transaction) -> None:
        from muster.services.stepfunctions import running

        row = tx.one("SELECT arn FROM states_executions")
        assert row is not None
        running.begin(tx, running.row_of(tx, row["arn"]))  # type: ignore[arg-type]
        raise RuntimeError("crash before the commit")

    with pytest.raises(RuntimeError):
        world.change(broken)
    assert item(world, "x") is None
    world.settle()
    assert item(world, "x") is not None


def test_function_gets_its_payload_and_the_task_its_answer(world: Machinery) -> None:
    invoke = task(
        "lambda:invoke",
        Parameters={"FunctionName": "f", "Payload": {"v.$": "$.v"}},
        ResultSelector={"got.$": "$.Payload.got", "status.$": "$.StatusCode"},
    )
    execution = world.begin(one("Call", invoke), {"v": 1})
    assert world.output(execution) == {"got": {"v": 1}, "status": 200}
    assert world.types(execution)[2:5] == ["TaskScheduled", "TaskStarted", "TaskSucceeded"]


def test_bare_function_arn_has_the_input_as_payload_and_the_payload_as_result(world: Machinery) -> None:
    arn = "arn:aws:lambda:us-east-1:000000000000:function:f"
    execution = world.begin(one("Call", {"Type": "Task", "Resource": arn, "End": True}), {"v": 1})
    assert world.output(execution) == {"got": {"v": 1}}
    assert world.types(execution)[2:5] == [
        "LambdaFunctionScheduled",
        "LambdaFunctionStarted",
        "LambdaFunctionSucceeded",
    ]


def test_failing_function_names_its_own_error(world: Machinery) -> None:
    invoke = task("lambda:invoke", Parameters={"FunctionName": "f", "Payload.$": "$"})
    error, cause = world.failure(world.begin(one("Call", invoke), {"fail": "ValueError"}))
    assert error == "ValueError"
    assert orjson.loads(cause or "")["errorMessage"] == "no"
    missing = task("lambda:invoke", Parameters={"FunctionName": "missing"})
    assert world.failure(world.begin(one("Call", missing)))[0] == "Lambda.ResourceNotFoundException"


@pytest.mark.parametrize(("pattern", "shown"), [("sync", '{"n":1}'), ("sync:2", {"n": 1})])
def test_parent_waits_for_its_child_and_gets_its_output(world: Machinery, pattern: str, shown: Any) -> None:
    sleep = {"Type": "Wait", "Seconds": 5, "Next": "Done"}
    child = world.create(one("Sleep", sleep, Done=passing(Result={"n": 1})))
    parameters = {"StateMachineArn": child, "Input": {"x": 1}}
    execution = world.begin(one("Run", task(f"states:startExecution.{pattern}", Parameters=parameters)))
    assert world.types(execution)[-1] == "TaskSubmitted"
    world.pass_time(5)
    assert world.output(execution)["Output"] == shown


def test_failed_child_fails_the_parents_task(world: Machinery) -> None:
    child = world.create(one("Fail", {"Type": "Fail", "Error": "Bad", "Cause": "x"}))
    run = task("states:startExecution.sync:2", Parameters={"StateMachineArn": child})
    error, cause = world.failure(world.begin(one("Run", run)))
    assert error == "States.TaskFailed"
    assert orjson.loads(cause or "")["Error"] == "Bad"


def test_fixed_child_name_makes_the_second_parent_fail_and_a_built_one_does_not(world: Machinery) -> None:
    """sfn-names-03"""
    child = world.create(one("A", passing()))
    fixed = task("states:startExecution.sync", Parameters={"StateMachineArn": child, "Name": "X"})
    machine = world.create(one("Run", fixed))
    world.output(world.start(machine))
    assert world.failure(world.start(machine))[0] == "StepFunctions.ExecutionAlreadyExistsException"
    built = {"StateMachineArn": child, "Name.$": "States.Format('{}-{}', $.id, $.attempt)"}
    machine = world.create(one("Run", task("states:startExecution.sync", Parameters=built)))
    world.output(world.start(machine, {"id": "2023_10", "attempt": 1}))
    world.output(world.start(machine, {"id": "2023_10", "attempt": 2}))


def test_parameter_the_service_does_not_know_fails_the_execution_by_name(world: Machinery) -> None:
    put = task("dynamodb:putItem", Parameters={"TableName": "files", "Item": {"id": "x"}, "Itm": 1})
    error, cause = world.failure(world.begin(one("Put", put)))
    assert error == "States.Runtime"
    assert '"Itm" is not supported' in (cause or "")


def test_resource_of_a_service_muster_lacks_is_refused_at_creation(world: Machinery) -> None:
    definition = orjson.dumps(one("A", task("aws-sdk:secretsmanager:listSecrets", Parameters={}))).decode()
    with pytest.raises(ServiceError, match="secretsmanager"):
        world.call("stepfunctions", "CreateStateMachine", name="m", definition=definition, roleArn=ROLE)
