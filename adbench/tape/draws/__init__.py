"""Random numbers that can be differentiated in their parameters, with the seed fixed: `tape.draws`.

    tape.gradient(lambda mu: tape.mean(tape.draws.normal(7, mu, 2.0, size=1000) ** 2), 0.5)

The derivative is "how the value would change with the seed fixed" (R. Neal, pqR): a draw is a function of the seed, a
constant, and of the parameters. The first argument is a seed or a `numpy.random.Generator`, which continues from its
current state. To differentiate a function, pass it a seed or let it make its own generator, so that every evaluation
draws the same numbers. Names, parameters and numbers are those of the `Generator` methods: the same seed gives numpy's
values. (`student_t` and `cauchy` also take a location and a scale.)

Most draws are smooth functions of parameters and standard draws, such as μ + σz, and have derivatives of all orders.
Gamma draws, and those built on them (chi-square and t), use implicit reparameterisation (`implicit`).
They have first derivatives in the shape; a second raises RuleError. Discrete draws jump, and between jumps their
derivative is an uninformative 0. With active parameters they raise DiscreteDrawError; with plain ones they are numpy's
integers, constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, TapeError, Value, function_gradients
from adbench.tape.densities.density import FINITE, NOT_NEGATIVE, POSITIVE, DensityDomain, require
from adbench.tape.draws.implicit import gamma_slope
from adbench.tape.rules.elementwise import exp, expm1, power, sqrt
from adbench.tape.rules.shapes import Shape, broadcast_to
from adbench.tape.values import any_active, constant, settle, shape_of, value_of

Seed = int | np.random.Generator
Size = int | tuple[int, ...] | None


class DiscreteDrawError(TapeError, TypeError):
    """A parameter of a discrete draw is being differentiated."""


# Shared by all draws


def _generator(name: str, rng: Any) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        return np.random.default_rng(int(rng))
    raise TypeError(f"{name}: rng: expected a seed or a numpy.random.Generator, got {type(rng).__name__}")


def _parameters(name: str, domains: dict[str, DensityDomain], *given: Value) -> list[Value]:
    """The parameters in normal form, each in its domain."""
    values = []
    for x, (argument, domain) in zip(given, domains.items(), strict=True):
        if not isinstance(x, Active):
            x = constant(x, f"{name}: {argument}", keep=False)
        require(name, argument, domain, value_of(x))
        values.append(x)
    return values


def _shape(name: str, size: Size, *parameters: Value) -> Shape:
    """The shape of the result: `size`, or the broadcast shape of the parameters."""
    shapes = [shape_of(x) for x in parameters]
    try:
        common = np.broadcast_shapes(*shapes)
        if size is None:
            return common
        wanted = (int(size),) if isinstance(size, (int, np.integer)) else tuple(size)
        if np.broadcast_shapes(wanted, common) == wanted:
            return wanted
    except ValueError:
        pass
    raise ValueError(f"{name}: expected parameters that broadcast to size {size}, got shapes {shapes}")


_REAL, _POSITIVE = {"loc": FINITE, "scale": NOT_NEGATIVE}, {"scale": NOT_NEGATIVE}

# Smooth functions of standard draws


def _location_scale(name: str, standard: Callable[[Any, Shape], Any], law: str) -> Callable[..., Value]:
    def draw(rng: Seed, loc: Value = 0.0, scale: Value = 1.0, size: Size = None) -> Value:
        loc, scale = _parameters(name, _REAL, loc, scale)
        base = settle(standard(_generator(name, rng), _shape(name, size, loc, scale)))
        return loc + scale * base

    draw.__name__ = name
    draw.__doc__ = f"loc + scale · {law}."
    return draw


normal = _location_scale("normal", lambda g, n: g.standard_normal(n), "z, z standard normal")
logistic = _location_scale("logistic", lambda g, n: g.logistic(size=n), "log(u/(1 - u)), u uniform")
gumbel = _location_scale("gumbel", lambda g, n: g.gumbel(size=n), "(-log(-log u)), u uniform")
laplace = _location_scale("laplace", lambda g, n: g.laplace(size=n), "l, l standard Laplace")
cauchy = _location_scale("cauchy", lambda g, n: g.standard_cauchy(n), "c, c the quotient of two standard normals")


def uniform(rng: Seed, low: Value = 0.0, high: Value = 1.0, size: Size = None) -> Value:
    """low + (high - low) u, u uniform on [0, 1)."""
    low, high = _parameters("uniform", {"low": FINITE, "high": FINITE}, low, high)
    return low + (high - low) * settle(_generator("uniform", rng).random(_shape("uniform", size, low, high)))


def lognormal(rng: Seed, mean: Value = 0.0, sigma: Value = 1.0, size: Size = None) -> Value:
    """exp(mean + sigma z), z standard normal."""
    mean, sigma = _parameters("lognormal", {"mean": FINITE, "sigma": NOT_NEGATIVE}, mean, sigma)
    base = _generator("lognormal", rng).standard_normal(_shape("lognormal", size, mean, sigma))
    return exp(mean + sigma * settle(base))


def _standard_exponential(name: str, rng: Seed, size: Size, parameter: Value) -> Value:
    return settle(_generator(name, rng).standard_exponential(_shape(name, size, parameter)))


def exponential(rng: Seed, scale: Value = 1.0, size: Size = None) -> Value:
    """scale · e, e standard exponential; the rate is 1/scale."""
    (scale,) = _parameters("exponential", _POSITIVE, scale)
    return scale * _standard_exponential("exponential", rng, size, scale)


def weibull(rng: Seed, a: Value, size: Size = None) -> Value:
    """e^(1/a), e standard exponential and a the shape."""
    (a,) = _parameters("weibull", {"a": POSITIVE}, a)
    return power(_standard_exponential("weibull", rng, size, a), 1.0 / a)


def pareto(rng: Seed, a: Value, size: Size = None) -> Value:
    """exp(e/a) - 1, e standard exponential: Pareto II (Lomax) with shape a."""
    (a,) = _parameters("pareto", {"a": POSITIVE}, a)
    return expm1(_standard_exponential("pareto", rng, size, a) / a)


def rayleigh(rng: Seed, scale: Value = 1.0, size: Size = None) -> Value:
    """scale · √(2e), e standard exponential."""
    (scale,) = _parameters("rayleigh", _POSITIVE, scale)
    return scale * sqrt(2.0 * _standard_exponential("rayleigh", rng, size, scale))


# Gamma, and draws built on it

_gamma_speed = function_gradients(gamma_slope, (None, None), name="the derivative of a gamma draw in its shape")
_gamma_draw = function_gradients(
    lambda _shape, x: x, (lambda _v, adj, shape, x: adj * _gamma_speed(shape, x), None), name="gamma draw"
)


def _standard_gamma(rng: np.random.Generator, shape: Value, size: Shape) -> Value:
    return _gamma_draw(broadcast_to(shape, size), settle(rng.standard_gamma(value_of(shape), size)))


def gamma(rng: Seed, shape: Value, scale: Value = 1.0, size: Size = None) -> Value:
    """scale · g, g standard gamma of this shape; dg/dshape by implicit reparameterisation."""
    shape, scale = _parameters("gamma", {"shape": POSITIVE, "scale": NOT_NEGATIVE}, shape, scale)
    return scale * _standard_gamma(_generator("gamma", rng), shape, _shape("gamma", size, shape, scale))


def chi_square(rng: Seed, df: Value, size: Size = None) -> Value:
    """2 g, g standard gamma of shape df/2."""
    (df,) = _parameters("chi_square", {"df": POSITIVE}, df)
    return 2.0 * _standard_gamma(_generator("chi_square", rng), 0.5 * df, _shape("chi_square", size, df))


def student_t(rng: Seed, df: Value, loc: Value = 0.0, scale: Value = 1.0, size: Size = None) -> Value:
    """loc + scale · √(df/2) z / √g, z standard normal and g standard gamma of shape df/2.

    Like numpy, it draws z and g in turn for each element, which costs a microsecond or two.
    """
    df, loc, scale = _parameters("student_t", {"df": POSITIVE, **_REAL}, df, loc, scale)
    size, generator = _shape("student_t", size, df, loc, scale), _generator("student_t", rng)
    halves = np.broadcast_to(value_of(df), size).ravel() * 0.5
    pairs = np.array([(generator.standard_normal(), generator.standard_gamma(h)) for h in halves]).reshape(-1, 2)
    z, g = (settle(column.reshape(size)) for column in pairs.T)
    return loc + scale * (sqrt(0.5 * df) * z / sqrt(_gamma_draw(broadcast_to(0.5 * df, size), g)))


# Discrete draws


def _discrete(name: str) -> Callable[..., Any]:
    def draw(rng: Seed, *parameters: Any, size: Size = None) -> Any:
        if any_active(parameters):
            raise DiscreteDrawError(
                f"{name}: expected plain parameters, got a variable: a discrete draw jumps and has no derivative; "
                f"pass plain numbers with .val to make the draw a constant"
            )
        return getattr(_generator(name, rng), name)(*parameters, size=size)

    draw.__name__ = name
    draw.__doc__ = f"`Generator.{name}`, a constant. Raises DiscreteDrawError if a parameter is being differentiated."
    return draw


binomial = _discrete("binomial")
geometric = _discrete("geometric")
hypergeometric = _discrete("hypergeometric")
integers = _discrete("integers")
negative_binomial = _discrete("negative_binomial")
poisson = _discrete("poisson")
