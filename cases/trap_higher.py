"""Traps of nested derivatives, stopped gradients and complex numbers.

Nested traps call `derivative` inside f, so the gradient of f has second or third order. The backend's namespace needs
`xp.derivative(g, x)`, and `xp.stop_gradient(x)` for the stopped gradient.
"""

import math

from ._traps import derivative, stop_gradient, traps

CASES, trap = traps("higher")


@trap({"x": 1.0}, (1.0,))
def trap_perturbation_confusion(xp, x):
    """x · d/dy (x + y) at 1 → 1: the inner derivative is 1 whatever x is.

    An engine that confuses the two perturbations gives 2: Siskind and Pearlmutter (2005), "Perturbation confusion and
    referential transparency"; EnzymeAD/Enzyme.jl#3346 is a recent example.
    """
    return x * derivative(xp, lambda y: x + y, 1.0 + 0.0 * x)


@trap({"x": 3.0}, (12.0,))
def trap_nested_product(xp, x):
    """d/dy (x y²) at y = x, which is 2 x², at 3 → 4 x = 12.

    The inner derivative depends on x twice: as a constant of the inner function and as the point.
    """
    return derivative(xp, lambda y: x * y * y, x)


@trap({"x": 3.0}, (1.0,))
def trap_nested_at_the_variable(xp, x):
    """x · d/dy (d/dz (y z) at z = y) at y = x = 3 → 1: two derivatives with no operation between them.

    A symbolic adapter that names symbols by its operation count gives y and z the same name: 2 (one of our adapters).
    """
    return x * derivative(xp, lambda y: derivative(xp, lambda z: y * z, y), x)


@trap({"x": 0.0}, (2.0,))
def trap_nested_at_zero(xp, x):
    """d/dy (x · 2y) at y = 3, at x = 0 → 2: the inner adjoint is zero, but depends on x.

    An engine that drops zero adjoints loses the outer derivative: 0.
    """
    return derivative(xp, lambda y: x * (2.0 * y), 3.0 + 0.0 * x)


@trap({"x": 0.0}, (0.0,), declared=True)
def trap_third_derivative_of_power(xp, x):
    """The third derivative of exp(-x^2.0) at 0 → 0, as the gradient of the second, -2 there.

    x^2.0 ends in 2 · 1 · 0 · x^-1 = 0 · inf (pytorch/pytorch#95180 for the exponent). Declared: finite differences
    of the second derivative are too inaccurate.
    """

    def first(a):
        return derivative(xp, lambda b: xp.exp(-(b**2.0)), a)

    return derivative(xp, first, x)


@trap(
    {"x": 0.0},
    (-(math.pi**2) / 3,),
    faults={
        "nan": "0/0 in the second derivative of sinc (as pytorch/pytorch#196885)",
        "0": "numpy's sinc replaces x by a constant at 0",
    },
)
def trap_second_derivative_of_sinc(xp, x):
    """The second derivative of sinc at 0 → -π²/3, as the gradient of the first.

    A constant special case at 0 loses the second derivative: 0 in jax-ml/jax#5054, NaN in
    pytorch/pytorch#196885.
    """
    return derivative(xp, xp.sinc, x)


@trap({"x": 3.0}, (3.0,), declared=True)
def trap_stop_gradient(xp, x):
    """x · stop(x) at 3 → 3: the second factor is declared constant.

    Finite differences give 6.
    """
    return x * stop_gradient(xp, x)


@trap({"x": 3.0, "y": 4.0}, (6.0, 8.0))
def trap_complex_modulus(xp, x, y):
    """|x + i y|² at 3 + 4i → (6, 8) in x and y.

    The gradient in z = x + i y is 6 + 8i or 6 - 8i by convention (torch and jax); mixing both inside one function
    gives the wrong sign in y.
    """
    return abs(x + 1j * y) ** 2


@trap({"x": 0.5}, (-math.sin(0.5),))
def trap_complex_exponential(xp, x):
    """Re exp(i x) at 0.5 → -sin x.

    An extra conjugate in the rule of exp or of the product with i flips the sign. Enzyme's cispi had 0
    (EnzymeAD/Enzyme.jl#735).
    """
    return xp.real(xp.exp(1j * x))


@trap({"x": [1.0, 2.0, 4.0]}, ([7.0, 7.0, 7.0],))
def trap_spectrum_mean(xp, x):
    """½ |X₀|² of the spectrum X = rfft x at (1, 2, 4) → Σ x = 7 in every entry."""
    return 0.5 * abs(xp.fft.rfft(x)[0]) ** 2


@trap({"x": [1.0, 2.0, 4.0]}, ([-4.0, -1.0, 5.0],))
def trap_spectrum_odd(xp, x):
    """½ Σ x · irfft(w rfft x), w = (0, 3), of odd length, at (1, 2, 4) → 3 (x - mean x).

    The inner frequencies of half a spectrum count twice, the first one once; at even lengths the last one counts once
    too.
    """
    return 0.5 * xp.sum(x * xp.fft.irfft(xp.fft.rfft(x) * xp.asarray([0.0, 3.0]), n=3))
