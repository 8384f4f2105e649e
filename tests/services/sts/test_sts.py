"""Who a key is, and temporary keys."""

import pytest

from muster.errors import ServiceError
from muster.services.sts import SERVICE
from muster.testing import World


@pytest.fixture
def world() -> World:
    return World([SERVICE])


def test_caller_is_the_accounts_root(world: World) -> None:
    identity = world.call("sts", "GetCallerIdentity")
    assert identity == {"UserId": "000000000000", "Account": "000000000000", "Arn": "arn:aws:iam::000000000000:root"}


def test_session_token_lasts_twelve_hours_unless_asked(world: World) -> None:
    now = world.clock.now()
    assert world.call("sts", "GetSessionToken")["Credentials"]["Expiration"] == now + 12 * 3600
    assert world.call("sts", "GetSessionToken", DurationSeconds=900)["Credentials"]["Expiration"] == now + 900


def test_assumed_role_has_a_session_name_without_the_roles_path(world: World) -> None:
    role = "arn:aws:iam::000000000000:role/service-role/loader"
    answer = world.call("sts", "AssumeRole", RoleArn=role, RoleSessionName="night")
    assert answer["AssumedRoleUser"]["Arn"] == "arn:aws:sts::000000000000:assumed-role/loader/night"
    assert answer["AssumedRoleUser"]["AssumedRoleId"].endswith(":night")
    assert answer["Credentials"]["AccessKeyId"].startswith("ASIA")


def test_temporary_keys_differ(world: World) -> None:
    first, second = (world.call("sts", "GetSessionToken")["Credentials"] for _ in range(2))
    assert first["AccessKeyId"] != second["AccessKeyId"]


@pytest.mark.parametrize(
    ("role", "code"),
    [
        ("arn:aws:iam::000000000000:user/someone", "ValidationError"),
        ("not an arn at all, but long", "ValidationError"),
        ("arn:aws:iam::999999999999:role/theirs", "AccessDenied"),
    ],
)
def test_role_that_is_not_one_of_ours_is_refused(world: World, role: str, code: str) -> None:
    with pytest.raises(ServiceError) as refused:
        world.call("sts", "AssumeRole", RoleArn=role, RoleSessionName="s1")
    assert refused.value.code == code
