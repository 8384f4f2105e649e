"""Stacks: SAM and CloudFormation templates, deployed in one transaction through the operations of the services.

`SERVICE` is the server's side, under botocore's name `cloudformation`; `package` is the client's.
"""

from muster.operation import Service
from muster.stacks.operations import OPERATIONS
from muster.stacks.schema import MIGRATIONS

SERVICE = Service("cloudformation", OPERATIONS, MIGRATIONS)

__all__ = ["SERVICE"]
