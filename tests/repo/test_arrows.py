"""Imports point downwards only, and siblings do not know each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "muster"

# From the ground up. A part may import what lies in a lower row; within a row, only itself.
ROWS: tuple[tuple[str, ...], ...] = (
    ("errors", "clock", "ids", "arn", "transaction"),
    ("operation", "models"),
    # Shipped into functions as one file: it uses nothing of Muster.
    ("idempotency",),
    ("languages.cron", "languages.patterns", "languages.expressions", "languages.jsonpath"),
    ("languages.intrinsics",),
    ("languages.jsonata",),
    ("languages.asl",),
    ("store",),
    ("services.*", "stacks", "engine"),
    ("runners", "wire", "testing", "folder"),
    ("server",),
    ("cli",),
    ("__main__",),
)
# The words everyone uses may use each other.
GROUND = ROWS[0] + ROWS[1]


def part_of(module: str) -> str:
    """The part of the table that a module (without the leading `muster.`) belongs to."""
    for row in ROWS:
        for part in row:
            if part == "services.*" and module.startswith("services."):
                return ".".join(module.split(".")[:2])
            if module == part or module.startswith(part + "."):
                return part
    return module


def row_of(part: str) -> int | None:
    for number, row in enumerate(ROWS):
        if part in row or (part.startswith("services.") and "services.*" in row):
            return number
    return None


def modules() -> Iterator[tuple[str, Path]]:
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if name not in ("__init__", "languages", "services"):
            yield name, file


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def test_every_module_has_its_row() -> None:
    assert [name for name, _ in modules() if row_of(part_of(name)) is None] == []


def test_arrows_point_down_and_siblings_do_not_meet() -> None:
    wrong = []
    for name, file in modules():
        mine = part_of(name)
        my_row = row_of(mine)
        for imported in imports(file):
            if not imported.startswith("muster."):
                continue
            theirs = part_of(imported.removeprefix("muster."))
            their_row = row_of(theirs)
            if theirs == mine or their_row is None or my_row is None:
                continue
            if their_row > my_row or (their_row == my_row and not (mine in GROUND and theirs in GROUND)):
                wrong.append(f"{name} imports {imported}")
    assert wrong == []


def test_no_module_is_a_pile_of_unnamed_ideas() -> None:
    piles = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    assert [name for name, _ in modules() if piles & set(name.split("."))] == []
