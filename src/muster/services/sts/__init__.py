"""Identities on one machine: who a key is, and temporary keys that stand for a role.

Keeps true: whatever identity is named belongs to this data folder's account. Grants nothing: Muster does not weigh
permissions, and what STS hands out are names under which requests are recorded.
"""

from muster.operation import Operation, Service
from muster.services.sts.operations import assume_role, get_caller_identity, get_session_token

SERVICE = Service(
    name="sts",
    operations={
        "AssumeRole": Operation(
            assume_role, accepts=frozenset({"RoleArn", "RoleSessionName", "DurationSeconds", "ExternalId"})
        ),
        "GetCallerIdentity": Operation(get_caller_identity, accepts=frozenset(), reads=True),
        "GetSessionToken": Operation(get_session_token, accepts=frozenset({"DurationSeconds"})),
    },
)

__all__ = ["SERVICE"]
