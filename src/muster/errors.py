"""What a caller can meet: an error with AWS's code, a sentence, and whatever else its shape carries.

Raised where it is decided, translated once at the border. Knows no protocol.
"""

from collections.abc import Mapping
from typing import Any


class ServiceError(Exception):
    """A refusal by a service.

    `code` is AWS's own error code as the service's model names it; `status` the HTTP status where the model does not
    say; `fields` further members of the error's shape, such as `CancellationReasons`.
    """

    def __init__(
        self, code: str, message: str, *, status: int | None = None, fields: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.fields: Mapping[str, Any] = fields or {}


def unsupported(what: str) -> ServiceError:
    """The refusal of something that AWS offers and Muster does not: named, never ignored."""
    return ServiceError("NotImplemented", f"Muster does not support {what}.", status=501)


class MusterError(Exception):
    """Something about this installation or its data folder that a person has to mend; the text says how."""
