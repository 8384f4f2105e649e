"""ItemReader, ItemBatcher and ResultWriter of a distributed Map, compiled.

Keeps true: a format or resource that is not supported is refused when the machine is created. Does not read or write.

Sources: "ItemReader (Map)", "ItemBatcher (Map)", "ResultWriter (Map)" in the developer guide.
"""

from typing import Any, Protocol

from muster.languages.asl.definition import Batcher, Evaluator, Reader, ResultWriter

INPUT_TYPES = ("JSON", "JSONL", "CSV", "MANIFEST")
DELIMITERS = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}
TRANSFORMATIONS = ("NONE", "COMPACT", "FLATTEN")


class Fields(Protocol):
    """What the compiler of a state lends: findings, templates and numbers of a nested object."""

    jsonata: bool

    def say(self, field: str, message: str) -> None: ...
    def nested_tree(self, body: dict[str, Any], key: str, field: str) -> Evaluator | None: ...
    def nested_amount(self, body: dict[str, Any], key: str, field: str) -> Evaluator | None: ...
    def refuse(self, body: dict[str, Any], known: set[str], field: str) -> None: ...


def _object(fields: Fields, body: Any, field: str) -> dict[str, Any]:
    if isinstance(body, dict):
        return body
    fields.say(field, "Value is not an object")
    return {}


def _parameters(fields: Fields) -> str:
    return "Arguments" if fields.jsonata else "Parameters"


def reader(fields: Fields, given: Any) -> Reader | None:
    """ItemReader."""
    body = _object(fields, given, "ItemReader")
    fields.refuse(body, {"Resource", "ReaderConfig", _parameters(fields)}, "ItemReader")
    resource = str(body.get("Resource", ""))
    action = resource.rsplit(":", 1)[-1]
    if (
        not resource.startswith("arn:")
        or ":states:::s3:" not in resource
        or action not in ("getObject", "listObjectsV2")
    ):
        fields.say("ItemReader/Resource", f"The resource provided {resource} is not recognized.")
        return None
    config = _object(fields, body.get("ReaderConfig", {}), "ItemReader/ReaderConfig")
    known = {"InputType", "CSVHeaderLocation", "CSVHeaders", "CSVDelimiter", "ManifestType", "MaxItems", "MaxItemsPath"}
    fields.refuse(config, known, "ItemReader/ReaderConfig")
    if action == "getObject":
        _check_format(fields, config)
    return Reader(
        action[0].upper() + action[1:],
        fields.nested_tree(body, _parameters(fields), f"ItemReader/{_parameters(fields)}"),
        {key: value for key, value in config.items() if not key.startswith("MaxItems")},
        fields.nested_amount(config, "MaxItems", "ItemReader/ReaderConfig"),
    )


def _check_format(fields: Fields, config: dict[str, Any]) -> None:
    kind = config.get("InputType")
    if kind not in INPUT_TYPES:
        fields.say(
            "ItemReader/ReaderConfig/InputType",
            f"Muster reads these values of the field 'InputType': [{', '.join(INPUT_TYPES)}]",
        )
    if config.get("ManifestType", "S3_INVENTORY") != "S3_INVENTORY" or (
        "ManifestType" in config and kind != "MANIFEST"
    ):
        fields.say("ItemReader/ReaderConfig/ManifestType", "Muster reads manifests of the type S3_INVENTORY")
    if kind != "CSV":
        return
    location = config.get("CSVHeaderLocation")
    if location not in ("FIRST_ROW", "GIVEN"):
        fields.say(
            "ItemReader/ReaderConfig/CSVHeaderLocation",
            "The field 'CSVHeaderLocation' should have one of these values: [FIRST_ROW, GIVEN]",
        )
    if location == "GIVEN" and not isinstance(config.get("CSVHeaders"), list):
        fields.say("ItemReader/ReaderConfig/CSVHeaders", "Value is not an array")
    if config.get("CSVDelimiter", "COMMA") not in DELIMITERS:
        fields.say(
            "ItemReader/ReaderConfig/CSVDelimiter",
            f"The field 'CSVDelimiter' should have one of these values: [{', '.join(DELIMITERS)}]",
        )


def batcher(fields: Fields, given: Any) -> Batcher | None:
    """ItemBatcher."""
    body = _object(fields, given, "ItemBatcher")
    sizes = {"MaxItemsPerBatch", "MaxItemsPerBatchPath", "MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath"}
    fields.refuse(body, sizes | {"BatchInput"}, "ItemBatcher")
    if not sizes & body.keys():
        fields.say("ItemBatcher", "One of these fields is required: [MaxItemsPerBatch, MaxInputBytesPerBatch]")
        return None
    return Batcher(
        fields.nested_amount(body, "MaxItemsPerBatch", "ItemBatcher"),
        fields.nested_amount(body, "MaxInputBytesPerBatch", "ItemBatcher"),
        fields.nested_tree(body, "BatchInput", "ItemBatcher/BatchInput"),
    )


def writer(fields: Fields, given: Any) -> ResultWriter | None:
    """ResultWriter."""
    body = _object(fields, given, "ResultWriter")
    fields.refuse(body, {"Resource", "WriterConfig", _parameters(fields)}, "ResultWriter")
    resource = body.get("Resource")
    if resource is not None and not str(resource).endswith(":states:::s3:putObject"):
        fields.say("ResultWriter/Resource", f"The resource provided {resource} is not recognized.")
    config = _object(fields, body.get("WriterConfig", {}), "ResultWriter/WriterConfig")
    fields.refuse(config, {"Transformation", "OutputType"}, "ResultWriter/WriterConfig")
    transformation = config.get("Transformation", "NONE")
    if transformation not in TRANSFORMATIONS:
        fields.say(
            "ResultWriter/WriterConfig/Transformation",
            f"The field 'Transformation' should have one of these values: [{', '.join(TRANSFORMATIONS)}]",
        )
    if config.get("OutputType", "JSON") not in ("JSON", "JSONL"):
        fields.say(
            "ResultWriter/WriterConfig/OutputType",
            "The field 'OutputType' should have one of these values: [JSON, JSONL]",
        )
    parameters = fields.nested_tree(body, _parameters(fields), f"ResultWriter/{_parameters(fields)}")
    return ResultWriter(parameters, transformation, config.get("OutputType") == "JSONL")
