"""The aws-chunked encoding: chunks with or without signatures, and trailers behind the last.

Bytes in, bytes out; no I/O. Keeps true: what comes out is what the client meant to upload, and an encoding that ends
early or lies about its length is an error. Does not verify the chunks' signatures.
Source: "Signature calculations for the authorization header: transferring payload in multiple chunks".
"""

from collections.abc import Iterator

from muster.errors import ServiceError

# A chunk's head holds its size and a signature, a trailer a checksum: nothing longer is meant honestly.
LINE_BYTES_MAX = 4096
TRAILERS_MAX = 16


def incomplete(reason: str) -> ServiceError:
    """The refusal of a body that is not what was announced."""
    return ServiceError("IncompleteBody", reason, status=400)


def is_chunked(headers: dict[str, str]) -> bool:
    """Whether a request's body is aws-chunked."""
    codings = [one.strip() for one in headers.get("content-encoding", "").lower().split(",")]
    return "aws-chunked" in codings or headers.get("x-amz-content-sha256", "").startswith("STREAMING-")


class ChunkDecoder:
    """Decodes one body, fed piece by piece; `trailers` are there when it is `finished`."""

    def __init__(self) -> None:
        self.trailers: dict[str, str] = {}
        self.finished = False
        self._line = bytearray()
        self._left = 0
        self._state = self._head

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The payload in the next piece of the body."""
        view = memoryview(data)
        while view:
            if self._left:
                taken = view[: self._left]
                self._left -= len(taken)
                view = view[len(taken) :]
                yield bytes(taken) if len(taken) < len(data) else data
                continue
            if self.finished:
                raise incomplete("There is more behind the last chunk.")
            end = bytes(view).find(b"\n") if len(view) <= LINE_BYTES_MAX else bytes(view[:LINE_BYTES_MAX]).find(b"\n")
            self._line += view if end < 0 else view[: end + 1]
            if len(self._line) > LINE_BYTES_MAX:
                raise incomplete("A line of the chunked encoding is too long.")
            if end < 0:
                return
            view = view[end + 1 :]
            line = bytes(self._line)
            self._line.clear()
            if not line.endswith(b"\r\n"):
                raise incomplete("A line of the chunked encoding does not end in CRLF.")
            self._state(line[:-2])

    def end(self) -> None:
        """The body is over; IncompleteBody when its encoding is not. A last empty line may be missing."""
        if not self.finished and self._state != self._trailer:
            raise incomplete("The chunked encoding ends too early.")

    def _head(self, line: bytes) -> None:
        size_text = line.partition(b";")[0].strip()
        try:
            size = int(size_text, 16)
        except ValueError:
            raise incomplete("A chunk has no size.") from None
        if size < 0 or len(size_text) > 16:
            raise incomplete("A chunk has no size.")
        self._left = size
        self._state = self._tail if size else self._trailer

    def _tail(self, line: bytes) -> None:
        if line:
            raise incomplete("A chunk is longer than its head says.")
        self._state = self._head

    def _trailer(self, line: bytes) -> None:
        if not line:
            self.finished = True
            return
        name, colon, value = line.partition(b":")
        if not colon or len(self.trailers) >= TRAILERS_MAX:
            raise incomplete("A trailer of the chunked encoding cannot be read.")
        self.trailers[name.strip().lower().decode("latin-1")] = value.strip().decode("latin-1")
