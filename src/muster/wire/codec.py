"""The codec: a service's operations in each protocol it speaks, from bytes to a request and from an answer to bytes.

botocore's models describe how a client writes and reads; this reads and writes them from the other side. Everything
about an operation is worked out when it is first used and kept. Keeps true: what a client of the model sent is what the
service is asked, and what the service answered is what that client reads. Does not know about connections, routing or
S3's streaming.
"""

import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

import orjson
from botocore.model import OperationModel

from muster import models
from muster.errors import ServiceError
from muster.wire import cbor, form, historical, xml_shapes
from muster.wire.faults import fault
from muster.wire.json_shapes import JSON, Shapes
from muster.wire.message import Encoded, Incoming, Misread, malformed, query_pairs
from muster.wire.rest import AnswerWriter, Pairs, RequestReader

Headers = list[tuple[str, str]]


class Operation(Protocol):
    """One operation in one protocol."""

    def decode(self, incoming: Incoming, uri: Mapping[str, str]) -> dict[str, Any]:
        """The request; ServiceError(SerializationException) when it cannot be read."""
        ...

    def encode(self, answer: Mapping[str, Any], request_id: str) -> Encoded:
        """The answer as the client expects it."""
        ...


# What S3's own wire uses ------------------------------------------------------------------------------------------


def decode_parameters(
    operation: OperationModel, uri: Mapping[str, str], query: Pairs, headers: Mapping[str, str], body: bytes
) -> dict[str, Any]:
    """An operation's request from its parts.

    `uri` holds the decoded values by their names in the operation's requestUri (`Bucket`, `Key`), `query` the decoded
    pairs, `headers` the values by names in small letters. An empty body is no body. ServiceError(MalformedXML) when
    the body cannot be read, InvalidArgument when a value elsewhere cannot.
    """
    service = operation.service_model.service_name
    try:
        return _rest(service, operation.name)[0].read(uri, query, headers, body)
    except Misread as problem:
        code = "MalformedXML" if service == "s3" and body else "InvalidArgument" if service == "s3" else None
        raise (ServiceError(code, str(problem), status=400) if code else malformed(str(problem))) from None
    except RecursionError:
        raise malformed("The request is nested too deeply") from None


def encode_answer(operation: OperationModel, answer: Mapping[str, Any]) -> Encoded:
    """Status, headers and body of an answer, without request ids. A payload that is not bytes is passed on as it is."""
    return _rest(operation.service_model.service_name, operation.name)[1].write(answer)


def encode_error(service: str, error: ServiceError, request_id: str, protocol: str | None = None) -> Encoded:
    """An error in the shape of the service's protocol (or of `protocol`, where the client chose another one)."""
    return _ERRORS[protocol or protocol_of(service)](service, error, request_id)


@cache
def protocol_of(service: str) -> str:
    """The protocol that clients of the service speak by default."""
    try:
        protocol: str = models.service(service).metadata["protocol"]
    except ServiceError:
        return "json"
    return protocol if protocol in _ERRORS else "json"


@cache
def operation(service: str, name: str, protocol: str) -> Operation:
    """The codec of one operation in one protocol."""
    return _PROTOCOLS[protocol](service, name)


# json ---------------------------------------------------------------------------------------------------------------


def parse_json(body: bytes) -> Any:
    """A JSON body; no body is an empty object. Misread when it is no JSON."""
    if not body:
        return {}
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        raise Misread(f"The body is not JSON: {problem}") from None


@cache
def _json_shapes(service: str) -> Shapes:
    return Shapes(JSON)


@cache
def _json_type(service: str) -> str:
    return f"application/x-amz-json-{models.service(service).metadata.get('jsonVersion', '1.0')}"


class _Json:
    def __init__(self, service: str, name: str) -> None:
        model = models.operation(service, name)
        shapes = _json_shapes(service)
        self._read = shapes.reader(model.input_shape) if model.input_shape is not None else _nothing
        self._write = shapes.writer(model.output_shape) if model.output_shape is not None else None
        self._type = _json_type(service)
        self._crc = service in ("dynamodb", "dynamodbstreams")
        self._empty = model.output_shape is None

    def decode(self, incoming: Incoming, uri: Mapping[str, str]) -> dict[str, Any]:
        request: dict[str, Any] = self._read(parse_json(incoming.body))
        return request

    def encode(self, answer: Mapping[str, Any], request_id: str) -> Encoded:
        # An operation without an output shape answers nothing at all, as AWS's servers do.
        body = b"" if self._empty else orjson.dumps(answer if self._write is None else self._write(answer))
        headers = [("x-amzn-RequestId", request_id), ("Content-Type", self._type)]
        if self._crc:
            headers.append(("x-amz-crc32", str(zlib.crc32(body))))
        return Encoded(200, headers, body)


def _nothing(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# Where a service's JSON errors carry a namespace before their name. Clients cut it off.
_NAMESPACES = {
    "cloudwatch": "com.amazonaws.cloudwatch.v2010_08_01#",
    "dynamodb": "com.amazonaws.dynamodb.v20120810#",
    "dynamodbstreams": "com.amazonaws.dynamodb.v20120810#",
    "sqs": "com.amazonaws.sqs#",
}
_COMMON_NAMESPACE = "com.amazon.coral.service#"


def _json_members(service: str, error: ServiceError) -> tuple[int, str, dict[str, Any], Headers]:
    found = fault(service, error)
    members = found.members(error)
    if found.shape is not None:
        write = _json_shapes(service).structure_writer(found.shape.members)
        members = {found.message_member: error.message, **write(members)}
    headers: Headers = []
    if service in ("sqs", "cloudwatch"):
        headers.append(("x-amzn-query-error", f"{found.code};{found.type}"))
    return found.status, found.name, members, headers


def _json_error(service: str, error: ServiceError, request_id: str) -> Encoded:
    status, name, members, headers = _json_members(service, error)
    namespace = _NAMESPACES.get(service, "")
    if namespace and name in ("SerializationException", "UnknownOperationException", "InternalFailure"):
        namespace = _COMMON_NAMESPACE
    body = orjson.dumps({"__type": namespace + name, **members})
    content_type = _json_type(service) if _known(service) else "application/x-amz-json-1.1"
    headers = [("x-amzn-RequestId", request_id), ("Content-Type", content_type), *headers]
    if service in ("dynamodb", "dynamodbstreams"):
        headers.append(("x-amz-crc32", str(zlib.crc32(body))))
    return Encoded(status, headers, body)


@cache
def _known(service: str) -> bool:
    try:
        models.service(service)
    except ServiceError:
        return False
    return True


# smithy-rpc-v2-cbor --------------------------------------------------------------------------------------------------


@cache
def _cbor_shapes(service: str) -> Shapes:
    return Shapes(cbor.CBOR)


class _Cbor:
    def __init__(self, service: str, name: str) -> None:
        model = models.operation(service, name)
        shapes = _cbor_shapes(service)
        self._read = shapes.reader(model.input_shape) if model.input_shape is not None else _nothing
        self._write = shapes.writer(model.output_shape) if model.output_shape is not None else None

    def decode(self, incoming: Incoming, uri: Mapping[str, str]) -> dict[str, Any]:
        request: dict[str, Any] = self._read(cbor.loads(incoming.body) if incoming.body else {})
        return request

    def encode(self, answer: Mapping[str, Any], request_id: str) -> Encoded:
        body = cbor.dumps(answer if self._write is None else self._write(answer))
        return Encoded(200, _cbor_headers(request_id), body)


def _cbor_headers(request_id: str) -> Headers:
    return [
        ("x-amzn-RequestId", request_id),
        ("smithy-protocol", "rpc-v2-cbor"),
        ("Content-Type", "application/cbor"),
    ]


def _cbor_error(service: str, error: ServiceError, request_id: str) -> Encoded:
    status, name, members, headers = _json_members(service, error)
    body = cbor.dumps({"__type": _NAMESPACES.get(service, "") + name, **members})
    return Encoded(status, [*_cbor_headers(request_id), *headers], body)


# query ---------------------------------------------------------------------------------------------------------------

_form_readers: dict[str, dict[Any, Any]] = {}
_xml_readers: dict[str, dict[Any, Any]] = {}
_xml_writers: dict[str, dict[Any, Any]] = {}


@cache
def _query_model(service: str) -> Any:
    return historical.sqs() if service == "sqs" else models.service(service)


@cache
def _xmlns(service: str) -> str:
    uri = _query_model(service).metadata.get("xmlNamespace") if _known(service) else None
    return f' xmlns="{uri}"' if uri else ""


class _Query:
    def __init__(self, service: str, name: str) -> None:
        model = _query_model(service).operation_model(name)
        shape = model.input_shape
        self._read = form.request_reader(shape, _form_readers.setdefault(service, {}))
        self._queue_from_path = service == "sqs" and shape is not None and "QueueUrl" in shape.members
        output = model.output_shape
        self._write = (
            None if output is None else xml_shapes.members_writer(output.members, _xml_writers.setdefault(service, {}))
        )
        self._wrapper = (
            f"{name}Result" if output is None else output.serialization.get("resultWrapper", f"{name}Result")
        )
        self._response = f"{name}Response"
        self._xmlns = _xmlns(service)

    def decode(self, incoming: Incoming, uri: Mapping[str, str]) -> dict[str, Any]:
        request: dict[str, Any] = self._read(form.tree(fields(incoming)))
        if self._queue_from_path and "QueueUrl" not in request and incoming.path.count("/") >= 2:
            # The query protocol's older clients post to the queue's own URL.
            request["QueueUrl"] = f"http://{incoming.headers.get('host', '')}{incoming.path}"
        return request

    def encode(self, answer: Mapping[str, Any], request_id: str) -> Encoded:
        out = [f'<?xml version="1.0" encoding="UTF-8"?>\n<{self._response}{self._xmlns}>']
        if self._write is not None:
            out.append(f"<{self._wrapper}>")
            self._write(out, answer)
            out.append(f"</{self._wrapper}>")
        out.append(f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{self._response}>")
        return Encoded(200, _xml_headers(request_id), "".join(out).encode("utf-8", "surrogatepass"))


def fields(incoming: Incoming) -> list[tuple[str, str]]:
    """The pairs of a query request: those of the URL and those of the form in the body. Misread when not UTF-8."""
    try:
        return query_pairs(incoming.query) + query_pairs(incoming.body.decode("utf-8"))
    except UnicodeDecodeError:
        raise Misread("The form is not UTF-8") from None


def _xml_headers(request_id: str) -> Headers:
    return [("x-amzn-RequestId", request_id), ("Content-Type", "text/xml")]


def _query_error(service: str, error: ServiceError, request_id: str) -> Encoded:
    found = fault(service, error)
    out = [f'<?xml version="1.0" encoding="UTF-8"?>\n<ErrorResponse{_xmlns(service)}><Error>']
    out.append(f"<Type>{found.type}</Type><Code>{xml_shapes.escape(found.code)}</Code>")
    out.append(f"<Message>{xml_shapes.escape(error.message)}</Message>")
    if found.shape is not None:
        members = {name: member for name, member in _members(found.shape).items() if name != found.message_member}
        xml_shapes.members_writer(members, _xml_writers.setdefault(service, {}))(out, error.fields)
    out.append(f"</Error><RequestId>{request_id}</RequestId></ErrorResponse>")
    return Encoded(found.status, _xml_headers(request_id), "".join(out).encode("utf-8", "surrogatepass"))


def _members(shape: Any) -> Mapping[str, Any]:
    members: Mapping[str, Any] = shape.members
    return members


# rest-json and rest-xml ----------------------------------------------------------------------------------------------


class _JsonBody:
    content_type = "application/json"

    def __init__(self, service: str) -> None:
        self._shapes = _json_shapes(service)

    def structure_reader(self, shape: Any, members: Mapping[str, Any]) -> Callable[[bytes], dict[str, Any]]:
        read = self._shapes.structure_reader(shape, members)
        return lambda body: read(parse_json(body))

    def payload_reader(self, shape: Any) -> Callable[[bytes], Any]:
        read = self._shapes.reader(shape)
        return lambda body: read(parse_json(body))

    def structure_writer(self, operation: OperationModel, members: Mapping[str, Any]) -> Callable[[Any], bytes]:
        write = self._shapes.structure_writer(members)
        return lambda answer: orjson.dumps(write(answer))

    def payload_writer(self, shape: Any) -> Callable[[Any], bytes]:
        write = self._shapes.writer(shape)
        return lambda value: orjson.dumps(value if write is None else write(value))


# The root elements of S3's answers, where they are not the payload's own: the model leaves them out, since botocore's
# parser does not look at them; clients in other languages may. From the examples of the S3 API reference.
_ROOTS = {
    "CompleteMultipartUpload": "CompleteMultipartUploadResult",
    "CreateMultipartUpload": "InitiateMultipartUploadResult",
    "DeleteObjects": "DeleteResult",
    "GetBucketAcl": "AccessControlPolicy",
    "GetBucketCors": "CORSConfiguration",
    "GetBucketLifecycleConfiguration": "LifecycleConfiguration",
    "GetBucketLocation": "LocationConstraint",
    "GetBucketNotificationConfiguration": "NotificationConfiguration",
    "GetBucketTagging": "Tagging",
    "GetBucketVersioning": "VersioningConfiguration",
    "GetBucketWebsite": "WebsiteConfiguration",
    "GetObjectAcl": "AccessControlPolicy",
    "GetObjectAttributes": "GetObjectAttributesResponse",
    "GetObjectTagging": "Tagging",
    "ListBuckets": "ListAllMyBucketsResult",
    "ListMultipartUploads": "ListMultipartUploadsResult",
    "ListObjectVersions": "ListVersionsResult",
    "ListObjects": "ListBucketResult",
    "ListObjectsV2": "ListBucketResult",
    "ListParts": "ListPartsResult",
}
_S3_XMLNS = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


class _XmlBody:
    content_type = "application/xml"

    def __init__(self, service: str) -> None:
        self._readers = _xml_readers.setdefault(service, {})
        self._writers = _xml_writers.setdefault(service, {})
        self._xmlns = _S3_XMLNS if service == "s3" else ""

    def structure_reader(self, shape: Any, members: Mapping[str, Any]) -> Callable[[bytes], dict[str, Any]]:
        read = xml_shapes.structure_reader(members, self._readers)
        return lambda body: read(xml_shapes.parse(body))

    def payload_reader(self, shape: Any) -> Callable[[bytes], Any]:
        read = xml_shapes.reader(shape, self._readers)
        return lambda body: read(xml_shapes.parse(body))

    def structure_writer(self, operation: OperationModel, members: Mapping[str, Any]) -> Callable[[Any], bytes]:
        write = xml_shapes.members_writer(members, self._writers)
        root = _ROOTS.get(operation.name, f"{operation.name}Result")
        opening = f"{_DECLARATION}<{root}{self._xmlns}>"
        bare = operation.name == "GetBucketLocation"  # its one member is the root's own text

        def body(answer: Mapping[str, Any]) -> bytes:
            out = [opening]
            if bare:
                out.append(xml_shapes.escape(answer.get("LocationConstraint") or ""))
            else:
                write(out, answer)
            out.append(f"</{root}>")
            return "".join(out).encode("utf-8", "surrogatepass")

        return body

    def payload_writer(self, shape: Any) -> Callable[[Any], bytes]:
        write = xml_shapes.writer(shape, self._writers)
        name = shape.serialization.get("name") or shape.name
        namespaced = bool(xml_shapes.namespace_of(shape))

        def body(value: Any) -> bytes:
            out: list[str] = []
            write(out, name, value)
            if not namespaced:
                out[0] = out[0].replace(f"<{name}", f"<{name}{self._xmlns}", 1)
            return (_DECLARATION + "".join(out)).encode("utf-8", "surrogatepass")

        return body


@cache
def _rest(service: str, name: str) -> tuple[RequestReader, AnswerWriter]:
    model = models.operation(service, name)
    body = _XmlBody(service) if protocol_of(service) == "rest-xml" else _JsonBody(service)
    return RequestReader(model, body), AnswerWriter(model, body)


class _Rest:
    def __init__(self, service: str, name: str) -> None:
        self._reader, self._writer = _rest(service, name)
        self._id_header = "x-amz-request-id" if service == "s3" else "x-amzn-RequestId"
        # rest-json answers an empty object where it has nothing to say; an empty body where there is no output.
        self._json = protocol_of(service) == "rest-json"

    def decode(self, incoming: Incoming, uri: Mapping[str, str]) -> dict[str, Any]:
        try:
            pairs = query_pairs(incoming.query)
        except UnicodeDecodeError:
            raise Misread("The query is not UTF-8") from None
        return self._reader.read(uri, pairs, incoming.headers, incoming.body)

    def encode(self, answer: Mapping[str, Any], request_id: str) -> Encoded:
        status, headers, body = self._writer.write(answer)
        headers.append((self._id_header, request_id))
        return Encoded(status, headers, body)


def _rest_json_error(service: str, error: ServiceError, request_id: str) -> Encoded:
    status, name, members, headers = _json_members(service, error)
    shape = fault(service, error).shape
    if shape is not None and "Type" in _members(shape):
        members.setdefault("Type", "User" if status < 500 else "Service")
    return Encoded(
        status,
        [
            ("x-amzn-RequestId", request_id),
            ("x-amzn-ErrorType", name),
            ("Content-Type", "application/json"),
            *headers,
        ],
        orjson.dumps(members),
    )


def _rest_xml_error(service: str, error: ServiceError, request_id: str) -> Encoded:
    found = fault(service, error)
    out = [f"{_DECLARATION}<Error><Code>{xml_shapes.escape(found.code)}</Code>"]
    out.append(f"<Message>{xml_shapes.escape(error.message)}</Message>")
    out.extend(f"<{name}>{xml_shapes.escape(str(value))}</{name}>" for name, value in error.fields.items())
    out.append(f"<RequestId>{request_id}</RequestId><HostId>muster</HostId></Error>")
    return Encoded(
        found.status,
        [("x-amz-request-id", request_id), ("x-amz-id-2", "muster"), ("Content-Type", "application/xml")],
        "".join(out).encode("utf-8", "surrogatepass"),
    )


_PROTOCOLS: dict[str, Callable[[str, str], Operation]] = {
    "json": _Json,
    "query": _Query,
    "rest-json": _Rest,
    "rest-xml": _Rest,
    "smithy-rpc-v2-cbor": _Cbor,
}
_ERRORS: dict[str, Callable[[str, ServiceError, str], Encoded]] = {
    "json": _json_error,
    "query": _query_error,
    "rest-json": _rest_json_error,
    "rest-xml": _rest_xml_error,
    "smithy-rpc-v2-cbor": _cbor_error,
}
