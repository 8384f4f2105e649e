"""Which service, protocol and operation a request is taken for."""

import pytest

from muster import models
from muster.errors import ServiceError
from muster.wire import routing
from muster.wire.message import Incoming
from muster.wire.signature import ANONYMOUS, Scope, scope_of

FORM = {"content-type": "application/x-www-form-urlencoded"}


def routed(
    method: str = "POST",
    path: str = "/",
    query: str = "",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    scope: Scope = ANONYMOUS,
) -> tuple[str, str, str]:
    incoming = Incoming(method, path, query, headers or {}, body)
    service, protocol = routing.service_of(incoming, scope)
    route = routing.route(incoming, service, protocol)
    return route.service, route.operation, route.protocol


def test_targets_and_signing_names_are_those_of_the_models() -> None:
    for prefix, service in routing.TARGETS.items():
        assert models.service(service).metadata["targetPrefix"] == prefix
    for name, service in routing.SIGNING_NAMES.items():
        if name != "s3express":
            assert models.service(service).signing_name == name
    for version, service in routing.VERSIONS.items():
        assert models.service(service).api_version == version


def test_target_names_service_and_operation() -> None:
    headers = {"x-amz-target": "DynamoDBStreams_20120810.ListStreams"}
    signed = Scope("AK", "dynamodb", "us-east-1")
    assert routed(headers=headers, scope=signed) == ("dynamodbstreams", "ListStreams", "json")
    assert routed(headers=headers) == ("dynamodbstreams", "ListStreams", "json")


def test_unsigned_form_is_told_by_its_version() -> None:
    body = b"Action=ListTopics&Version=2010-03-31"
    assert routed(headers=FORM, body=body) == ("sns", "ListTopics", "query")
    assert routed("GET", query="Action=GetCallerIdentity&Version=2011-06-15") == ("sts", "GetCallerIdentity", "query")


def test_the_addresses_in_sns_messages_lead_to_sns() -> None:
    for action in ("ConfirmSubscription", "Unsubscribe"):
        assert routed("GET", query=f"Action={action}&Token=t") == ("sns", action, "query")
    assert routed("GET", query="Action=DeleteTopic") == ("unknown", "DeleteTopic", "query")


def test_signed_form_to_sqs_speaks_the_historical_protocol() -> None:
    signed = Scope("AK", "sqs", "us-east-1")
    assert routed(headers=FORM, body=b"Action=ListQueues", scope=signed) == ("sqs", "ListQueues", "query")


def test_cloudwatch_is_understood_in_each_of_its_protocols() -> None:
    signed = Scope("AK", "monitoring", "us-east-1")
    target = {"x-amz-target": "GraniteServiceVersion20100801.ListMetrics"}
    cbor = {"smithy-protocol": "rpc-v2-cbor"}
    path = "/service/GraniteServiceVersion20100801/operation/ListMetrics"
    assert routed(headers=target, scope=signed) == ("cloudwatch", "ListMetrics", "json")
    assert routed(headers=FORM, body=b"Action=ListMetrics", scope=signed) == ("cloudwatch", "ListMetrics", "query")
    assert routed(path=path, headers=cbor, scope=signed) == ("cloudwatch", "ListMetrics", "smithy-rpc-v2-cbor")


@pytest.mark.parametrize(
    ("method", "path", "query", "operation"),
    [
        ("GET", "/2015-03-31/functions/", "", "ListFunctions"),
        ("GET", "/2015-03-31/functions", "MaxItems=3", "ListFunctions"),
        ("POST", "/2015-03-31/functions/f/invocations", "Qualifier=1", "Invoke"),
        ("GET", "/2018-10-31/layers", "", "ListLayers"),
        ("GET", "/2018-10-31/layers", "find=LayerVersion&Arn=x", "GetLayerVersionByArn"),
        ("GET", "/2019-09-30/functions/f/provisioned-concurrency", "List=ALL", "ListProvisionedConcurrencyConfigs"),
        ("GET", "/2019-09-30/functions/f/provisioned-concurrency", "Qualifier=1", "GetProvisionedConcurrencyConfig"),
    ],
)
def test_path_of_lambda_names_its_operation(method: str, path: str, query: str, operation: str) -> None:
    assert routed(method, path, query) == ("lambda", operation, "rest-json")


def test_value_in_a_path_is_decoded_after_the_path_is_cut() -> None:
    path = "/2017-03-31/tags/arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Aa%2Fb"
    route = routing.route(Incoming("GET", path, "", {}), "lambda", "rest-json")
    assert route.operation == "ListTags"
    assert list(route.uri.values()) == ["arn:aws:lambda:us-east-1:000000000000:function:a/b"]


def test_path_that_lambda_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(ServiceError) as refused:
        routed("GET", "/2015-03-31/no-such-thing/")
    assert refused.value.code == "UnknownOperationException"
    assert "GET /2015-03-31/no-such-thing/" in refused.value.message


@pytest.mark.parametrize(
    ("method", "path", "query", "headers"),
    [
        ("GET", "/bucket/key", "", {}),
        ("PUT", "/2015-03-31", "", {}),
        ("POST", "/bucket", "", {"content-type": "multipart/form-data; boundary=x"}),
        ("PUT", "/bucket/key", "", FORM),
        ("PUT", "/key", "Action=x", {"host": "bucket.localhost:4566"}),
    ],
)
def test_what_no_protocol_claims_is_for_s3(method: str, path: str, query: str, headers: dict[str, str]) -> None:
    assert routed(method, path, query, headers)[0] == "s3"


# Signatures ----------------------------------------------------------------------------------------------------------

CREDENTIAL = "Credential=AKID/20260101/us-east-1/sqs/aws4_request"
REST = "SignedHeaders=host;x-amz-date, Signature=0123"


def test_scope_is_read_from_the_header() -> None:
    headers = {"authorization": f"AWS4-HMAC-SHA256 {CREDENTIAL}, {REST}"}
    assert scope_of(headers, "") == Scope("AKID", "sqs", "us-east-1")
    assert scope_of({"authorization": f"AWS4-HMAC-SHA256 {CREDENTIAL},{REST}"}, "").service == "sqs"


def test_access_key_may_hold_slashes() -> None:
    headers = {"authorization": f"AWS4-HMAC-SHA256 {CREDENTIAL.replace('AKID', 'a/b/c')}, {REST}"}
    assert scope_of(headers, "").access_key == "a/b/c"


def test_signature_for_many_regions_has_no_region() -> None:
    headers = {"authorization": f"AWS4-ECDSA-P256-SHA256 Credential=AKID/20260101/s3/aws4_request, {REST}"}
    assert scope_of(headers, "") == Scope("AKID", "s3", "")


def test_scope_is_read_from_a_presigned_url() -> None:
    query = (
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20260101%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=0123"
    )
    assert scope_of({}, query) == Scope("AKID", "s3", "us-east-1")
    assert scope_of({}, "AWSAccessKeyId=AKID&Signature=x&Expires=1").service == "s3"


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Basic dXNlcjpwYXNz",
        "AWS4-HMAC-SHA256",
        f"AWS4-HMAC-SHA256 {CREDENTIAL}",
        f"AWS4-HMAC-SHA256 {REST}",
        f"AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/sqs, {REST}",
        f"AWS4-HMAC-SHA256 Credential=AKID/2026/us-east-1/sqs/aws4_request, {REST}",
        f"AWS4-HMAC-SHA256 Credential=/20260101/us-east-1/sqs/aws4_request, {REST}",
        f"AWS4-HMAC-SHA256 Credential=AKID/20260101//sqs/aws4_request, {REST}",
        f"AWS4-HMAC-SHA256 {CREDENTIAL}, SignedHeaders=host, Signature=0123",
        f"AWS4-HMAC-SHA256 {CREDENTIAL}, {REST}, nonsense",
        "AWS AKID",
    ],
)
def test_signature_that_is_not_one_is_refused(authorization: str) -> None:
    with pytest.raises(ServiceError) as refused:
        scope_of({"authorization": authorization}, "")
    assert refused.value.code == "IncompleteSignature"


def test_presigned_url_without_its_signature_is_refused() -> None:
    with pytest.raises(ServiceError) as refused:
        scope_of({}, "X-Amz-Credential=AKID%2F20260101%2Fus-east-1%2Fs3%2Faws4_request")
    assert refused.value.code == "IncompleteSignature"
