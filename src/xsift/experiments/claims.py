"""Claims: the small language in which a paper's sentence becomes a check on the numbers.

A check is written in Python's expression syntax, and `ast` parses it, but nothing of Python runs: `Check` walks the
tree and knows numbers, rows (a number for each point of the x axis), comparisons and the functions below. What a
check names (series, measures, places on the axis) is looked up when the definition is read, so that a misspelt label
is found before an hour of measuring. docs/experiments.md describes the language.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from xsift.experiments.errors import ExperimentError
from xsift.experiments.measures import MEASURES, is_measure, unit_of
from xsift.experiments.rows import Axis, Flags, NotMeasured, Number, Numbers, Row, Setting, Value, as_numbers
from xsift.experiments.tables import nearest

__all__ = ["Check"]

LONGEST = 2000  # characters; no sentence of a paper needs more
DEEPEST = 50
HIGHEST = 1e100


_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


OTHERS: dict[str, Callable[[list[float]], float]] = {"lowest_other": min, "highest_other": max}


class Check:
    """A parsed expression of the language, for one figure."""

    def __init__(self, text: str, setting: Setting, place: str = "") -> None:
        self.text = re.sub(r"\s*\n\s*", " ", text.strip())
        self.setting = setting
        self.place = place
        self.measures: set[str] = set()
        self.labels: set[str] = set()
        if len(self.text) > LONGEST:
            raise self.error(f"the expression has {len(self.text)} characters", hint=f"at most {LONGEST}")
        try:
            self.tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise self.error(f"{getattr(error, 'msg', error)}") from None
        self._look(self.tree, 0)

    def value(self, numbers: Numbers, values: Axis | None = None, *, in_place: bool = False) -> Value:
        """The expression's value. Raises NotMeasured if it needs a number that is not there.

        `values` is the axis as it was measured, if that is not as the file has it: `x` is then of what was measured,
        and a place on the axis that was not measured has no number; `in_place`, it has that of the file's place.
        """
        return _Evaluation(self, numbers, values, in_place).of(self.tree)

    def holds(self, numbers: Numbers, values: Axis | None = None) -> bool:
        """Whether the check is true."""
        value = self.value(numbers, values)
        if isinstance(value, bool):
            return value
        if isinstance(value, Flags):
            raise self.error("it compares at each point", hint="say always(…), ever(…) or share(…) of it")
        raise self.error("it gives a number, not true or false", hint="compare it with something")

    def evidence(self, numbers: Numbers, values: Axis | None = None) -> list[tuple[str, Number | Row]]:
        """The numbers that decide: the sides of the first comparison of measures, and their ratio."""
        evaluation = _Evaluation(self, numbers, values)
        found: list[tuple[str, Number | Row]] = []
        for node in self._decisive():
            value = evaluation.of(node)
            if isinstance(value, Number | Row):
                found.append((ast.get_source_segment(self.text, node) or "", value))
        if len(found) == 2:
            with contextlib.suppress(NotMeasured):
                found.append(("ratio", evaluation.combine(operator.truediv, found[0][1], found[1][1])))
        return found

    def _decisive(self) -> list[ast.expr]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Compare) and not self._constant(node):
                return [self._bare(side) for side in (node.left, *node.comparators) if not self._constant(side)]
            if isinstance(node, ast.Call) and _called(node) in ("rising", "falling", "flat"):
                return [node.args[0]]
        return [self.tree]

    def _constant(self, node: ast.expr) -> bool:
        return not any(isinstance(part, ast.Call) for part in ast.walk(node))

    def _bare(self, node: ast.expr) -> ast.expr:
        """`0.3 * y("A")` without the factor: what it is compared with is what one wants to see."""
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right) if self._constant(left):
                return self._bare(right)
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right) if self._constant(right):
                return self._bare(left)
        return node

    def error(self, message: str, hint: str = "") -> ExperimentError:
        return ExperimentError("bad-check", f"{self.text!r}: {message}", place=self.place, hint=hint)

    def _look(self, node: ast.expr, depth: int) -> None:
        """Refuses what is not of the language and what does not exist; notes what the check names."""
        if depth > DEEPEST:
            raise self.error("the expression is nested too deeply", hint=f"at most {DEEPEST} levels")
        match node:
            case ast.Constant(value=int() | float() as value):
                if abs(value) > HIGHEST:
                    raise self.error("a number in it is too large")
                return
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                inner = [left, right]
            case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
                inner = [operand]
            case ast.BoolOp(values=values):
                inner = values
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
                inner = [left, *others]
            case ast.Name(id="x"):
                return
            case ast.Call(keywords=[]) if _called(node):
                inner = self._look_at_call(node)
            case _:
                raise self.error(f"{ast.unparse(node)!r} is not of the language", hint="docs/experiments.md, Claims")
        for part in inner:
            self._look(part, depth + 1)

    def _look_at_call(self, call: ast.Call) -> list[ast.expr]:
        name = _called(call)
        if name in FUNCTIONS:
            least, most = FUNCTIONS[name].arguments
            if not least <= len(call.args) <= most:
                wanted = str(least) if least == most else f"{least} to {most}"
                raise self.error(f"{name}() takes {wanted} arguments, not {len(call.args)}")
            return call.args
        if name not in ("y", *OTHERS) and not is_measure(name):
            raise self.error(f"there is no {name!r}", hint=nearest(name, [*FUNCTIONS, *OTHERS, "y", *MEASURES]))
        most = 1 if name in OTHERS else 2
        if not 1 <= len(call.args) <= most:
            raise self.error(f"{name}() takes a label" + (", and perhaps a value of x" if most == 2 else ""))
        label = call.args[0]
        if not isinstance(label, ast.Constant) or not isinstance(label.value, str):
            raise self.error(f"{name}() takes a series' label in quotes", hint=nearest("", self.setting.labels))
        if label.value not in self.setting.labels:
            raise self.error(f"no series is called {label.value!r}", hint=nearest(label.value, self.setting.labels))
        if len(call.args) == 2:
            self.position(call.args[1])
        self.measures.add(name if is_measure(name) else self.setting.measure)
        self.labels |= set(self.setting.labels) if name in OTHERS else {label.value}
        return []

    def position(self, node: ast.expr) -> int:
        """Which point of the axis an expression like 100_000, "nitf", first or last names."""
        match node:
            case ast.Name(id="first"):
                return 0
            case ast.Name(id="last"):
                return len(self.setting.values) - 1
            case ast.Constant(value=int() | float() | str() as value) if value in self.setting.values:
                return list(self.setting.values).index(value)
        known = ", ".join(str(value) for value in self.setting.values)
        raise self.error(f"the axis has no {ast.unparse(node)}", hint=f"first, last, or one of: {known}")


def _called(call: ast.Call) -> str:
    """The name of what is called: `growth`, or `memory.nfa`."""
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=family), attr=member):
            return f"{family}.{member}"
    return ""


class _Evaluation:
    """One walk over a check with the numbers of one round, or with the medians."""

    def __init__(self, check: Check, numbers: Numbers, values: Axis | None = None, in_place: bool = False) -> None:
        self.check = check
        self.numbers = numbers
        self.in_place = in_place
        self.values = check.setting.values if values is None else values  # of the axis, as measured

    def axis(self) -> list[float]:
        return as_numbers(self.values)

    def position(self, node: ast.expr) -> int:
        """Which measured point an expression names. A size that was scaled away was not measured."""
        at = self.check.position(node)
        stated = self.check.setting.values[at]
        if self.in_place or self.values[at] == stated:
            return at
        if stated in self.values:
            return list(self.values).index(stated)
        raise NotMeasured(f"{_written(stated)} was not measured: measured was {_range(self.values)}")

    def of(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() as value):
                return value
            case ast.Constant(value=int() | float() as value):
                return Number(float(value))
            case ast.Name(id="x"):
                return Row(dict(enumerate(self.axis())))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._not(self.of(operand))
            case ast.UnaryOp(operand=operand):
                return self.combine(operator.mul, Number(-1), self.numeric(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self.combine(_ARITHMETIC[type(op)], self.numeric(left), self.numeric(right))
            case ast.BoolOp(op=op, values=values):
                return self._joined(isinstance(op, ast.And), [self.of(value) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compared([left, *others], [_COMPARISONS[type(op)] for op in ops])
            case ast.Call():
                return self._call(node)
        raise AssertionError(node)

    def combine(self, operation: Callable[[float, float], float], a: Number | Row, b: Number | Row) -> Number | Row:
        """Arithmetic of numbers and rows, point by point, with units as far as they are needed to print them."""
        unit = _unit(operation, a.unit, b.unit)
        if isinstance(a, Number) and isinstance(b, Number):
            return Number(self.apply(operation, a.value, b.value), unit)
        return Row({at: self.apply(operation, p, q) for at, p, q in self._pairs(a, b)}, unit)

    def apply(self, operation: Callable[[float, float], float], a: float, b: float) -> float:
        try:
            return operation(a, b)
        except ZeroDivisionError:
            raise NotMeasured("it divides by zero") from None
        except (OverflowError, ValueError) as error:
            raise self.check.error(str(error)) from None

    def _pairs(self, a: Number | Row, b: Number | Row) -> list[tuple[int, float, float]]:
        points = sorted(set(_positions(a, b)) & set(_positions(b, a)))
        if not points:
            raise NotMeasured("the series have no point in common")
        return [(at, _at(a, at), _at(b, at)) for at in points]

    def numeric(self, node: ast.expr) -> Number | Row:
        value = self.of(node)
        if isinstance(value, Number | Row):
            return value
        raise self.check.error(f"{ast.unparse(node)!r} is true or false, not a number")

    def row(self, node: ast.expr) -> Row:
        value = self.of(node)
        if isinstance(value, Row):
            return value
        raise self.check.error(f"{ast.unparse(node)!r} is no row", hint='a row is, for example, y("label")')

    def flags(self, node: ast.expr) -> Flags:
        value = self.of(node)
        if isinstance(value, Flags):
            return value
        raise self.check.error(f"{ast.unparse(node)!r} is no comparison of rows")

    def number(self, node: ast.expr) -> float:
        value = self.of(node)
        if isinstance(value, Number):
            return value.value
        raise self.check.error(f"{ast.unparse(node)!r} is no single number")

    def _not(self, value: Value) -> Value:
        if isinstance(value, Flags):
            return Flags({at: not flag for at, flag in value.points.items()})
        if isinstance(value, bool):
            return not value
        raise self.check.error("`not` takes something true or false")

    def _joined(self, both: bool, values: list[Value]) -> Value:
        if all(isinstance(value, bool) for value in values):
            return all(values) if both else any(values)
        if not all(isinstance(value, Flags) for value in values):
            raise self.check.error("`and` and `or` take comparisons, all of numbers or all of rows")
        rows = [value.points for value in values if isinstance(value, Flags)]
        common = set(rows[0]).intersection(*rows)
        return Flags({at: (all if both else any)(row[at] for row in rows) for at in sorted(common)})

    def _compared(self, sides: list[ast.expr], operations: list[Callable[[float, float], bool]]) -> Value:
        values = [self.numeric(side) for side in sides]
        links: list[Value] = []
        for a, b, operation in zip(values, values[1:], operations, strict=False):
            if isinstance(a, Number) and isinstance(b, Number):
                links.append(operation(a.value, b.value))
            else:
                links.append(Flags({at: operation(p, q) for at, p, q in self._pairs(a, b)}))
        rows = next((set(link.points) for link in links if isinstance(link, Flags)), None)
        if rows is not None:  # 1 < 2 < y("A"): the plain link counts at every point
            links = [Flags(dict.fromkeys(rows, link)) if isinstance(link, bool) else link for link in links]
        return self._joined(True, links)

    def _call(self, call: ast.Call) -> Value:
        name = _called(call)
        if name in FUNCTIONS:
            return FUNCTIONS[name].apply(self, call.args)
        label = call.args[0].value  # type: ignore[attr-defined]
        if name in OTHERS:
            return self._others(label, OTHERS[name])
        measure = self.check.setting.measure if name == "y" else name
        points = self.numbers(measure, label)
        if not points:
            raise NotMeasured(f"{measure} of {label!r} was not measured")
        if len(call.args) == 1:
            return Row(points, unit_of(measure))
        at = self.position(call.args[1])
        if at not in points:
            raise NotMeasured(f"{measure} of {label!r} was not measured at {_written(self.values[at])}")
        return Number(points[at], unit_of(measure))

    def _others(self, label: str, choose: Callable[[list[float]], float]) -> Row:
        """At each point, the lowest or highest of the other series that were measured there."""
        measure = self.check.setting.measure
        points: dict[int, list[float]] = {}
        for other in self.check.setting.labels:
            for at, value in self.numbers(measure, other).items() if other != label else ():
                points.setdefault(at, []).append(value)
        if not points:
            raise NotMeasured(f"no series but {label!r} was measured")
        return Row({at: choose(values) for at, values in sorted(points.items())}, unit_of(measure))

    def axis_of(self, row: Row) -> list[float]:
        axis = self.axis()
        return [axis[at] for at in sorted(row.points)]


def _written(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.10g}"


def _range(values: Axis) -> str:
    ends = dict.fromkeys(_written(value) for value in (values[0], values[-1]))
    return " to ".join(ends)


def _positions(of: Number | Row, other: Number | Row) -> Mapping[int, float]:
    if isinstance(of, Row):
        return of.points
    assert isinstance(other, Row)
    return other.points


def _at(of: Number | Row, at: int) -> float:
    return of.points[at] if isinstance(of, Row) else of.value


def _unit(operation: Callable[..., float], a: str, b: str) -> str:
    if operation is operator.truediv:
        return "" if a == b else a if not b else ""
    if operation is operator.mul:
        return a if not b else b if not a else ""
    return a if a == b else ""


@dataclass(frozen=True)
class Function:
    """A function of the language: how many arguments it takes, and what it makes of them."""

    arguments: tuple[int, int]
    apply: Callable[[_Evaluation, list[ast.expr]], Value]


def _in_order(row: Row) -> list[float]:
    return [row.points[at] for at in sorted(row.points)]


def _of_row(reduce: Callable[[list[float]], float]) -> Function:
    def apply(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
        row = evaluation.row(arguments[0])
        return Number(reduce(_in_order(row)), row.unit)

    return Function((1, 1), apply)


def _of_flags(reduce: Callable[[list[bool]], bool | Number]) -> Function:
    def apply(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
        flags = list(evaluation.flags(arguments[0]).points.values())
        if not flags:
            raise NotMeasured("no point is left to compare")
        return reduce(flags)

    return Function((1, 1), apply)


def _growth(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
    values = _in_order(evaluation.row(arguments[0]))
    if len(values) < 2:
        raise NotMeasured("growth needs two points")
    return Number(evaluation.apply(operator.truediv, values[-1], values[0]))


def _exponent(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
    row = evaluation.row(arguments[0])
    pairs = [(x, y) for x, y in zip(evaluation.axis_of(row), _in_order(row), strict=True) if x > 0 and y > 0]
    if len(pairs) < 2:
        raise NotMeasured("an exponent needs two points above zero")
    logs = [(math.log(x), math.log(y)) for x, y in pairs]
    middle_x, middle_y = (sum(part) / len(logs) for part in zip(*logs, strict=True))
    spread = sum((x - middle_x) ** 2 for x, _ in logs)
    return Number(sum((x - middle_x) * (y - middle_y) for x, y in logs) / spread)


def _monotonic(sign: int) -> Function:
    def apply(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
        values = _in_order(evaluation.row(arguments[0]))
        slack = evaluation.number(arguments[1]) if len(arguments) > 1 else 0.0
        if len(values) < 2:
            raise NotMeasured("a trend needs two points")
        return all(sign * (after - before) >= -slack * abs(before) for before, after in pairwise(values))

    return Function((1, 2), apply)


def _flat(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
    values = _in_order(evaluation.row(arguments[0]))
    return max(values) <= (1 + evaluation.number(arguments[1])) * min(values)


def _peak(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
    row = evaluation.row(arguments[0])
    return Number(evaluation.axis()[max(row.points, key=lambda at: row.points[at])])


def _scaleup(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
    row = evaluation.row(arguments[0])
    if 0 not in row.points or len(row.points) < 2:
        raise NotMeasured("scale-up needs the first point and another")
    base = row.points[0]
    return Row({at: (value - base) / at for at, value in row.points.items() if at}, row.unit)


def _where(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
    wanted = evaluation.flags(arguments[0]).points
    row = evaluation.of(arguments[1])
    if not isinstance(row, Row | Flags):
        raise evaluation.check.error(f"{ast.unparse(arguments[1])!r} is no row")
    kept: dict[int, Any] = {at: value for at, value in row.points.items() if wanted.get(at)}
    if not kept:
        raise NotMeasured(f"no measured point has {ast.unparse(arguments[0])}")
    return Flags(kept) if isinstance(row, Flags) else Row(kept, row.unit)


def _ratio(evaluation: _Evaluation, arguments: list[ast.expr]) -> Value:
    return evaluation.combine(operator.truediv, *(evaluation.numeric(argument) for argument in arguments))


FUNCTIONS: dict[str, Function] = {
    "always": _of_flags(all),
    "ever": _of_flags(any),
    "share": _of_flags(lambda flags: Number(sum(flags) / len(flags))),
    "where": Function((2, 2), _where),
    "largest": _of_row(max),
    "smallest": _of_row(min),
    "mean": _of_row(lambda values: sum(values) / len(values)),
    "first_of": _of_row(lambda values: values[0]),
    "last_of": _of_row(lambda values: values[-1]),
    "growth": Function((1, 1), _growth),
    "exponent": Function((1, 1), _exponent),
    "rising": _monotonic(1),
    "falling": _monotonic(-1),
    "flat": Function((2, 2), _flat),
    "peak": Function((1, 1), _peak),
    "scaleup": Function((1, 1), _scaleup),
    "ratio": Function((2, 2), _ratio),
}
