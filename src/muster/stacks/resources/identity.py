"""AWS::IAM and the policies on resources: accepted and recorded, with ARNs as the real service makes them.

Muster checks no permissions between its own parts, so a role or policy changes nothing here; it is kept so that the
same template deploys on AWS, and so that whoever refers to it gets a real-looking answer.
"""

from collections.abc import Callable

from muster.stacks.resources.kind import Kind, Made, Properties, Work, properties, text_in


def _iam_arn(work: Work, kind: str, properties: Properties, name: str) -> str:
    return f"arn:aws:iam::{work.tx.account}:{kind}{text_in(properties, 'Path') or '/'}{name}"


def _named(kind: str, member: str, prefix: str, longest: int) -> Callable[[Work, Properties], Made]:
    def create(work: Work, given: Properties) -> Made:
        name = given.get(member) or work.name(longest)
        arn = _iam_arn(work, kind, given, name)
        attributes = {"Arn": arn, f"{kind.replace('-', ' ').title().replace(' ', '')}Id": prefix + work.random(17)}
        return Made(arn if kind == "policy" else name, attributes | ({"PolicyArn": arn} if kind == "policy" else {}))

    return create


def _inline(work: Work, given: Properties) -> Made:
    return Made(str(given.get("PolicyName") or work.name(128)), {"Id": work.name(128)})


def _recorded(work: Work, given: Properties) -> Made:
    return Made(work.name(128), {"Id": work.name(128)})


def _stays(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    return made


def _kind(
    type_: str,
    create: Callable[[Work, Properties], Made],
    in_place: str,
    replace: str,
    attributes: str,
    required: str,
    name: str | None = None,
) -> Kind:
    return Kind(
        type_,
        properties(in_place, replace=replace),
        create,
        _stays,
        attributes=frozenset(attributes.split()),
        required=tuple(required.split()),
        name=name,
    )


KINDS = (
    _kind(
        "AWS::IAM::Role",
        _named("role", "RoleName", "AROA", 64),
        "AssumeRolePolicyDocument Description ManagedPolicyArns MaxSessionDuration PermissionsBoundary Policies Tags",
        "RoleName Path",
        "Arn RoleId",
        "AssumeRolePolicyDocument",
        "RoleName",
    ),
    _kind(
        "AWS::IAM::ManagedPolicy",
        _named("policy", "ManagedPolicyName", "ANPA", 128),
        "PolicyDocument Groups Roles Users Description",
        "ManagedPolicyName Path",
        "PolicyArn PolicyId",
        "PolicyDocument",
        "ManagedPolicyName",
    ),
    _kind(
        "AWS::IAM::InstanceProfile",
        _named("instance-profile", "InstanceProfileName", "AIPA", 128),
        "Roles",
        "InstanceProfileName Path",
        "Arn InstanceProfileId",
        "Roles",
        "InstanceProfileName",
    ),
    _kind(
        "AWS::IAM::User",
        _named("user", "UserName", "AIDA", 64),
        "Groups ManagedPolicyArns PermissionsBoundary Policies Tags",
        "UserName Path",
        "Arn UserId",
        "",
        "UserName",
    ),
    _kind(
        "AWS::IAM::Group",
        _named("group", "GroupName", "AGPA", 128),
        "ManagedPolicyArns Policies",
        "GroupName Path",
        "Arn GroupId",
        "",
        "GroupName",
    ),
    _kind(
        "AWS::IAM::Policy",
        _inline,
        "PolicyDocument PolicyName Groups Roles Users",
        "",
        "Id",
        "PolicyDocument PolicyName",
    ),
    _kind("AWS::IAM::RolePolicy", _inline, "PolicyDocument", "PolicyName RoleName", "", "PolicyName RoleName"),
    _kind("AWS::SQS::QueuePolicy", _recorded, "PolicyDocument Queues", "", "Id", "PolicyDocument Queues"),
    _kind("AWS::SNS::TopicPolicy", _recorded, "PolicyDocument Topics", "", "Id", "PolicyDocument Topics"),
    _kind(
        "AWS::Events::EventBusPolicy",
        _recorded,
        "Action Principal Statement Condition",
        "EventBusName StatementId",
        "",
        "StatementId",
    ),
)
