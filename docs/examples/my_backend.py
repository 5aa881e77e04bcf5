"""Dual numbers on numpy: forward mode, exact, one pass for each input."""

import numpy as np

from adbench import Unsupported

SLOPES = {"exp": np.exp, "log": np.reciprocal, "sin": np.cos, "cos": lambda x: -np.sin(x), "ones_like": np.zeros_like}
RULES = {  # numpy's name of a function -> its tangent, from the arguments and their tangents
    **dict.fromkeys(("add", "subtract", "negative", "sum", "cumsum", "cumulative_sum"), "linear"),
    **{name: lambda x, dx, slope=slope: slope(x) * dx for name, slope in SLOPES.items()},
    **{f.__name__: lambda x, y, dx, dy, f=f: f(dx, y) + f(x, dy) for f in (np.multiply, np.matmul)},
    "divide": lambda x, y, dx, dy: (dx - x / y * dy) / y,
    "power": lambda x, y, dx, dy: y * x ** (y - 1) * dx + np.log(np.where(dy, x, 1)) * x**y * dy,
}


def refuse(what):
    raise Unsupported(f"dual numbers have no {what}")


class Dual(np.lib.mixins.NDArrayOperatorsMixin):
    """A value and its tangent: its derivative along one direction in the inputs."""

    def __init__(self, value, tangent):
        self.value, self.shape, self.tangent = value, np.shape(value), np.reshape(tangent, np.shape(value))

    def __getitem__(self, index):
        return Dual(self.value[index], self.tangent[index])

    def __array_ufunc__(self, ufunc, method, *args, **options):  # numpy calls this for x * y, np.log(x), ...
        return self.__array_function__(ufunc, (), args, options)

    def __array_function__(self, function, types, args, options):  # and this for np.sum(x), ...
        rule = RULES.get(function.__name__) or refuse(function.__name__)
        x, dx = zip(*((a.value, a.tangent) if isinstance(a, Dual) else (a, 0.0 * a) for a in args), strict=True)
        return Dual(function(*x, **options), function(*dx, **options) if rule == "linear" else rule(*x, *dx, **options))


def prepare(operator, f, args, wrt):
    def slope(args, i, k):  # the k-th entry of argument i moves, all others stay
        return getattr(f(*args[:i], Dual(args[i], np.eye(1, np.size(args[i]), k)), *args[i + 1 :]), "tangent", 0.0)

    def gradient(*args):
        return tuple(np.reshape([slope(args, i, k) for k in range(np.size(args[i]))], np.shape(args[i])) for i in wrt)

    calls = {"value": f, "gradient": gradient, "value_and_gradient": lambda *args: (f(*args), gradient(*args))}
    return calls.get(operator) or refuse(operator)
