"""SQS as it spoke before it spoke JSON: the query protocol's names, which today's model no longer holds.

Clients older than 2023 (boto3 before 1.28.82 among them) still send them. From the examples of the Amazon SQS API
reference for the query protocol: lists and maps are flattened and have names in the singular.
"""

import copy
from functools import cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel

# The shape of a list or map, and the name of its elements on the wire.
LISTS = {
    "AWSAccountIdList": "AWSAccountId",
    "ActionNameList": "ActionName",
    "AttributeNameList": "AttributeName",
    "BatchResultErrorEntryList": "BatchResultErrorEntry",
    "ChangeMessageVisibilityBatchRequestEntryList": "ChangeMessageVisibilityBatchRequestEntry",
    "ChangeMessageVisibilityBatchResultEntryList": "ChangeMessageVisibilityBatchResultEntry",
    "DeleteMessageBatchRequestEntryList": "DeleteMessageBatchRequestEntry",
    "DeleteMessageBatchResultEntryList": "DeleteMessageBatchResultEntry",
    "ListMessageMoveTasksResultEntryList": "ListMessageMoveTasksResultEntry",
    "MessageAttributeNameList": "MessageAttributeName",
    "MessageList": "Message",
    "MessageSystemAttributeList": "MessageSystemAttributeName",
    "QueueUrlList": "QueueUrl",
    "SendMessageBatchRequestEntryList": "SendMessageBatchRequestEntry",
    "SendMessageBatchResultEntryList": "SendMessageBatchResultEntry",
    "TagKeyList": "TagKey",
}
MAPS = {
    "MessageBodyAttributeMap": ("MessageAttribute", "Name", "Value"),
    "MessageBodySystemAttributeMap": ("MessageSystemAttribute", "Name", "Value"),
    "MessageSystemAttributeMap": ("Attribute", "Name", "Value"),
    "QueueAttributeMap": ("Attribute", "Name", "Value"),
    "TagMap": ("Tag", "Key", "Value"),
}
NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"


@cache
def sqs() -> ServiceModel:
    """SQS's model with the query protocol's names put back."""
    description: dict[str, Any] = copy.deepcopy(Loader().load_service_model("sqs", "service-2"))
    description["metadata"]["xmlNamespace"] = NAMESPACE
    for name, operation in description["operations"].items():
        if "output" in operation:
            operation["output"]["resultWrapper"] = f"{name}Result"
    shapes = description["shapes"]
    for name, wire in LISTS.items():
        if name in shapes:
            shapes[name]["flattened"] = True
            shapes[name]["member"]["locationName"] = wire
    for name, (_, key, value) in MAPS.items():
        if name in shapes:
            shapes[name]["flattened"] = True
            shapes[name]["key"]["locationName"] = key
            shapes[name]["value"]["locationName"] = value
    for shape in shapes.values():
        for member in shape.get("members", {}).values():
            if member["shape"] in MAPS:
                member["locationName"] = MAPS[member["shape"]][0]
    return ServiceModel(description, "sqs")
