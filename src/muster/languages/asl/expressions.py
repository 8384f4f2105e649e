"""Fields compiled to functions of an environment: paths, intrinsic functions, JSONata, and templates of them.

Keeps true: everything is compiled once; evaluating changes nothing, and a template without expressions is a constant.
A value that cannot be had raises Refused with AWS's sentence, naming the expression and the field. Does not know which
state it serves.
"""

from collections.abc import Callable
from typing import Any

import orjson

from muster.languages.asl.definition import Evaluator, Writer
from muster.languages.asl.environment import NOTHING, Environment
from muster.languages.asl.failures import INTRINSIC_FAILURE, QUERY_EVALUATION, RESULT_PATH, RUNTIME, Refused
from muster.languages.intrinsics import IntrinsicFailed, compile_intrinsic
from muster.languages.jsonata import UNDEFINED, ExpressionFailed, compile_expression
from muster.languages.jsonpath import PathError, compile_path, compile_reference


def dumps(value: Any) -> str:
    """A value as the JSON text that history shows; Refused when it is nested so deeply that an execution's state could
    not hold it (some 250 levels; the eight brackets leave room for what an execution's state puts around a value)."""
    try:
        return orjson.dumps([[[[[[[[value]]]]]]]])[8:-8].decode()
    except TypeError as why:
        raise Refused(RUNTIME, "The data is nested too deeply.") from why


def constant(value: Any) -> Evaluator:
    """Always this value."""
    return lambda env: value


def _reader(text: str) -> Callable[[Environment], Any]:
    path = compile_path(text)
    root, read = path.root, path.read
    if root == "$":

        def document(env: Environment) -> Any:
            if env.document is None:
                raise Refused(RUNTIME, "Unable to apply Path transformation to null or empty input.")  # observed
            return read(env.document)

        return document
    if root == "$$":
        return lambda env: read(env.context())
    name = root.removeprefix("$")

    def variable(env: Environment) -> Any:
        value = env.variables.get(name, NOTHING)
        if value is NOTHING:
            raise PathError(f"the variable {name} has no value")
        return read(value)

    return variable


def path(text: str, field: str) -> Evaluator:
    """A JSONPath into the document, the context object (`$$`) or a variable (`$name`)."""
    reader = _reader(text)

    def evaluate(env: Environment) -> Any:
        try:
            return reader(env)
        except PathError as why:
            raise Refused(
                RUNTIME,
                f"The JSONPath '{text}' specified for the field '{field}' could not be found in the input "
                f"'{dumps(env.document)}'",
            ) from why

    return evaluate


def present(text: str) -> Callable[[Environment], Any]:
    """A JSONPath that answers NOTHING where `path` would refuse."""
    reader = _reader(text)

    def evaluate(env: Environment) -> Any:
        try:
            return reader(env)
        except PathError:
            return NOTHING

    return evaluate


def reference(text: str) -> Writer:
    """A reference path to write to: ResultPath."""
    write = compile_reference(text).write

    def combine(document: Any, value: Any) -> Any:
        try:
            return write(document, value)
        except PathError as why:
            raise Refused(RESULT_PATH, f"Unable to apply ReferencePath {text} to input {dumps(document)}") from why

    return combine


def intrinsic(text: str, field: str) -> Evaluator:
    """A call of intrinsic functions."""
    compiled = compile_intrinsic(text)
    readers: dict[str, Callable[[Environment], Any]] = {}

    def evaluate(env: Environment) -> Any:
        def resolve(argument: str) -> Any:
            reader = readers.get(argument)
            if reader is None:
                reader = readers[argument] = path(argument, field)
            return reader(env)

        try:
            return compiled.evaluate(resolve, env.chance)
        except IntrinsicFailed as why:
            raise Refused(INTRINSIC_FAILURE, f"The function '{text}' had the following error: {why}") from why

    return evaluate


def is_intrinsic(text: str) -> bool:
    """Whether the text of a `.$` field is a call and not a path."""
    return not text.startswith("$")


def query(text: str, field: str) -> Evaluator:
    """What the text of a `.$` field says: a path, or intrinsic functions."""
    return intrinsic(text, field) if is_intrinsic(text) else path(text, field)


def template(value: Any, field: str = "") -> Evaluator:
    """A payload template: every field whose name ends in `.$` is replaced by what its text asks for."""
    found = _template(value)
    return constant(value) if found is None else found


def _template(value: Any) -> Evaluator | None:
    """None where there is nothing to replace."""
    if isinstance(value, dict):
        parts: list[tuple[str, Evaluator]] = []
        dynamic = False
        for key, inner in value.items():
            if key.endswith(".$"):
                parts.append((key[:-2], query(inner, key)))
                dynamic = True
            else:
                found = _template(inner)
                dynamic = dynamic or found is not None
                parts.append((key, found or constant(inner)))
        return (lambda env: {key: part(env) for key, part in parts}) if dynamic else None
    if isinstance(value, list):
        found_items = [_template(inner) for inner in value]
        if not any(found_items):
            return None
        items = [found or constant(inner) for found, inner in zip(found_items, value, strict=True)]
        return lambda env: [item(env) for item in items]
    return None


def is_jsonata(value: Any) -> bool:
    """Whether a text is a JSONata expression: `{% … %}`."""
    return isinstance(value, str) and value.startswith("{%") and value.endswith("%}")


def jsonata(text: str, field: str) -> Evaluator:
    """A JSONata expression in its `{% … %}`."""
    source = text[2:-2].strip()
    compiled = compile_expression(source)

    def evaluate(env: Environment) -> Any:
        try:
            value = compiled.evaluate(env.bindings(), env.chance)
        except ExpressionFailed as why:
            raise Refused(
                QUERY_EVALUATION,
                f"The JSONata expression '{source}' specified for the field '{field}' threw an error during "
                f"evaluation{why.ending}",
                field,
            ) from why
        if value is UNDEFINED:
            raise Refused(
                QUERY_EVALUATION,
                f"The JSONata expression '{source}' specified for the field '{field}' returned nothing (undefined).",
                field,
            )
        return value

    return evaluate


def jsonata_template(value: Any, field: str) -> Evaluator:
    """A value with JSONata expressions in it, at any depth."""
    found = _jsonata_template(value, field)
    return constant(value) if found is None else found


def _jsonata_template(value: Any, field: str) -> Evaluator | None:
    if is_jsonata(value):
        return jsonata(value, field)
    if isinstance(value, dict):
        found = {key: _jsonata_template(inner, f"{field}/{key}") for key, inner in value.items()}
        if not any(found.values()):
            return None
        parts = [(key, found[key] or constant(inner)) for key, inner in value.items()]
        return lambda env: {key: part(env) for key, part in parts}
    if isinstance(value, list):
        found_items = [_jsonata_template(inner, f"{field}[{place}]") for place, inner in enumerate(value)]
        if not any(found_items):
            return None
        items = [one or constant(inner) for one, inner in zip(found_items, value, strict=True)]
        return lambda env: [item(env) for item in items]
    return None


_TYPE_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    ((int, float), "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def type_name(value: Any) -> str:
    """The JSON type of a value, as AWS's messages name it."""
    for kinds, name in _TYPE_NAMES:
        if isinstance(value, kinds):
            return name
    return "null"


def expecting(evaluator: Evaluator, expected: str, text: str, field: str) -> Evaluator:
    """A JSONata field that must come out as a value of the type `expected`."""
    source = text[2:-2].strip() if is_jsonata(text) else text

    def evaluate(env: Environment) -> Any:
        value = evaluator(env)
        found = type_name(value)
        if found != expected:
            raise Refused(
                QUERY_EVALUATION,
                f"The JSONata expression '{source}' specified for the field '{field}' returned an unexpected result "
                f"type. Expected '{expected}', but was '{found}' for value: {dumps(value)}",
                field,
            )
        return value

    return evaluate
