"""A payment service with a limit: it works on so many calls at once, and answers 429 to any beyond.

Keeps true: calls with the same idempotency key make one charge, and one receipt; every one is in the file before it is
answered. Does not know queues, nor who calls. Orders in a currency that it has not learned yet are refused with 422.

    python payments.py --data payments.sqlite --port 8020

    POST /charges     {"order", "customer", "amount", "currency"}, headers Idempotency-Key, Attempt -> {"id", "repeated"}
    POST /receipts    {"customer", "charge"}, header Idempotency-Key                                -> {"id", "repeated"}
    POST /currencies  {"currency"}: learn a currency
    GET  /figures     how many charges, receipts, refusals, calls at once
    GET  /charges, /receipts, /refusals
"""

import argparse
import json
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS charges (id TEXT PRIMARY KEY, key TEXT UNIQUE, customer TEXT, amount INTEGER, currency TEXT);
CREATE TABLE IF NOT EXISTS receipts (id TEXT PRIMARY KEY, key TEXT UNIQUE, customer TEXT, charge TEXT);
CREATE TABLE IF NOT EXISTS refusals (key TEXT, customer TEXT, attempt INTEGER, reason TEXT);
CREATE TABLE IF NOT EXISTS currencies (currency TEXT PRIMARY KEY);
INSERT OR IGNORE INTO currencies VALUES ('EUR');
"""


class Refused(Exception):
    """A call that is not done; the status and the reason go back to the caller."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Payments:
    """The books, and how many calls are being worked on."""

    def __init__(self, file: Path, limit: int, seconds: float) -> None:
        self.limit = limit
        self.seconds = seconds
        self.calls = self.throttled = self.at_once = self.at_once_max = self.repeated = 0
        self._lock = threading.Lock()
        self._books = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._books.execute("PRAGMA journal_mode = WAL")
        self._books.executescript(SCHEMA)

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of the places there are; Refused when all are taken. What was turned away counts towards the highest
        number of calls at once as well."""
        with self._lock:
            self.calls += 1
            self.at_once_max = max(self.at_once_max, self.at_once + 1)
            if self.at_once >= self.limit:
                self.throttled += 1
                raise Refused(429, f"Too many requests: {self.limit} calls are being worked on.")
            self.at_once += 1
        try:
            yield
        finally:
            with self._lock:
                self.at_once -= 1

    def charge(self, body: dict[str, Any], key: str | None, attempt: int) -> dict[str, Any]:
        """Charge a customer, or find the charge that this key has made. A refusal is noted with the caller's attempt."""
        with self.place():
            time.sleep(self.seconds)
            with self._lock:
                if not self._rows("SELECT * FROM currencies WHERE currency = ?", body["currency"]):
                    reason = f"The currency {body['currency']} of order {body['order']} is not known."
                    self._rows("INSERT INTO refusals VALUES (?, ?, ?, ?)", key, body["customer"], attempt, reason)
                    raise Refused(422, reason)
                values = (body["customer"], body["amount"], body["currency"])
                return self._once("charges", key, values)

    def receipt(self, body: dict[str, Any], key: str | None) -> dict[str, Any]:
        """Send the receipt of a charge, or find the one that this key has sent."""
        with self.place(), self._lock:
            return self._once("receipts", key, (body["customer"], body["charge"]))

    def _once(self, table: str, key: str | None, values: tuple[Any, ...]) -> dict[str, Any]:
        found = self._rows(f"SELECT id FROM {table} WHERE key = ?", key) if key else []
        if found:
            self.repeated += 1
            return {"id": found[0]["id"], "repeated": True}
        made = str(uuid.uuid4())
        places = ", ".join("?" * (len(values) + 2))
        self._rows(f"INSERT INTO {table} VALUES ({places})", made, key, *values)
        return {"id": made, "repeated": False}

    def learn(self, currency: str) -> dict[str, Any]:
        """From now on, orders in this currency are charged."""
        with self._lock:
            self._rows("INSERT OR IGNORE INTO currencies VALUES (?)", currency)
        return {"currency": currency}

    def listed(self, table: str) -> list[dict[str, Any]]:
        """All of the charges, the receipts or the refusals."""
        with self._lock:
            return self._rows(f"SELECT * FROM {table}")

    def figures(self) -> dict[str, int]:
        """Counts since the service started; charges, receipts and refusals since ever."""
        with self._lock:
            counts = {
                table: int(self._rows(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"])
                for table in ("charges", "receipts", "refusals")
            }
            names = ("limit", "calls", "throttled", "at_once", "at_once_max", "repeated")
            return counts | {name: getattr(self, name) for name in names}

    def _rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        cursor = self._books.execute(sql, values)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


class Handler(BaseHTTPRequestHandler):
    """One call."""

    payments: Payments

    def do_GET(self) -> None:
        name = self.path.strip("/")
        if name == "figures":
            self._answer(200, self.payments.figures())
        elif name in ("charges", "receipts", "refusals"):
            self._answer(200, self.payments.listed(name))
        else:
            self._answer(404, {"error": f"There is nothing at {self.path}."})

    def do_POST(self) -> None:
        key = self.headers.get("Idempotency-Key")
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
            match self.path:
                case "/charges":
                    answer = self.payments.charge(body, key, int(self.headers.get("Attempt", "1")))
                case "/receipts":
                    answer = self.payments.receipt(body, key)
                case "/currencies":
                    answer = self.payments.learn(str(body["currency"]))
                case _:
                    raise Refused(404, f"There is nothing at {self.path}.")
        except Refused as refused:
            self._answer(refused.status, {"error": str(refused)})
        except (ValueError, KeyError, TypeError) as fault:
            self._answer(400, {"error": f"The body is not what it should be: {fault!r}"})
        else:
            self._answer(200 if answer.get("repeated") else 201, answer)

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Calls are counted, not printed."""


class Server(ThreadingHTTPServer):
    """A burst is to be answered with 429, not to be lost on the way."""

    request_queue_size = 1024

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that died before its answer came is no fault of this service; its charge is in the books."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description="A payment service with a limit.")
    parser.add_argument("--data", type=Path, default=Path("payments.sqlite"), help="the SQLite file with the books")
    parser.add_argument("--port", type=int, default=8020, help="0 takes a free one")
    parser.add_argument("--limit", type=int, default=20, help="how many calls at once")
    parser.add_argument("--seconds", type=float, default=0.2, help="how long a charge takes")
    given = parser.parse_args()
    handler = type("Bound", (Handler,), {"payments": Payments(given.data, given.limit, given.seconds)})
    server = Server(("127.0.0.1", given.port), handler)
    print(f"ready at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
