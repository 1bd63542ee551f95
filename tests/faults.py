"""OutputFaults of one line: what may be wrong in a line of Python, found in its syntax tree.

No fault is put where no test could notice it, or where every test would: texts, error messages, asserts, annotations,
decorators, `__all__`, and what only a type checker reads.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}


@dataclass(frozen=True)
class Fault:
    """A line with a fault, known by its function and text, so that it is found again in a file that was edited."""

    function: str
    line: str
    faulty: str


def faults(source: str) -> Iterator[tuple[int, Fault]]:
    """All faults of a file, each behind its line's number, which counts from 0."""
    lines = source.splitlines(keepends=True)
    for node, scopes in _reached(ast.parse(source), ()):
        function = ".".join(each.name for each in scopes)
        if getattr(node, "lineno", None) is not None and node.lineno == node.end_lineno:
            line = lines[node.lineno - 1]
            for changed in _changes(node, scopes):
                faulty = _replaced(line, node, changed)
                if faulty != line:
                    yield node.lineno - 1, Fault(function, line.strip(), faulty.strip())


def plant(source: str, fault: Fault) -> str | None:
    """The file with the fault in it; None if it has no such line any more."""
    number = next((number for number, each in faults(source) if each == fault), None)
    if number is None:
        return None
    lines = source.splitlines(keepends=True)
    lines[number] = lines[number].replace(fault.line, fault.faulty)
    return "".join(lines)


Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _reached(node: ast.AST, scopes: tuple[Scope, ...]) -> Iterator[tuple[ast.AST, tuple[Scope, ...]]]:
    """The nodes that may get a fault, each with the classes and functions around it."""
    inner = (*scopes, node) if isinstance(node, Scope) else scopes
    for part in _parts(node):
        yield part, inner
        yield from _reached(part, inner)


def _parts(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Assign(targets=[ast.Name("__all__")]):
            parts: list[ast.AST | None] = []
        case ast.keyword(arg="encoding" | "strict"):  # UTF-8 is this machine's, and equal lengths are an invariant
            parts = []
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            parts = [*node.orelse]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            parts = [*node.args.defaults, *node.args.kw_defaults, *node.body]
        case ast.ClassDef():
            parts = [*node.body]
        case ast.AnnAssign():
            parts = [node.value]
        case _:
            parts = [*ast.iter_child_nodes(node)]
    return [part for part in parts if part is not None]


def _changes(node: ast.AST, scopes: tuple[Scope, ...]) -> Iterator[ast.AST]:
    """What may stand in the place of a node by mistake."""
    match node:
        case ast.Compare(ops=[operator]):
            yield from (ast.Compare(node.left, [other()], node.comparators) for other in _others(operator))
        case ast.BinOp():
            yield from (ast.BinOp(node.left, other(), node.right) for other in _others(node.op))
        case ast.BoolOp():
            yield from (ast.BoolOp(other(), node.values) for other in _others(node.op))
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
        case ast.Call():
            for one in (each for each in node.keywords if each.arg not in (None, "encoding", "strict")):
                yield ast.Call(node.func, node.args, [each for each in node.keywords if each is not one])
        case ast.AugAssign():
            yield ast.Pass()
            yield from (ast.AugAssign(node.target, other(), node.value) for other in _others(node.op))
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Return(value=ast.expr()) if _may_return_none(scopes):
            yield ast.Return(ast.Constant(None))


def _others(operator: ast.AST) -> tuple[type[ast.AST], ...]:
    return OPERATORS.get(type(operator), ())


def _may_return_none(scopes: tuple[Scope, ...]) -> bool:
    returns = getattr(scopes[-1], "returns", None)
    return returns is not None and "None" in ast.unparse(returns)


def _replaced(line: str, node: ast.AST, changed: ast.AST) -> str:
    """A tree counts columns in bytes."""
    raw, text = line.encode(), ast.unparse(changed)
    if isinstance(node, ast.UnaryOp) and isinstance(changed, ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp):
        text = f"({text})"
    return (raw[: node.col_offset] + text.encode() + raw[node.end_col_offset :]).decode()
