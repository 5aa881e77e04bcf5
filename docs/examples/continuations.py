"""Reverse mode on one screen: a stack of continuations, after B. Carpenter's post "Lambda-based closures" (2018).

The forward pass computes values, and for each operation pushes closures that know how to pass a derivative back.
The backward pass calls the closures, last one first. That is all of reverse mode."""

import itertools
import math

stack = []  # the continuations, in the order of the forward pass
next_idx = itertools.count().__next__


class var:  # noqa: N801  # the name in the post
    """A value, and the index of its derivative among the adjoints."""

    def __init__(self, val):
        self.val, self.idx = val, next_idx()

    def __add__(self, other):
        y = var(self.val + value(other))
        push(y, self, 1.0)
        push(y, other, 1.0)
        return y

    def __mul__(self, other):
        y = var(self.val * value(other))
        push(y, self, value(other))
        push(y, other, self.val)
        return y

    __radd__, __rmul__ = __add__, __mul__


def value(x):
    return x.val if isinstance(x, var) else x


def push(y, x, partial):
    def continuation(adj):  # the chain rule, when the backward pass comes to y
        adj[x.idx] = adj.get(x.idx, 0.0) + adj.get(y.idx, 0.0) * partial

    if isinstance(x, var):  # a constant has no adjoint, and costs nothing
        stack.append(continuation)


def exp(x):
    push(y := var(math.exp(x.val)), x, y.val)
    return y


def grad(y, xs):
    adj = {y.idx: 1.0}  # ∂y/∂y = 1; after the loop ∂y/∂x for all x
    for continuation in reversed(stack):
        continuation(adj)
    return [adj.get(x.idx, 0.0) for x in xs]


if __name__ == "__main__":
    x1, x2 = var(10.3), var(1.1)
    print((y := x1 * x2 * 2 + 7).val, grad(y, [x1, x2]))  # 29.66 [2.2, 20.6]; the post prints 15.66, a slip
