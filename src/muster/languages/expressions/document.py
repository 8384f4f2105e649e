"""Reading from, writing into and cutting out of an item by document paths.

Keeps true: values are never changed in place; a write answers new maps and lists along its path and shares the rest.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from muster.languages.expressions.problem import ExpressionError
from muster.languages.expressions.syntax import Path
from muster.languages.expressions.value import AttributeValue, Item

# A tree of what a projection keeps: attribute names and list indexes, down to None (all of it).
Tree = dict[str | int, Any]


def found(item: Mapping[str, AttributeValue], path: Path) -> AttributeValue | None:
    """The value at `path`, or None."""
    value = item.get(path[0])  # type: ignore[arg-type]  # a path begins with a name
    for part in path[1:]:
        if value is None:
            return None
        value = _inside(value, part)
    return value


def _inside(value: AttributeValue, part: str | int) -> AttributeValue | None:
    if isinstance(part, str):
        inner: AttributeValue | None = value["M"].get(part) if "M" in value else None
        return inner
    members = value.get("L")
    return members[part] if members is not None and part < len(members) else None


def _invalid_path() -> ExpressionError:
    return ExpressionError("The document path provided in the update expression is invalid for update")


def placed(item: Item, path: Path, value: AttributeValue) -> Item:
    """The item with `value` at `path`; beyond a list's end it is appended. ExpressionError when there is no parent."""
    [name, *rest] = path
    assert isinstance(name, str)
    if not rest:
        return {**item, name: value}
    if name not in item:
        raise _invalid_path()
    return {**item, name: _placed_inside(item[name], rest, value)}


def _placed_inside(container: AttributeValue, path: list[str | int], value: AttributeValue) -> AttributeValue:
    [part, *rest] = path
    if isinstance(part, str):
        if "M" not in container:
            raise _invalid_path()
        return {"M": placed(container["M"], (part, *rest), value)}
    if "L" not in container:
        raise _invalid_path()
    members = list(container["L"])
    if not rest:
        members[part : part + 1] = [value]
    elif part < len(members):
        members[part] = _placed_inside(members[part], rest, value)
    else:
        raise _invalid_path()
    return {"L": members}


def removed(item: Item, path: Path) -> Item:
    """The item without what is at `path`; nothing happens when only the last step is missing."""
    [name, *rest] = path
    assert isinstance(name, str)
    if not rest:
        return {other: value for other, value in item.items() if other != name}
    if name not in item:
        raise _invalid_path()
    return {**item, name: _removed_inside(item[name], rest)}


def _removed_inside(container: AttributeValue, path: list[str | int]) -> AttributeValue:
    [part, *rest] = path
    if isinstance(part, str):
        if "M" not in container:
            raise _invalid_path()
        return {"M": removed(container["M"], (part, *rest))}
    if "L" not in container:
        raise _invalid_path()
    members = list(container["L"])
    if not rest:
        del members[part : part + 1]
    elif part < len(members):
        members[part] = _removed_inside(members[part], rest)
    else:
        raise _invalid_path()
    return {"L": members}


def tree(paths: Iterable[Path]) -> Tree:
    """The paths as one tree."""
    root: Tree = {}
    for path in paths:
        branch = root
        for part in path[:-1]:
            branch = branch.setdefault(part, {})
        branch[path[-1]] = None
    return root


def cut_out(item: Mapping[str, AttributeValue], wanted: Tree) -> Item:
    """Only what the tree names; what remains of a list closes its gaps."""
    kept: Item = {}
    for name, branch in wanted.items():
        value = item.get(name)  # type: ignore[arg-type]  # a tree begins with names
        if value is not None:
            part = value if branch is None else _cut_inside(value, branch)
            if part is not None:
                kept[name] = part  # type: ignore[index]
    return kept


def _cut_inside(value: AttributeValue, wanted: Tree) -> AttributeValue | None:
    if "M" in value and isinstance(next(iter(wanted)), str):
        kept = cut_out(value["M"], wanted)
        return {"M": kept} if kept else None
    if "L" in value and isinstance(next(iter(wanted)), int):
        members = value["L"]
        parts = []
        for index in sorted(wanted):
            if index < len(members):  # type: ignore[operator]
                branch = wanted[index]
                part = members[index] if branch is None else _cut_inside(members[index], branch)
                if part is not None:
                    parts.append(part)
        return {"L": parts} if parts else None
    return None
