"""STS's operations: AWS's shapes in and out.

Does not store what it hands out: a temporary key is as good as any other key that a client on this machine may choose.
See https://docs.aws.amazon.com/STS/latest/APIReference/.
"""

from muster.arn import Arn
from muster.errors import ServiceError
from muster.operation import Answer, Request
from muster.transaction import Transaction

# AWS's defaults: a role's session lasts an hour, a user's twelve.
ROLE_SECONDS = 3600
USER_SECONDS = 12 * 3600


def get_caller_identity(tx: Transaction, request: Request) -> Answer:
    """The identity behind the request's key: the account's root, since Muster keeps no users."""
    return {"UserId": tx.account, "Account": tx.account, "Arn": f"arn:aws:iam::{tx.account}:root"}


def get_session_token(tx: Transaction, request: Request) -> Answer:
    """Temporary keys for the account."""
    return {"Credentials": _credentials(tx, request.get("DurationSeconds", USER_SECONDS))}


def assume_role(tx: Transaction, request: Request) -> Answer:
    """Temporary keys under a role's name; ValidationError when the role's ARN is none."""
    session = request["RoleSessionName"]
    try:
        role = Arn.parse(request["RoleArn"])
    except ValueError:
        raise ServiceError("ValidationError", f"{request['RoleArn']} is invalid", status=400) from None
    kind, _, name = role.resource.partition("/")
    if role.service != "iam" or kind != "role" or not name:
        raise ServiceError("ValidationError", f"{request['RoleArn']} is invalid", status=400)
    if role.account != tx.account:
        raise ServiceError(
            "AccessDenied",
            f"The role {role} belongs to another account than {tx.account}, the only one here.",
            status=403,
        )
    # A session's ARN leaves out the role's path.
    session_arn = Arn("aws", "sts", "", tx.account, f"assumed-role/{name.rpartition('/')[2]}/{session}")
    return {
        "Credentials": _credentials(tx, request.get("DurationSeconds", ROLE_SECONDS)),
        "AssumedRoleUser": {"AssumedRoleId": f"AROA{tx.token(9)[:17].upper()}:{session}", "Arn": str(session_arn)},
        "PackedPolicySize": 0,
    }


def _credentials(tx: Transaction, seconds: int) -> Answer:
    return {
        "AccessKeyId": f"ASIA{tx.token(8).upper()}",
        "SecretAccessKey": tx.token(20),
        "SessionToken": tx.token(64),
        "Expiration": tx.now + seconds,
    }
