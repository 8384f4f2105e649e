"""One state of a definition compiled: its fields checked and turned into functions.

Keeps true: what is wrong is said with the place where it stands; nothing is compiled half. Does not know other states.
"""

from collections.abc import Callable
from typing import Any, Protocol

from muster.languages.asl import choices, maps, timestamps
from muster.languages.asl import definition as asl
from muster.languages.asl.checks import (
    amount_by_path,
    array_by_path,
    fits,
    instant_by_jsonata,
    instant_by_path,
    seconds_by_path,
    text_by_path,
)
from muster.languages.asl.expressions import (
    constant,
    expecting,
    is_jsonata,
    jsonata,
    jsonata_template,
    path,
    query,
    reference,
    template,
)
from muster.languages.asl.fields import CATCHER, CATCHER_JSONATA, CATCHER_JSONPATH, RETRIER
from muster.languages.asl.integrations import Integration, Kind, understand
from muster.languages.intrinsics import IntrinsicInvalid
from muster.languages.jsonata import ExpressionInvalid
from muster.languages.jsonpath import PathError


class Surroundings(Protocol):
    """What a state's compiler may ask of the parser."""

    express: bool
    alone: bool

    def say(self, location: str, message: str, code: str = ...) -> None: ...
    def refuse_unknown(self, document: dict[str, Any], known: frozenset[str], location: str) -> None: ...
    def branch(self, document: Any, location: str, jsonata: bool) -> int: ...
    def processor(self, document: Any, location: str, jsonata: bool) -> int: ...


class StateCompiler:
    """Compiles the fields of one state; what is wrong goes to the parser's findings."""

    def __init__(
        self,
        parser: Surroundings,
        name: str,
        body: dict[str, Any],
        location: str,
        is_jsonata_state: bool,
        machine_is_jsonata: bool,
    ) -> None:
        self.parser = parser
        self.name = name
        self.body = body
        self.location = location
        self.jsonata = is_jsonata_state
        self.machine_is_jsonata = machine_is_jsonata

    def compile(self) -> asl.State | None:
        """The state, or None when something was said about it."""
        build: Callable[[], asl.State | None] = getattr(self, f"_{self.body['Type'].lower()}")
        return build()

    # Fields

    def say(self, field: str, message: str) -> None:
        self.parser.say(f"{self.location}/{field}" if field else self.location, message)

    def require(self, *names: str) -> bool:
        missing = [name for name in names if name not in self.body]
        if missing:
            self.say("", f"These fields are required: [{', '.join(missing)}]")
        return not missing

    def compiled(self, field: str, make: Callable[[], Any]) -> Any:
        """What `make` compiles; None and a finding when the text is not in the language."""
        try:
            return make()
        except (PathError, IntrinsicInvalid) as why:
            self.say(field, f"Value is not a valid JSONPath or intrinsic function: {why}")
        except ExpressionInvalid as why:
            self.parser.say(f"{self.location}/{field}", str(why), why.code)
        return None

    def document_path(self, field: str) -> asl.Evaluator | None:
        """InputPath and OutputPath: None is the whole document, null an empty object."""
        if field not in self.body:
            return None
        text = self.body[field]
        if text is None:
            return constant({})
        if text == "$":
            return None
        if not isinstance(text, str):
            self.say(field, "Value is not a valid JSONPath")
            return None
        return self.found_path(field, text)

    def found_path(self, field: str, text: str) -> asl.Evaluator | None:
        found: asl.Evaluator | None = self.compiled(field, lambda: path(text, field))
        return found

    def tree(self, field: str) -> asl.Evaluator | None:
        """A payload template, of either language."""
        return self.nested_tree(self.body, field, field)

    def nested_tree(self, body: dict[str, Any], key: str, field: str) -> asl.Evaluator | None:
        """A payload template in an object of the state."""
        if key not in body:
            return None
        value = body[key]
        make = (lambda: jsonata_template(value, field)) if self.jsonata else (lambda: template(value, field))
        found: asl.Evaluator | None = self.compiled(field, make)
        return found

    def nested_amount(self, body: dict[str, Any], key: str, field: str) -> asl.Evaluator | None:
        """A number in an object of the state, literal or by path."""
        inner = StateCompiler(
            self.parser, self.name, body, f"{self.location}/{field}", self.jsonata, self.machine_is_jsonata
        )
        return inner.amount(key)

    def refuse(self, body: dict[str, Any], known: set[str], field: str) -> None:
        """Refuse fields of an object of the state that nobody knows."""
        self.parser.refuse_unknown(body, frozenset(known), f"{self.location}/{field}")

    def assigned(self, body: dict[str, Any], location: str) -> asl.Evaluator | None:
        value = body.get("Assign")
        if value is None:
            return None
        if not isinstance(value, dict):
            self.say(location, "Value is not an object")
            return None
        for key in value:
            name = key if self.jsonata else key.removesuffix(".$")
            if not name.isidentifier() or len(name) > 80:
                self.say(location, f"Variable name '{name}' is not valid")
            if name == "states":
                self.say(location, "Variable name 'states' is reserved")
        make = (lambda: jsonata_template(value, "Assign")) if self.jsonata else (lambda: template(value, "Assign"))
        found: asl.Evaluator | None = self.compiled(location, make)
        return found

    def result_path(self, body: dict[str, Any], location: str) -> asl.Writer | None:
        """How a ResultPath other than `$` writes; null drops the result."""
        text = body.get("ResultPath", "$")
        if text == "$":
            return None
        if text is None:
            return lambda document, value: document
        if not isinstance(text, str):
            self.say(location, "Value is not a Reference Path")
            return None
        found: asl.Writer | None = self.compiled(location, lambda: reference(text))
        return found

    def target(self, body: dict[str, Any], location: str) -> str | None:
        """Next, or None for End."""
        following, end = body.get("Next"), body.get("End")
        if following is None and end is not True:
            if not self.parser.alone:
                self.parser.say(location, "These fields are required: [Next or End]")
            return None
        if following is not None and end is not None:
            self.parser.say(location, "There should only be one of the following fields: [Next, End]")
        if following is not None and not isinstance(following, str):
            self.parser.say(f"{location}/Next", "Value is not a String")
            return None
        return following

    def amount(
        self, field: str, *, low: float = 0, high: float | None = None, whole: bool = True
    ) -> asl.Evaluator | None:
        """A number given literally, by path, or by a JSONata expression; checked when it is evaluated."""
        by_path = f"{field}Path"
        if field in self.body and by_path in self.body:
            self.say("", f"There should only be one of the following fields: [{field}, {by_path}]")
            return None
        if by_path in self.body:
            text = self.body[by_path]
            if not isinstance(text, str) or (text.startswith("$$") and field.startswith(("Max", "Tolerated"))):
                self.say(by_path, "Value is not a Reference Path")
                return None
            found = self.compiled(by_path, lambda: query(text, by_path))
            return found and amount_by_path(found, field, text, low)
        value = self.body.get(field)
        if value is None:
            return None
        if self.jsonata and is_jsonata(value):
            found = self.compiled(field, lambda: jsonata(value, field))
            return found and expecting(found, "number", value, field)
        if not isinstance(value, int | float) or isinstance(value, bool) or (whole and value != int(value)):
            self.say(field, "Value is not an integer" if whole else "Value is not a number")
            return None
        if value < low or (high is not None and value > high):
            bound, word = (low, "Minimum") if value < low else (high, "Maximum")
            assert bound is not None
            self.say(field, f"{word} value is {int(bound) if whole else float(bound)}")
            return None
        return constant(value)

    def common(self) -> dict[str, Any]:
        """The members every state has."""
        return {
            "name": self.name,
            "jsonata": self.jsonata,
            "input": None if self.jsonata else self.document_path("InputPath"),
            "output_path": None if self.jsonata else self.document_path("OutputPath"),
            "assign": self.assigned(self.body, "Assign"),
            "output": self.tree("Output") if self.jsonata else None,
        }

    def working(self) -> dict[str, Any]:
        """The members of states with a result."""
        write = self.result_path(self.body, "ResultPath")
        return {
            **self.common(),
            "next": self.target(self.body, self.location),
            "parameters": self.tree("Arguments" if self.jsonata else "Parameters"),
            "result_selector": self.tree("ResultSelector"),
            "result_path": write,
            "retriers": tuple(self.retriers()),
            "catchers": tuple(self.catchers()),
        }

    # Errors

    def elements(self, field: str) -> list[tuple[str, dict[str, Any], tuple[str, ...]]]:
        """The elements of Retry or Catch with their places and their ErrorEquals."""
        value = self.body.get(field, [])
        if not isinstance(value, list):
            self.say(field, "Value is not an array")
            return []
        found = []
        for place, element in enumerate(value):
            location = f"{field}[{place}]"
            if not isinstance(element, dict):
                self.say(location, "Value is not an object")
                continue
            errors = element.get("ErrorEquals")
            if not isinstance(errors, list) or not errors or not all(isinstance(one, str) for one in errors):
                self.say(location, "The field 'ErrorEquals' is required and must be a non-empty array of strings")
                continue
            if "States.ALL" in errors and (len(errors) > 1 or place != len(value) - 1):
                self.say(f"{location}/ErrorEquals", "States.ALL must be alone and in the last element")
            found.append((location, element, tuple(errors)))
        return found

    def retriers(self) -> list[asl.Retrier]:
        found = []
        for location, element, errors in self.elements("Retry"):
            self.parser.refuse_unknown(element, RETRIER, f"{self.location}/{location}")
            jitter = element.get("JitterStrategy", "NONE")
            if jitter not in ("FULL", "NONE"):
                self.say(
                    f"{location}/JitterStrategy",
                    "The field 'JitterStrategy' should have one of these values: [FULL, NONE]",
                )
            interval = self.bounded(element, location, "IntervalSeconds", 1, 1)
            attempts = self.bounded(element, location, "MaxAttempts", 3, 0, 99_999_999)
            rate = self.bounded(element, location, "BackoffRate", 2.0, 1.0)
            longest = self.bounded(element, location, "MaxDelaySeconds", None, 1, 31_622_400)
            if longest is not None and interval is not None and longest <= interval:
                self.say(f"{location}/MaxDelaySeconds", "MaxDelaySeconds must be greater than IntervalSeconds")
            found.append(asl.Retrier(errors, interval or 1, int(attempts or 0), rate or 2.0, longest, jitter == "FULL"))
        return found

    def bounded(
        self,
        element: dict[str, Any],
        location: str,
        field: str,
        default: float | None,
        low: float,
        high: float | None = None,
    ) -> float | None:
        value = element.get(field, default)
        if value is None:
            return None
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or value < low
            or (high is not None and value > high)
        ):
            self.say(f"{location}/{field}", f"Value must be a number of at least {low}")
            return None
        return value

    def catchers(self) -> list[asl.Catcher]:
        found = []
        known = CATCHER | (CATCHER_JSONATA if self.jsonata else CATCHER_JSONPATH)
        for location, element, errors in self.elements("Catch"):
            self.parser.refuse_unknown(element, known, f"{self.location}/{location}")
            following = element.get("Next")
            if not isinstance(following, str):
                self.say(location, "These fields are required: [Next]")
                continue
            write = self.result_path(element, f"{location}/ResultPath")
            output = element.get("Output")
            found.append(
                asl.Catcher(
                    errors,
                    following,
                    write,
                    self.assigned(element, f"{location}/Assign"),
                    self.compiled(location, lambda output=output: jsonata_template(output, "Output"))  # type: ignore[misc]
                    if "Output" in element
                    else None,
                )
            )
        return found

    # Types

    def _pass(self) -> asl.State:
        boxed = (self.body["Result"],) if "Result" in self.body else None
        return asl.Pass(**self.working(), result=boxed)

    def _succeed(self) -> asl.State:
        return asl.Succeed(**self.common())

    def _fail(self) -> asl.State:
        return asl.Fail(name=self.name, jsonata=self.jsonata, error=self.reason("Error"), cause=self.reason("Cause"))

    def reason(self, field: str) -> asl.Evaluator | None:
        """Error or Cause of a Fail state: literal, by path or intrinsic function, or JSONata."""
        by_path = f"{field}Path"
        if field in self.body and by_path in self.body:
            self.say("", f"There should only be one of the following fields: [{field}, {by_path}]")
            return None
        text = self.body.get(by_path, self.body.get(field))
        if text is None:
            return None
        if not isinstance(text, str):
            self.say(field, "Value is not a String")
            return None
        if by_path in self.body:
            found = self.compiled(by_path, lambda: query(text, by_path))
            return found and text_by_path(found, by_path, text)
        if self.jsonata and is_jsonata(text):
            found = self.compiled(field, lambda: jsonata(text, field))
            return found and expecting(found, "string", text, field)
        return constant(text)

    def _wait(self) -> asl.State | None:
        given = [name for name in ("Seconds", "SecondsPath", "Timestamp", "TimestampPath") if name in self.body]
        if len(given) != 1:
            self.say("", "Exactly one of these fields is required: [Seconds, SecondsPath, Timestamp, TimestampPath]")
            return None
        members = {**self.common(), "next": self.target(self.body, self.location)}
        if given[0].startswith("Seconds"):
            return asl.Wait(**members, seconds=self.wait_seconds(given[0]))
        return asl.Wait(**members, until=self.wait_until(given[0]))

    def wait_seconds(self, field: str) -> asl.Evaluator | None:
        value = self.body[field]
        if field == "Seconds":
            if self.jsonata and is_jsonata(value):
                found = self.compiled(field, lambda: jsonata(value, field))
                return found and expecting(found, "number", value, field)
            if not isinstance(value, int) or isinstance(value, bool):
                self.say(field, "Value is not an integer")
                return None
            if not 0 <= value <= 99_999_999:
                self.say(field, "Minimum value is 0" if value < 0 else "Maximum value is 99999999")
                return None
            return constant(value)
        found = self.compiled(field, lambda: query(value, field))
        return found and seconds_by_path(found, value)

    def wait_until(self, field: str) -> asl.Evaluator | None:
        value = self.body[field]
        if not isinstance(value, str):
            self.say(field, "Value is not a String")
            return None
        if field == "TimestampPath":
            found = self.compiled(field, lambda: query(value, field))
            return found and instant_by_path(found, value)
        if self.jsonata and is_jsonata(value):
            found = self.compiled(field, lambda: jsonata(value, field))
            return found and instant_by_jsonata(found, value)
        instant = timestamps.parse(value)
        if instant is None or not value.endswith("Z"):
            self.say(field, "String does not match RFC3339 timestamp")
            return None
        return constant(instant)

    def _choice(self) -> asl.State | None:
        if not self.require("Choices"):
            return None
        rules = self.body["Choices"]
        if not isinstance(rules, list):
            self.say("Choices", "Value is not an array")
            return None
        if not rules:
            self.say("Choices", "Value cannot be empty")
            return None
        compiled = [self.rule(rule, f"Choices[{place}]") for place, rule in enumerate(rules)]
        default = self.body.get("Default")
        if default is not None and not isinstance(default, str):
            self.say("Default", "Value is not a String")
        return asl.Choice(**self.common(), rules=tuple(rule for rule in compiled if rule), default=default)

    def rule(self, rule: Any, location: str) -> asl.Rule | None:
        if not isinstance(rule, dict):
            self.say(location, "Value is not an object")
            return None
        following = rule.get("Next")
        if not isinstance(following, str):
            self.say(location, "These fields are required: [Next]")
            return None
        own = {"Next", "Comment", "Assign"} | ({"Output", "Condition"} if self.jsonata else set())
        if self.jsonata:
            self.parser.refuse_unknown(rule, frozenset(own), f"{self.location}/{location}")
            holds = self.condition(rule, location)
        else:
            holds = self.question({key: value for key, value in rule.items() if key not in own}, location)
        output = rule.get("Output")
        made = self.compiled(location, lambda: jsonata_template(output, "Output")) if "Output" in rule else None
        return holds and asl.Rule(holds, following, self.assigned(rule, f"{location}/Assign"), made)

    def condition(self, rule: dict[str, Any], location: str) -> asl.Evaluator | None:
        text = rule.get("Condition")
        if isinstance(text, bool):
            return constant(text)
        if not is_jsonata(text):
            self.say(location, "The field 'Condition' is required and must be a JSONata expression or a boolean")
            return None
        assert isinstance(text, str)
        found = self.compiled(location, lambda: jsonata(text, f"{location}/Condition"))
        return found and expecting(found, "boolean", text, f"{location}/Condition")

    def question(self, rule: dict[str, Any], location: str) -> asl.Evaluator | None:
        """A data-test expression: And, Or, Not, or one comparison."""
        rule = {key: value for key, value in rule.items() if key != "Comment"}
        for name, combine in (("And", choices.every), ("Or", choices.some)):
            if name in rule:
                parts = rule[name]
                if not isinstance(parts, list) or not parts or len(rule) > 1:
                    self.say(f"{location}/{name}", "Value is not a non-empty array, or stands beside other fields")
                    return None
                asked = [
                    self.question(part, f"{location}/{name}[{place}]")
                    for place, part in enumerate(parts)
                    if isinstance(part, dict)
                ]
                return combine([one for one in asked if one]) if len(asked) == len(parts) else None
        if "Not" in rule:
            if not isinstance(rule["Not"], dict) or len(rule) > 1:
                self.say(f"{location}/Not", "Value is not an object, or stands beside other fields")
                return None
            inner = self.question(rule["Not"], f"{location}/Not")
            return choices.negation(inner) if inner else None
        variable = rule.pop("Variable", None)
        if not isinstance(variable, str):
            self.say(location, "These fields are required: [Variable]")
            return None
        if len(rule) != 1:
            self.say(location, "A Choice rule needs exactly one comparison operator")
            return None
        ((name, operand),) = rule.items()
        expected = choices.OPERANDS.get(name)
        if expected is None:
            self.say(f"{location}/{name}", f"Field '{name}' is not supported")
            return None
        if not fits(operand, expected):
            self.say(f"{location}/{name}", f"Value is not a {expected}")
            return None
        found: asl.Evaluator | None = self.compiled(location, lambda: choices.comparison(variable, name, operand))
        return found

    def _task(self) -> asl.State | None:
        if not self.require("Resource"):
            return None
        resource = self.body["Resource"]
        integration = understand(resource) if isinstance(resource, str) else None
        if integration is None:
            self.say(
                "Resource",
                f"The resource provided {resource} is not recognized. The value is not a valid resource ARN, or the "
                "resource is not available in this region.",
            )
            return None
        self.refuse_in_express(integration)
        credentials = self.body.get("Credentials")
        if credentials is not None and not (
            isinstance(credentials, dict) and any(key in credentials for key in ("RoleArn", "RoleArn.$"))
        ):
            self.say("Credentials", "The field 'RoleArn' is required but was missing")
        return asl.Task(
            **self.working(),
            integration=integration,
            timeout=self.amount("TimeoutSeconds", low=1, high=99_999_999),
            heartbeat=self.amount("HeartbeatSeconds", low=1, high=99_999_999),
            credentials=self.tree("Credentials"),
        )

    def refuse_in_express(self, integration: Integration) -> None:
        if not self.parser.express:
            return
        if integration.is_sync:
            self.say("Resource", "Express state machine does not support '.sync' service integration")
        elif integration.waits_for_token:
            self.say("Resource", "Express state machine does not support '.waitForTaskToken' service integration ")
        elif integration.kind is Kind.ACTIVITY:
            self.say("Resource", "Express state machine does not support Activity ARN")

    def _parallel(self) -> asl.State | None:
        if not self.require("Branches"):
            return None
        branches = self.body["Branches"]
        if not isinstance(branches, list):
            self.say("Branches", "Value is not an array")
            return None
        if not branches:
            self.say("Branches", "Value cannot be empty")
            return None
        numbers = [
            self.parser.branch(branch, f"{self.location}/Branches[{place}]", self.machine_is_jsonata)
            for place, branch in enumerate(branches)
        ]
        return asl.Parallel(**self.working(), branches=tuple(numbers))

    def _map(self) -> asl.State | None:
        given = [name for name in ("ItemProcessor", "Iterator") if name in self.body]
        if len(given) != 1:
            self.say("", "Exactly one of these fields is required: [ItemProcessor, Iterator]")
            return None
        processor = self.body[given[0]]
        config = processor.get("ProcessorConfig", {}) if isinstance(processor, dict) else {}
        mode = config.get("Mode", "INLINE") if isinstance(config, dict) else "INLINE"
        if mode not in ("INLINE", "DISTRIBUTED"):
            self.say(
                f"{given[0]}/ProcessorConfig/Mode",
                "The field 'Mode' should have one of these values: [INLINE, DISTRIBUTED]",
            )
        distributed = mode == "DISTRIBUTED"
        express = distributed and config.get("ExecutionType") == "EXPRESS"
        for field in ("ItemReader", "ItemBatcher", "ResultWriter"):
            if field in self.body and not distributed:
                self.say(field, f"Field '{field}' is only supported in DISTRIBUTED mode")
        if "ItemSelector" in self.body and "Parameters" in self.body:
            self.say("", "There should only be one of the following fields: [ItemSelector, Parameters]")
        members = self.working()
        selector = "ItemSelector" if "ItemSelector" in self.body or self.jsonata else "Parameters"
        return asl.Map(
            **{**members, "parameters": None},
            processor=self._processor(processor, f"{self.location}/{given[0]}", express=express),
            items=self.items(),
            item_selector=self.tree(selector),
            concurrency=self.amount("MaxConcurrency"),
            tolerated_count=self.amount("ToleratedFailureCount"),
            tolerated_percentage=self.amount("ToleratedFailurePercentage", high=100, whole=False),
            reader=maps.reader(self, self.body["ItemReader"]) if "ItemReader" in self.body else None,
            batcher=maps.batcher(self, self.body["ItemBatcher"]) if "ItemBatcher" in self.body else None,
            writer=maps.writer(self, self.body["ResultWriter"]) if "ResultWriter" in self.body else None,
            distributed=distributed,
            label=self.body.get("Label"),
            express=express,
        )

    def _processor(self, processor: Any, location: str, *, express: bool) -> int:
        """The processor's scope; children of a Map Run may be Express where the machine is not."""
        around = self.parser.express
        self.parser.express = around or express
        try:
            return self.parser.processor(processor, location, self.machine_is_jsonata)
        finally:
            self.parser.express = around

    def items(self) -> asl.Evaluator | None:
        if self.jsonata:
            value = self.body.get("Items")
            if value is None:
                return None
            if is_jsonata(value):
                found = self.compiled("Items", lambda: jsonata(value, "Items"))
                return found and expecting(found, "array", value, "Items")
            if not isinstance(value, list):
                self.say("Items", "Value is not an array or a JSONata expression")
                return None
            return self.tree("Items")
        if "ItemsPath" not in self.body:
            return None
        text = self.body["ItemsPath"]
        if not isinstance(text, str):
            self.say("ItemsPath", "Value is not a valid JSONPath")
            return None
        found = self.compiled("ItemsPath", lambda: query(text, "ItemsPath"))
        return found and array_by_path(found, text)
