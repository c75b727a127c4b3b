"""Random structured programs on tensors: as MLIR text, and as numpy computations.

Values have one of three types. Bodies of loops and branches see the values around them, and hand on arbitrary
ones: iteration arguments permuted, values from outside, the same value twice.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, np.dtype[Any]]
Environment = dict[str, Any]

MATRIX, FLAT, HALF = "tensor<4x3xf32>", "tensor<12xf32>", "tensor<2x3xf32>"
SHAPES = {MATRIX: (4, 3), FLAT: (12,), HALF: (2, 3)}
MAPS = {2: "affine_map<(i, j) -> (i, j)>", 1: "affine_map<(i) -> (i)>"}
FLIPPED = "affine_map<(i, j) -> (3 - i, j)>"
BINARY = {"addf": np.add, "subf": np.subtract, "maximumf": np.maximum}


@dataclass
class Scope:
    """Where operations are appended: text lines, numpy steps, and the visible values by type."""

    lines: list[str] = field(default_factory=list)
    steps: list[Callable[[Environment], None]] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=lambda: {type_: [] for type_ in SHAPES})

    def inner(self) -> Scope:
        """Return an empty scope inside of this one."""
        return Scope(values={type_: list(names) for type_, names in self.values.items()})

    def run(self, environment: Environment) -> None:
        """Compute everything in this scope."""
        for step in self.steps:
            step(environment)


class Generator:
    """Writes one program, determined by ``seed``."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  reproducible, not secret
        self.count = 0

    def program(self, size: int) -> tuple[str, Callable[[list[Array]], list[Array]], list[str], list[str]]:
        """Return the text, the numpy function, and the input and result types of a program."""
        scope = Scope()
        inputs = [MATRIX, FLAT, HALF, MATRIX]
        names = [self.define(scope, type_) for type_ in inputs]
        self.body(scope, size, depth=2)
        results = [self.random.choice(list(SHAPES)) for _ in range(self.random.randint(1, 4))]
        returned = [self.pick(scope, type_) for type_ in results]
        arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, inputs, strict=True))
        indices = "\n".join(f"%i{i} = arith.constant {i} : index" for i in range(4))
        body = "\n".join(scope.lines)
        text = (
            f"func.func @main({arguments}) -> ({', '.join(results)}) {{\n{indices}\n{body}\n"
            f"return {', '.join(returned)} : {', '.join(results)}\n}}"
        )

        def compute(arrays: list[Array]) -> list[Array]:
            environment: Environment = dict(zip(names, arrays, strict=True))
            scope.run(environment)
            return [environment[name] for name in returned]

        return text, compute, inputs, results

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def define(self, scope: Scope, type_: str) -> str:
        name = self.fresh()
        scope.values[type_].append(name)
        return name

    def pick(self, scope: Scope, type_: str) -> str:
        """Choose a visible value, more often a recent one."""
        names = scope.values[type_]
        return self.random.choice(names[-3:] if self.random.random() < 0.7 else names)

    def body(self, scope: Scope, size: int, depth: int) -> None:
        simple = [self.elementwise, self.elementwise, self.flipped, self.reshape, self.slice, self.insert]
        simple += [self.element, self.fill, self.constant]
        nested = [self.for_loop, self.if_else, self.while_loop]
        for _ in range(size):
            if depth and self.random.random() < 0.3:
                self.random.choice(nested)(scope, depth - 1)
            else:
                self.random.choice(simple)(scope)

    def generic(self, scope: Scope, type_: str, operands: list[str], maps: list[str], op: str) -> str:
        """Append an elementwise `linalg.generic`; it may write over a value that is used again."""
        rank = len(SHAPES[type_])
        iterators = ", ".join(['"parallel"'] * rank)
        out = self.fresh()
        if self.random.random() < 0.8:
            scope.lines.append(f"{out} = tensor.empty() : {type_}")
        else:
            out = self.pick(scope, type_)
        result = self.fresh()
        scope.lines.append(
            f"""{result} = linalg.generic {{indexing_maps = [{", ".join([*maps, MAPS[rank]])}],
            iterator_types = [{iterators}]}} ins({", ".join(operands)} : {", ".join([type_] * len(operands))})
            outs({out} : {type_}) {{
            ^bb0(%x: f32, %y: f32, %o: f32):
              %r = arith.{op} %x, %y : f32
              linalg.yield %r : f32
            }} -> {type_}"""
        )
        scope.values[type_].append(result)
        return result

    def elementwise(self, scope: Scope) -> None:
        type_ = self.random.choice(list(SHAPES))
        a, b, op = self.pick(scope, type_), self.pick(scope, type_), self.random.choice(list(BINARY))
        result = self.generic(scope, type_, [a, b], [MAPS[len(SHAPES[type_])]] * 2, op)
        scope.steps.append(lambda env: env.update({result: BINARY[op](env[a], env[b])}))

    def flipped(self, scope: Scope) -> None:
        a, b = self.pick(scope, MATRIX), self.pick(scope, MATRIX)
        result = self.generic(scope, MATRIX, [a, b], [FLIPPED, MAPS[2]], "subf")
        scope.steps.append(lambda env: env.update({result: env[a][::-1] - env[b]}))

    def reshape(self, scope: Scope) -> None:
        if self.random.random() < 0.5:
            source, result = self.pick(scope, MATRIX), self.define(scope, FLAT)
            text = f"tensor.collapse_shape {source} [[0, 1]] : {MATRIX} into {FLAT}"
            shape: tuple[int, ...] = (12,)
        else:
            source, result = self.pick(scope, FLAT), self.define(scope, MATRIX)
            text = f"tensor.expand_shape {source} [[0, 1]] output_shape [4, 3] : {FLAT} into {MATRIX}"
            shape = (4, 3)
        scope.lines.append(f"{result} = {text}")
        scope.steps.append(lambda env: env.update({result: env[source].reshape(shape)}))

    def slice(self, scope: Scope) -> None:
        source, row, result = self.pick(scope, MATRIX), self.random.randrange(3), self.define(scope, HALF)
        scope.lines.append(
            f"{result} = tensor.extract_slice {source}[{row}, 0] [2, 3] [1, 1] : {MATRIX} to {HALF}"
        )
        scope.steps.append(lambda env: env.update({result: env[source][row : row + 2]}))

    def insert(self, scope: Scope) -> None:
        part, whole, row = self.pick(scope, HALF), self.pick(scope, MATRIX), self.random.randrange(3)
        result = self.define(scope, MATRIX)
        scope.lines.append(
            f"{result} = tensor.insert_slice {part} into {whole}[{row}, 0] [2, 3] [1, 1]"
            f" : {HALF} into {MATRIX}"
        )

        def step(env: Environment) -> None:
            env[result] = env[whole].copy()
            env[result][row : row + 2] = env[part]

        scope.steps.append(step)

    def element(self, scope: Scope) -> None:
        source, whole = self.pick(scope, FLAT), self.pick(scope, FLAT)
        read, write = self.random.randrange(4), self.random.randrange(4)
        value, result = self.fresh(), self.define(scope, FLAT)
        scope.lines.append(f"{value} = tensor.extract {source}[%i{read}] : {FLAT}")
        scope.lines.append(f"{result} = tensor.insert {value} into {whole}[%i{write}] : {FLAT}")

        def step(env: Environment) -> None:
            env[result] = env[whole].copy()
            env[result][write] = env[source][read]

        scope.steps.append(step)

    def fill(self, scope: Scope) -> None:
        type_, number = self.random.choice(list(SHAPES)), self.random.randrange(4)
        value, out, result = self.fresh(), self.fresh(), self.define(scope, type_)
        scope.lines += [
            f"{value} = arith.constant {number}.0 : f32",
            f"{out} = tensor.empty() : {type_}",
            f"{result} = linalg.fill ins({value} : f32) outs({out} : {type_}) -> {type_}",
        ]
        scope.steps.append(lambda env: env.update({result: np.full(SHAPES[type_], number, np.float32)}))

    def constant(self, scope: Scope) -> None:
        numbers = [float(self.random.randrange(-4, 5)) for _ in range(12)]
        if self.random.random() < 0.3:
            numbers = numbers[:1] * 12
        result = self.define(scope, FLAT)
        scope.lines.append(f"{result} = arith.constant dense<{numbers}> : {FLAT}")
        scope.steps.append(lambda env: env.update({result: np.array(numbers, np.float32)}))

    def some_types(self) -> list[str]:
        return [self.random.choice(list(SHAPES)) for _ in range(self.random.randint(1, 3))]

    def for_loop(self, scope: Scope, depth: int) -> None:
        types = self.some_types()
        inits = [self.pick(scope, type_) for type_ in types]
        trips = self.random.randrange(4)
        inside = scope.inner()
        arguments = [self.define(inside, type_) for type_ in types]
        self.body(inside, self.random.randint(1, 4), depth)
        yielded = [self.pick(inside, type_) for type_ in types]
        results = [self.define(scope, type_) for type_ in types]
        carried = ", ".join(f"{a} = {b}" for a, b in zip(arguments, inits, strict=True))
        index = self.fresh()
        scope.lines += [
            f"{', '.join(results)} = scf.for {index} = %i0 to %i{trips} step %i1 iter_args({carried})"
            f" -> ({', '.join(types)}) {{",
            *inside.lines,
            f"scf.yield {', '.join(yielded)} : {', '.join(types)}\n}}",
        ]

        def step(env: Environment) -> None:
            state = [env[name] for name in inits]
            for _ in range(trips):
                local = env | dict(zip(arguments, state, strict=True))
                inside.run(local)
                state = [local[name] for name in yielded]
            env.update(zip(results, state, strict=True))

        scope.steps.append(step)

    def if_else(self, scope: Scope, depth: int) -> None:
        types = self.some_types()
        source, zero, value, flag = self.pick(scope, FLAT), self.fresh(), self.fresh(), self.fresh()
        branches = [scope.inner(), scope.inner()]
        for branch in branches:
            self.body(branch, self.random.randint(0, 3), depth)
        yielded = [[self.pick(branch, type_) for type_ in types] for branch in branches]
        results = [self.define(scope, type_) for type_ in types]
        text = ", ".join(types)
        scope.lines += [
            f"{zero} = arith.constant 1.0 : f32",
            f"{value} = tensor.extract {source}[%i2] : {FLAT}",
            f"{flag} = arith.cmpf ogt, {value}, {zero} : f32",
            f"{', '.join(results)} = scf.if {flag} -> ({text}) {{",
            *branches[0].lines,
            f"scf.yield {', '.join(yielded[0])} : {text}\n}} else {{",
            *branches[1].lines,
            f"scf.yield {', '.join(yielded[1])} : {text}\n}}",
        ]

        def step(env: Environment) -> None:
            taken = 0 if env[source][2] > 1 else 1
            local = dict(env)
            branches[taken].run(local)
            env.update(zip(results, [local[name] for name in yielded[taken]], strict=True))

        scope.steps.append(step)

    def while_loop(self, scope: Scope, depth: int) -> None:
        carried, handed = self.some_types(), self.some_types()
        trips = self.random.randrange(4)
        inits = [self.pick(scope, type_) for type_ in carried]
        before, after = scope.inner(), scope.inner()
        state_names = [self.define(before, type_) for type_ in carried]
        self.body(before, self.random.randint(0, 2), depth)
        forwarded = [self.pick(before, type_) for type_ in handed]
        handed_names = [self.define(after, type_) for type_ in handed]
        self.body(after, self.random.randint(0, 3), depth)
        yielded = [self.pick(after, type_) for type_ in carried]
        results = [self.define(scope, type_) for type_ in handed]
        counter, inner, flag, last, step_name = (self.fresh() for _ in range(5))
        pairs = [f"{a} = {b}" for a, b in zip(state_names, inits, strict=True)]
        parameters = [f"{a}: {b}" for a, b in zip(handed_names, handed, strict=True)]
        scope.lines += [
            f"{', '.join([*results, last])} = scf.while ({', '.join([*pairs, f'{counter} = %i0'])})"
            f" : ({', '.join([*carried, 'index'])}) -> ({', '.join([*handed, 'index'])}) {{",
            *before.lines,
            f"{flag} = arith.cmpi slt, {counter}, %i{trips} : index",
            f"scf.condition({flag}) {', '.join([*forwarded, counter])} : {', '.join([*handed, 'index'])}",
            f"}} do {{\n^bb0({', '.join([*parameters, f'{inner}: index'])}):",
            *after.lines,
            f"{step_name} = arith.addi {inner}, %i1 : index",
            f"scf.yield {', '.join([*yielded, step_name])} : {', '.join([*carried, 'index'])}\n}}",
        ]

        def step(env: Environment) -> None:
            state = [env[name] for name in inits]
            for trip in range(trips + 1):
                local = env | dict(zip(state_names, state, strict=True))
                before.run(local)
                state = [local[name] for name in forwarded]
                if trip == trips:
                    break
                local = env | dict(zip(handed_names, state, strict=True))
                after.run(local)
                state = [local[name] for name in yielded]
            env.update(zip(results, state, strict=True))

        scope.steps.append(step)
