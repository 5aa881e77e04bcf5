"""Discrete Fourier transforms, over pairs of real numbers.

The tape is real, so a complex spectrum is a `Complex`: two real values of one shape, with arithmetic. Its derivatives
are those of its two parts, so no convention for complex gradients is needed. All transforms are linear. With the parts
in an array P of shape (2, …), y = F x has the adjoint Fᴴ: n · ifft for fft, and fft / n for ifft.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, Rule, Value
from adbench.tape.rules.elementwise import arctan2, hypot
from adbench.tape.rules.shapes import concatenate, linear, moveaxis, stack
from adbench.tape.values import shape_of


class Complex:
    """real + i · imag; the parts are active or plain, and have the same shape."""

    __slots__ = ("imag", "real")
    __array_priority__ = 2000.0

    def __init__(self, real: Value, imag: Value) -> None:
        self.real = real
        self.imag = imag

    def __repr__(self) -> str:
        return f"Complex({self.real!r}, {self.imag!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return shape_of(self.real)

    def conj(self) -> Complex:
        """real - i · imag."""
        return Complex(self.real, -self.imag)

    def __abs__(self) -> Value:
        return hypot(self.real, self.imag)

    def angle(self) -> Value:
        """The argument, in (-π, π]."""
        return arctan2(self.imag, self.real)

    def __getitem__(self, index: Any) -> Complex:
        return Complex(self.real[index], self.imag[index])

    def __neg__(self) -> Complex:
        return Complex(-self.real, -self.imag)

    def __add__(self, other: Any) -> Complex:
        z = as_complex(other)
        return Complex(self.real + z.real, self.imag + z.imag)

    def __sub__(self, other: Any) -> Complex:
        return self + -as_complex(other)

    def __rsub__(self, other: Any) -> Complex:
        return as_complex(other) + -self

    def __mul__(self, other: Any) -> Complex:
        if not isinstance(other, Complex) and not np.iscomplexobj(other):
            return Complex(self.real * other, self.imag * other)
        z = as_complex(other)
        return Complex(self.real * z.real - self.imag * z.imag, self.real * z.imag + self.imag * z.real)

    def __truediv__(self, other: Any) -> Complex:
        if not isinstance(other, Complex) and not np.iscomplexobj(other):
            return Complex(self.real / other, self.imag / other)
        z = as_complex(other)
        product, square = self * z.conj(), z.real * z.real + z.imag * z.imag
        return Complex(product.real / square, product.imag / square)

    __radd__ = __add__
    __rmul__ = __mul__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        table: dict[Any, Callable[..., Any]] = {
            np.add: Complex.__add__,
            np.multiply: Complex.__mul__,
            np.subtract: lambda a, b: as_complex(a) + -as_complex(b),
            np.divide: lambda a, b: as_complex(a) / b,
            np.absolute: Complex.__abs__,
            np.conjugate: Complex.conj,
            np.negative: Complex.__neg__,
        }
        if method != "__call__" or options or ufunc not in table:
            raise TypeError(f"numpy.{ufunc.__name__} does not take a complex spectrum; use its .real and .imag parts")
        if ufunc in (np.add, np.multiply) and not isinstance(inputs[0], Complex):
            inputs = inputs[::-1]
        return table[ufunc](*inputs)

    def __array_function__(self, function: Any, _types: Any, args: Any, options: Any) -> Any:
        table: dict[Any, Callable[..., Any]] = {
            np.fft.fft: fft,
            np.fft.ifft: ifft,
            np.fft.irfft: irfft,
            np.angle: Complex.angle,
        }
        if function not in table:
            raise TypeError(
                f"numpy.{function.__name__} does not take a complex spectrum; use its .real and .imag parts"
            )
        return table[function](*args, **{k: v for k, v in options.items() if v is not None})

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "a complex spectrum being differentiated cannot become a numpy array; use its .real and .imag parts"
        )


def as_complex(z: Any) -> Complex:
    """A `Complex`, a complex array or a real value as a `Complex`."""
    if isinstance(z, Complex):
        return z
    if isinstance(z, Active):
        return Complex(z, np.zeros(shape_of(z)))
    return Complex(np.real(z) * 1.0, np.imag(z) * 1.0)


def _transform(function: Any, pair: Value) -> Value:
    z = function(pair[0] + 1j * pair[1], axis=-1)
    return np.stack([z.real, z.imag])


_fft: Rule = linear(
    lambda pair: _transform(np.fft.fft, pair), lambda _v, adj, _p: shape_of(adj)[-1] * _ifft(adj), "fft"
)
_ifft: Rule = linear(
    lambda pair: _transform(np.fft.ifft, pair), lambda _v, adj, _p: _fft(adj) / shape_of(adj)[-1], "ifft"
)


def _fitted(x: Value, n: int | None, axis: int) -> Value:
    """x with the axis last, cut or filled with zeros to length n."""
    x = moveaxis(x, axis, -1)
    shape = shape_of(x)
    if n is None or n == shape[-1]:
        return x
    return x[..., :n] if n < shape[-1] else concatenate([x, np.zeros((*shape[:-1], n - shape[-1]))], -1)


def _pair(z: Complex) -> Value:
    return stack([z.real, z.imag])


def _is_plain(x: Any) -> bool:
    return not isinstance(x, (Active, Complex))


def fft(x: Any, n: int | None = None, axis: int = -1) -> Any:
    """y[k] = Σ_j x[j] exp(-2πi jk/n) along an axis: a `Complex`."""
    return np.fft.fft(x, n, axis) if _is_plain(x) else _apply(_fft, x, n, axis)


def ifft(x: Any, n: int | None = None, axis: int = -1) -> Any:
    """y[j] = Σ_k x[k] exp(+2πi jk/n) / n along an axis: a `Complex`."""
    return np.fft.ifft(x, n, axis) if _is_plain(x) else _apply(_ifft, x, n, axis)


def _apply(rule: Rule, x: Any, n: int | None, axis: int) -> Complex:
    z = as_complex(x)
    y = rule(_pair(Complex(_fitted(z.real, n, axis), _fitted(z.imag, n, axis))))
    return Complex(moveaxis(y[0], -1, axis), moveaxis(y[1], -1, axis))


def rfft(x: Any, n: int | None = None, axis: int = -1) -> Any:
    """The first n // 2 + 1 entries of fft(x) for real x; the rest are their conjugates."""
    if _is_plain(x):
        return np.fft.rfft(x, n, axis)
    y = _fft(_pair(as_complex(_fitted(x, n, axis))))
    half = y[..., : shape_of(y)[-1] // 2 + 1]
    return Complex(moveaxis(half[0], -1, axis), moveaxis(half[1], -1, axis))


def irfft(x: Any, n: int | None = None, axis: int = -1) -> Any:
    """The real vector of length n whose rfft is x; by default n = 2 (len(x) - 1)."""
    if _is_plain(x):
        return np.fft.irfft(x, n, axis)
    z = as_complex(x)
    n = 2 * (z.shape[axis] - 1) if n is None else n
    kept = n // 2 + 1
    real, imag = _fitted(z.real, kept, axis), _fitted(z.imag, kept, axis)
    twice = slice(1, (n + 1) // 2)  # entries whose conjugates also belong to the full spectrum
    edge = np.ones(kept)
    edge[0] = 0.0
    if n % 2 == 0:
        edge[-1] = 0.0  # irfft ignores the imaginary parts of the first and the middle entry
    imag = imag * edge
    full = Complex(
        concatenate([real, real[..., twice][..., ::-1]], -1), concatenate([imag, -imag[..., twice][..., ::-1]], -1)
    )
    return moveaxis(_ifft(_pair(full))[0], -1, axis)
