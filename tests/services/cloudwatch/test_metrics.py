"""What is measured: put by users and summed up, or read from services; and what is refused by name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services import cloudwatch, lambda_, sqs, stepfunctions
from muster.services.cloudwatch.points import Statistics, gauge, of_values
from muster.testing import World

ALL = ["SampleCount", "Average", "Sum", "Minimum", "Maximum"]


@pytest.fixture
def world() -> World:
    made = World([cloudwatch.SERVICE, lambda_.SERVICE, sqs.SERVICE, stepfunctions.SERVICE])
    made.clock.advance(60 - made.clock.now() % 60)
    return made


def put(world: World, **datum: Any) -> None:
    world.call("cloudwatch", "PutMetricData", Namespace="Shop", MetricData=[{"MetricName": "Latency", **datum}])


def statistics(world: World, *, seconds: float = 60, period: int = 60, **more: Any) -> list[dict[str, Any]]:
    now = world.clock.now()
    asked = {
        "Namespace": "Shop",
        "MetricName": "Latency",
        "StartTime": now - seconds,
        "EndTime": now + 1,
        "Period": period,
        "Statistics": ALL,
        **more,
    }
    return list(world.call("cloudwatch", "GetMetricStatistics", **asked)["Datapoints"])


def test_values_of_a_minute_are_summed_up(world: World) -> None:
    put(world, Value=3.0)
    put(world, Values=[1.0, 5.0], Counts=[2.0, 1.0])
    put(world, StatisticValues={"SampleCount": 2.0, "Sum": 10.0, "Minimum": 0.5, "Maximum": 9.5})
    [point] = statistics(world)
    assert [point[name] for name in ALL] == [6.0, 20.0 / 6, 20.0, 0.5, 9.5]
    assert (point["Timestamp"], point["Unit"]) == (world.clock.now(), "None")


def test_minutes_are_joined_into_periods(world: World) -> None:
    world.clock.advance(300 - world.clock.now() % 300)
    for value in (1.0, 2.0):
        put(world, Value=value)
        world.clock.advance(60)
    assert [point["Sum"] for point in statistics(world, seconds=200, period=60)] == [1.0, 2.0]
    assert [point["Sum"] for point in statistics(world, seconds=200, period=300)] == [3.0]


def test_high_resolution_keeps_seconds_apart(world: World) -> None:
    for _ in range(2):
        put(world, Value=1.0, StorageResolution=1)
        world.clock.advance(1)
    assert len(statistics(world, seconds=10, period=1)) == 2


def test_another_set_of_dimensions_is_another_metric(world: World) -> None:
    dimensions = [{"Name": "Team", "Value": "a"}]
    put(world, Value=1.0, Dimensions=dimensions)
    assert statistics(world) == []
    assert len(statistics(world, Dimensions=dimensions)) == 1
    [listed] = world.call("cloudwatch", "ListMetrics", Namespace="Shop")["Metrics"]
    assert listed == {"Namespace": "Shop", "MetricName": "Latency", "Dimensions": dimensions}


def test_points_are_forgotten_after_fifteen_days(world: World) -> None:
    put(world, Value=1.0)
    world.clock.advance(15 * 86400 + 3600)
    world.settle()
    assert world.rows("SELECT 1 FROM cloudwatch_points") == []
    assert world.rows("SELECT 1 FROM deliveries") == []


def query(world: World, **more: Any) -> dict[str, Any]:
    stat = {"Metric": {"Namespace": "Shop", "MetricName": "Latency"}, "Period": 60, "Stat": "Sum"}
    asked = {"Id": "a", "MetricStat": stat, **more}
    now = world.clock.now()
    return world.call(
        "cloudwatch", "GetMetricData", MetricDataQueries=[asked], StartTime=now - 600, EndTime=now + 1, MaxDatapoints=2
    )


def test_get_metric_data_answers_the_newest_first_page_by_page(world: World) -> None:
    for value in (1.0, 2.0, 3.0):
        put(world, Value=value)
        world.clock.advance(60)
    answer = query(world)
    [result] = answer["MetricDataResults"]
    assert (result["Values"], result["StatusCode"], result["Label"]) == ([3.0, 2.0], "PartialData", "Latency")
    assert answer["NextToken"]


@pytest.mark.parametrize("more", [{"Expression": "SUM(METRICS())", "MetricStat": None}, {"AccountId": "1"}])
def test_what_get_metric_data_cannot_do_is_refused_by_name(world: World, more: dict[str, Any]) -> None:
    with pytest.raises(ServiceError) as refusal:
        query(world, **more)
    assert refusal.value.code == "NotImplemented"
    assert next(iter(more)) in refusal.value.message


@pytest.mark.parametrize(
    ("datum", "code"),
    [
        ({}, "MissingParameter"),
        ({"Value": float("nan")}, "InvalidParameterValue"),
        ({"Value": 1e300}, "InvalidParameterValue"),
        ({"Value": 1.0, "Values": [1.0]}, "InvalidParameterCombination"),
        ({"Values": [1.0, 2.0], "Counts": [1.0]}, "InvalidParameterCombination"),
        ({"Value": 1.0, "StorageResolution": 5}, "InvalidParameterValue"),
        ({"Value": 1.0, "Timestamp": 0.0}, "InvalidParameterValue"),
    ],
)
def test_a_datum_that_says_nothing_sensible_is_refused(world: World, datum: dict[str, Any], code: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        put(world, **datum)
    assert refusal.value.code == code


def test_more_than_1440_points_are_refused(world: World) -> None:
    with pytest.raises(ServiceError) as refusal:
        statistics(world, seconds=1440 * 60)
    assert refusal.value.message.startswith("You have requested up to 1,441 datapoints, which exceeds the limit")


def service_sum(world: World, namespace: str, metric: str, name: str, value: str) -> list[float]:
    dimensions = [{"Name": name, "Value": value}]
    found = statistics(world, seconds=120, Namespace=namespace, MetricName=metric, Dimensions=dimensions)
    return [point["Sum"] for point in found]


def test_queues_are_measured_when_asked(world: World) -> None:
    url = world.call("sqs", "CreateQueue", QueueName="orders")["QueueUrl"]
    for delay in (0, 0, 60):
        world.call("sqs", "SendMessage", QueueUrl=url, MessageBody="m", DelaySeconds=delay)
    world.clock.advance(7)
    assert service_sum(world, "AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "orders") == [2.0]
    assert service_sum(world, "AWS/SQS", "ApproximateNumberOfMessagesDelayed", "QueueName", "orders") == [1.0]
    assert service_sum(world, "AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", "orders") == [7.0]
    assert service_sum(world, "AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", "none") == []


def test_executions_are_counted_from_their_rows(world: World) -> None:
    made = world.call(
        "stepfunctions",
        "CreateStateMachine",
        name="m",
        roleArn="arn:aws:iam::000000000000:role/r",
        definition='{"StartAt": "F", "States": {"F": {"Type": "Fail"}}}',
    )
    machine = made["stateMachineArn"]
    for _ in range(2):
        world.call("stepfunctions", "StartExecution", stateMachineArn=machine)
    world.settle()
    world.clock.advance(1)
    assert service_sum(world, "AWS/States", "ExecutionsStarted", "StateMachineArn", machine) == [2.0]
    assert service_sum(world, "AWS/States", "ExecutionsFailed", "StateMachineArn", machine) == [2.0]
    assert service_sum(world, "AWS/States", "ExecutionsTimedOut", "StateMachineArn", machine) == []


def ended(world: World, id_: str, status: str, attempts: int) -> None:
    now = world.clock.now()
    world.change(
        lambda tx: tx.run(
            "INSERT INTO lambda_invocations (id, function, version, type, urgent, status, attempts, created_at,"
            " queued_at, ended_at) VALUES (:id, 'f', '$LATEST', 'Event', 0, :status, :attempts, :now, :now, :now)",
            id=id_,
            status=status,
            attempts=attempts,
            now=now,
        )
    )


def test_each_attempt_of_a_function_is_an_invocation_and_an_alarm_remembers_them(world: World) -> None:
    asked = {
        "AlarmName": "errors",
        "Namespace": "AWS/Lambda",
        "MetricName": "Errors",
        "Dimensions": [{"Name": "FunctionName", "Value": "f"}],
        "Statistic": "Sum",
        "Period": 300,
        "EvaluationPeriods": 1,
        "Threshold": 4.0,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    }
    world.clock.advance(300 - world.clock.now() % 300)
    world.call("cloudwatch", "PutMetricAlarm", **asked)
    world.settle()
    ended(world, "a", "succeeded", 2)
    ended(world, "b", "failed", 3)
    world.pass_time(1)
    assert service_sum(world, "AWS/Lambda", "Invocations", "FunctionName", "f") == [5.0]
    assert service_sum(world, "AWS/Lambda", "Errors", "FunctionName", "f") == [4.0]
    world.pass_time(120)
    world.change(lambda tx: tx.run("DELETE FROM lambda_invocations"))
    world.pass_time(180)
    [alarm] = world.call("cloudwatch", "DescribeAlarms")["MetricAlarms"]
    assert alarm["StateValue"] == "ALARM"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"Namespace": "AWS/Lambda", "MetricName": "Throttles"}, "Throttles"),
        ({"ExtendedStatistic": "p99", "Statistic": None}, "ExtendedStatistic"),
        ({"Metrics": [{"Id": "a"}]}, "Metrics"),
        ({"ComparisonOperator": "GreaterThanUpperThreshold"}, "GreaterThanUpperThreshold"),
        ({"AlarmActions": ["arn:aws:automate:us-east-1:ec2:stop"]}, "automate"),
    ],
)
def test_an_alarm_that_cannot_be_evaluated_is_refused_by_name(world: World, more: dict[str, Any], named: str) -> None:
    asked = {
        "AlarmName": "a",
        "Namespace": "Shop",
        "MetricName": "Latency",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1.0,
        "ComparisonOperator": "GreaterThanThreshold",
        **more,
    }
    with pytest.raises(ServiceError) as refusal:
        world.call(
            "cloudwatch", "PutMetricAlarm", **{name: value for name, value in asked.items() if value is not None}
        )
    assert refusal.value.code == "NotImplemented"
    assert named in refusal.value.message


numbers = st.integers(-1000, 1000).map(float)


@given(st.lists(numbers, min_size=1), st.lists(numbers, min_size=1))
def test_joined_statistics_are_those_of_all_values(left: list[float], right: list[float]) -> None:
    def known(values: list[float]) -> Statistics:
        return of_values(values, [1.0] * len(values))

    assert known(left).joined(known(right)) == known(left + right)
    assert gauge(left[0]) == known(left[:1])
