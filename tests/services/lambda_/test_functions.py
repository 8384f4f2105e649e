"""Functions, versions, aliases, permissions, tags: what the API says back."""

import base64
import hashlib
import io
import zipfile
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.services.lambda_ import SERVICE
from muster.testing import World

ROLE = "arn:aws:iam::000000000000:role/any"
ARN = "arn:aws:lambda:us-east-1:000000000000:function"


def zipped(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.py", text)
    return buffer.getvalue()


@pytest.fixture
def world() -> World:
    return World([SERVICE])


def create(world: World, name: str = "parse", **more: Any) -> dict[str, Any]:
    request = {
        "FunctionName": name,
        "Runtime": "python3.11",
        "Handler": "app.handler",
        "Role": ROLE,
        "Code": {"ZipFile": zipped(app="def handler(event, context): pass")},
    }
    return world.call("lambda", "CreateFunction", **{**request, **more})


def refusal(world: World, operation: str, /, **request: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        world.call("lambda", operation, **request)
    return caught.value


def test_new_function_shows_aws_defaults_and_the_hash_of_its_code(world: World) -> None:
    code = zipped(app="x = 1")
    shown = create(world, Code={"ZipFile": code}, Environment={"Variables": {"A": "1"}})
    assert shown["FunctionArn"] == f"{ARN}:parse"
    assert shown["CodeSha256"] == base64.b64encode(hashlib.sha256(code).digest()).decode()
    assert (shown["CodeSize"], shown["Timeout"], shown["MemorySize"]) == (len(code), 3, 128)
    assert (shown["State"], shown["LastUpdateStatus"], shown["Version"]) == ("Active", "Successful", "$LATEST")
    assert shown["Environment"] == {"Variables": {"A": "1"}}
    assert shown["LoggingConfig"] == {"LogFormat": "Text", "LogGroup": "/aws/lambda/parse"}
    assert shown["LastModified"].endswith("+0000")


@pytest.mark.parametrize("name", ["parse", "function:parse", "000000000000:function:parse", f"{ARN}:parse"])
def test_function_is_found_by_every_form_of_its_name(world: World, name: str) -> None:
    create(world)
    assert world.call("lambda", "GetFunctionConfiguration", FunctionName=name)["FunctionName"] == "parse"


def test_missing_function_is_refused_with_its_arn(world: World) -> None:
    error = refusal(world, "GetFunction", FunctionName="nobody")
    assert (error.code, error.message) == ("ResourceNotFoundException", f"Function not found: {ARN}:nobody")
    error = refusal(world, "GetFunction", FunctionName="nobody", Qualifier="live")
    assert error.message == f"Function not found: {ARN}:nobody:live"


def test_second_function_of_a_name_is_refused(world: World) -> None:
    create(world)
    with pytest.raises(ServiceError, match="Function already exist: parse"):
        create(world)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"Runtime": "java21"}, "the runtime java21"),
        ({"PackageType": "Image"}, "PackageType Image"),
        ({"Layers": ["arn:aws:lambda:us-east-1:000000000000:layer:a:1"]}, "Layers"),
        ({"VpcConfig": {"SubnetIds": ["subnet-1"]}}, "VpcConfig"),
        ({"SnapStart": {"ApplyOn": "PublishedVersions"}}, "SnapStart"),
        ({"Code": {"ImageUri": "repository/image"}}, "ImageUri"),
        ({"KMSKeyArn": "arn:aws:kms:us-east-1:000000000000:key/a"}, "KMSKeyArn"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(world: World, more: dict[str, Any], says: str) -> None:
    with pytest.raises(ServiceError, match=says) as caught:
        create(world, **more)
    assert caught.value.code == "NotImplemented"
    assert world.call("lambda", "ListFunctions")["Functions"] == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"Timeout": 901}, "ValidationException"),
        ({"MemorySize": 127}, "InvalidParameterValueException"),
        ({"Environment": {"Variables": {"AWS_REGION": "x"}}}, "InvalidParameterValueException"),
        ({"Environment": {"Variables": {"A": "x" * 4096}}}, "InvalidParameterValueException"),
        ({"Code": {"ZipFile": b"no zip"}}, "InvalidParameterValueException"),
        ({"Code": {}}, "InvalidParameterValueException"),
        ({"DeadLetterConfig": {"TargetArn": "nonsense"}}, "InvalidParameterValueException"),
    ],
)
def test_what_is_beyond_limits_is_refused_with_aws_code(world: World, more: dict[str, Any], code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        create(world, **more)
    assert caught.value.code == code


def test_log_levels_belong_to_the_json_format(world: World) -> None:
    shown = create(world, LoggingConfig={"LogFormat": "JSON", "ApplicationLogLevel": "DEBUG"})
    assert shown["LoggingConfig"] == {
        "LogFormat": "JSON",
        "LogGroup": "/aws/lambda/parse",
        "ApplicationLogLevel": "DEBUG",
        "SystemLogLevel": "INFO",
    }
    error = refusal(
        world,
        "UpdateFunctionConfiguration",
        FunctionName="parse",
        LoggingConfig={"LogFormat": "Text", "SystemLogLevel": "WARN"},
    )
    assert error.code == "InvalidParameterValueException"
    shown = world.call(
        "lambda", "UpdateFunctionConfiguration", FunctionName="parse", LoggingConfig={"LogFormat": "Text"}
    )
    assert shown["LoggingConfig"] == {"LogFormat": "Text", "LogGroup": "/aws/lambda/parse"}


def test_empty_blocks_ask_for_nothing(world: World) -> None:
    shown = create(world, VpcConfig={"SubnetIds": [], "SecurityGroupIds": []}, Layers=[], Environment={})
    assert not {"VpcConfig", "Layers", "Environment"} & shown.keys()


def test_change_of_settings_keeps_what_it_does_not_name_and_changes_the_revision(world: World) -> None:
    before = create(world, Timeout=10, Description="first")
    after = world.call("lambda", "UpdateFunctionConfiguration", FunctionName="parse", MemorySize=512)
    assert (after["Timeout"], after["Description"], after["MemorySize"]) == (10, "first", 512)
    assert after["RevisionId"] != before["RevisionId"]
    error = refusal(
        world, "UpdateFunctionConfiguration", FunctionName="parse", Timeout=1, RevisionId=before["RevisionId"]
    )
    assert error.code == "PreconditionFailedException"


def test_published_version_stays_as_it_was(world: World) -> None:
    first = create(world, Publish=True)
    assert (first["Version"], first["FunctionArn"]) == ("1", f"{ARN}:parse:1")
    world.call("lambda", "UpdateFunctionCode", FunctionName="parse", ZipFile=zipped(app="y = 2"))
    assert world.call("lambda", "PublishVersion", FunctionName="parse")["Version"] == "2"
    assert world.call("lambda", "PublishVersion", FunctionName="parse")["Version"] == "2", "nothing has changed"
    shown = world.call("lambda", "GetFunction", FunctionName="parse", Qualifier="1")["Configuration"]
    assert shown["CodeSha256"] == first["CodeSha256"]
    versions = world.call("lambda", "ListVersionsByFunction", FunctionName="parse")["Versions"]
    assert [version["Version"] for version in versions] == ["$LATEST", "1", "2"]


def test_code_is_kept_once_and_only_as_long_as_a_version_uses_it(world: World) -> None:
    create(world, Publish=True)
    create(world, "other")
    assert len(world.rows("SELECT sha256 FROM lambda_code")) == 1
    world.call("lambda", "DeleteFunction", FunctionName="parse")
    assert len(world.rows("SELECT sha256 FROM lambda_code")) == 1
    world.call("lambda", "UpdateFunctionCode", FunctionName="other", ZipFile=zipped(app="z = 3"))
    assert len(world.rows("SELECT sha256 FROM lambda_code")) == 1
    world.call("lambda", "DeleteFunction", FunctionName="other")
    assert world.rows("SELECT sha256 FROM lambda_code") == []


def test_functions_are_listed_by_pages(world: World) -> None:
    for number in range(5):
        create(world, f"f{number}")
    first = world.call("lambda", "ListFunctions", MaxItems=3)
    rest = world.call("lambda", "ListFunctions", MaxItems=3, Marker=first["NextMarker"])
    names = [each["FunctionName"] for each in first["Functions"] + rest["Functions"]]
    assert names == [f"f{number}" for number in range(5)]
    assert "NextMarker" not in rest


def test_alias_names_a_version_and_protects_it(world: World) -> None:
    create(world, Publish=True)
    alias = world.call("lambda", "CreateAlias", FunctionName="parse", Name="live", FunctionVersion="1")
    assert (alias["AliasArn"], alias["FunctionVersion"]) == (f"{ARN}:parse:live", "1")
    shown = world.call("lambda", "GetFunctionConfiguration", FunctionName="parse", Qualifier="live")
    assert (shown["Version"], shown["FunctionArn"]) == ("1", f"{ARN}:parse:live")
    assert refusal(world, "DeleteFunction", FunctionName="parse", Qualifier="1").code == "ResourceConflictException"
    world.call("lambda", "UpdateAlias", FunctionName="parse", Name="live", FunctionVersion="$LATEST")
    world.call("lambda", "DeleteFunction", FunctionName="parse", Qualifier="1")
    assert [each["Name"] for each in world.call("lambda", "ListAliases", FunctionName="parse")["Aliases"]] == ["live"]
    world.call("lambda", "DeleteAlias", FunctionName="parse", Name="live")
    error = refusal(world, "GetAlias", FunctionName="parse", Name="live")
    assert error.message == f"Cannot find alias arn: {ARN}:parse:live"


def test_permission_is_recorded_shown_and_removed(world: World) -> None:
    create(world)
    request = {
        "FunctionName": "parse",
        "StatementId": "bucket",
        "Action": "lambda:InvokeFunction",
        "Principal": "s3.amazonaws.com",
        "SourceArn": "arn:aws:s3:::uploads",
    }
    world.call("lambda", "AddPermission", **request)
    policy = world.call("lambda", "GetPolicy", FunctionName="parse")["Policy"]
    assert '"Service":"s3.amazonaws.com"' in policy
    assert '"ArnLike":{"AWS:SourceArn":"arn:aws:s3:::uploads"}' in policy
    assert refusal(world, "AddPermission", **request).code == "ResourceConflictException"
    world.call("lambda", "RemovePermission", FunctionName="parse", StatementId="bucket")
    assert refusal(world, "GetPolicy", FunctionName="parse").code == "ResourceNotFoundException"


def test_tags_are_added_taken_away_and_shown(world: World) -> None:
    create(world, Tags={"team": "sales"})
    world.call("lambda", "TagResource", Resource=f"{ARN}:parse", Tags={"stage": "test"})
    assert world.call("lambda", "GetFunction", FunctionName="parse")["Tags"] == {"team": "sales", "stage": "test"}
    world.call("lambda", "UntagResource", Resource=f"{ARN}:parse", TagKeys=["team"])
    assert world.call("lambda", "ListTags", Resource=f"{ARN}:parse")["Tags"] == {"stage": "test"}


def test_reserved_concurrency_leaves_a_hundred_unreserved(world: World) -> None:
    create(world)
    world.call("lambda", "PutFunctionConcurrency", FunctionName="parse", ReservedConcurrentExecutions=900)
    shown = world.call("lambda", "GetFunction", FunctionName="parse")
    assert shown["Concurrency"] == {"ReservedConcurrentExecutions": 900}
    error = refusal(world, "PutFunctionConcurrency", FunctionName="parse", ReservedConcurrentExecutions=901)
    assert "below its minimum value of [100]" in error.message
    world.call("lambda", "DeleteFunctionConcurrency", FunctionName="parse")
    assert world.call("lambda", "GetFunctionConcurrency", FunctionName="parse") == {}


def test_event_invoke_config_is_kept_per_qualifier(world: World) -> None:
    create(world, Publish=True)
    error = refusal(world, "GetFunctionEventInvokeConfig", FunctionName="parse")
    assert error.code == "ResourceNotFoundException"
    world.call("lambda", "PutFunctionEventInvokeConfig", FunctionName="parse", MaximumRetryAttempts=0)
    world.call("lambda", "UpdateFunctionEventInvokeConfig", FunctionName="parse", MaximumEventAgeInSeconds=90)
    shown = world.call("lambda", "GetFunctionEventInvokeConfig", FunctionName="parse")
    assert (shown["MaximumRetryAttempts"], shown["MaximumEventAgeInSeconds"]) == (0, 90)
    assert shown["FunctionArn"] == f"{ARN}:parse:$LATEST"
    s3 = {"OnFailure": {"Destination": "arn:aws:s3:::bucket"}}
    error = refusal(world, "PutFunctionEventInvokeConfig", FunctionName="parse", DestinationConfig=s3)
    assert error.code == "NotImplemented"
    world.call("lambda", "DeleteFunctionEventInvokeConfig", FunctionName="parse")
    error = refusal(world, "GetFunctionEventInvokeConfig", FunctionName="parse")
    assert error.code == "ResourceNotFoundException"
