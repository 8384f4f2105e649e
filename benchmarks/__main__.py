"""`python -m benchmarks [NAME…] [--json]`: run the measures and print what came of them."""

import argparse
import json
import platform
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import inside, machines, outside

Figures = dict[str, Any]
MEASURES: dict[str, Callable[[Path], Figures]] = {
    "transitions": inside.transitions,
    "changes": inside.changes,
    "stepper": machines.stepper,
    "waiting": machines.waiting,
    "start_up": outside.start_up,
    "upload_to_start": outside.upload_to_start,
    "executions": outside.executions,
    "objects": outside.objects,
    "large_object": outside.large_object,
    "queue": outside.queue,
    "mapping": outside.mapping,
    "alarm": outside.alarm,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*MEASURES, []], help="which measures; all when not given")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--count", type=int, default=10_000, help="how many executions `waiting` has waiting")
    wanted = parser.parse_args()
    measures: dict[str, Callable[[Path], Figures]] = {
        **MEASURES,
        "waiting": partial(machines.waiting, count=wanted.count),
    }
    found: dict[str, Figures] = {}
    for name in wanted.names or MEASURES:
        with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
            found[name] = measures[name](Path(folder))
        if not wanted.json:
            print(name)
            for figure, value in found[name].items():
                print(f"  {figure:<48} {value}")
    if wanted.json:
        print(json.dumps({"python": platform.python_version(), "machine": platform.machine(), "measures": found}))


if __name__ == "__main__":
    main()
