"""`xp.fft` over balls: sums over all entries, with exact roots of unity 0, ±1/2 and ±1."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb, fmpq

from adbench.oracle.series import ball
from adbench.oracle.series.arrays import COMPLEX, RealArray, holds_complex, objects


class Fourier:
    """`numpy.fft` of one axis, for arrays of `Real` and `Complex` of the namespace ``xp``."""

    fftfreq, rfftfreq = staticmethod(np.fft.fftfreq), staticmethod(np.fft.rfftfreq)
    fftshift, ifftshift = staticmethod(np.fft.fftshift), staticmethod(np.fft.ifftshift)

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def fft(self, x: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        """Σ_j x_j exp(-2πi j k / n) for k < n."""
        rows = self._rows(x, n, axis)
        return self._sums(rows, rows.shape[-1], -1, axis, norm)

    def ifft(self, x: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        """Σ_j x_j exp(2πi j k / n) / n for k < n."""
        rows = self._rows(x, n, axis)
        return self._sums(rows, rows.shape[-1], 1, axis, norm)

    def rfft(self, x: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        """The sums of `fft` that determine the others for a real x: k ≤ n / 2. Raises TypeError for a complex x."""
        rows = self._rows(x, n, axis)
        if holds_complex(rows):
            raise TypeError("rfft needs real numbers; use fft")
        return self._sums(rows, rows.shape[-1] // 2 + 1, -1, axis, norm)

    def irfft(self, x: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        """The n real numbers whose `rfft` is x; n is even by default."""
        n = 2 * (np.shape(x)[axis] - 1) if n is None else n
        half = self._rows(x, n // 2 + 1, axis)
        rows = np.concatenate([half, np.asarray(self._xp.conj(half[..., (n - 1) // 2 : 0 : -1]))], axis=-1)
        return self._xp.real(self._sums(rows, n, 1, axis, norm))

    def _rows(self, x: Any, n: int | None, axis: int) -> Any:
        """The array with this axis as the last, cut to n entries or filled up with zeros."""
        rows = np.moveaxis(np.asarray(self._xp.reals(x), dtype=object), axis, -1)
        if n is None or n <= rows.shape[-1]:
            return rows[..., :n]
        zeros = np.asarray(self._xp.zeros((*rows.shape[:-1], n - rows.shape[-1])))
        return np.concatenate([rows, zeros], axis=-1)

    def _sums(self, rows: Any, count: int, turn: int, axis: int, norm: str | None) -> Any:
        """Σ_j x_j exp(turn 2πi j k / n) for k < count, scaled."""
        xp, n = self._xp, rows.shape[-1]
        cosines, sines = self._roots(n, count, turn)
        real, imag = xp.matmul(xp.real(rows), cosines), xp.matmul(xp.real(rows), sines)
        if holds_complex(rows):
            parts = xp.imag(rows)
            real, imag = real - xp.matmul(parts, sines), imag + xp.matmul(parts, cosines)
        if (scale := _scale(n, turn, norm)) is not None:
            size = xp.number(xp.number.rounded(scale))
            real, imag = real / size, imag / size
        return np.moveaxis(COMPLEX(real, imag), -1, axis).view(RealArray)

    def _roots(self, n: int, count: int, turn: int) -> list[Any]:
        """cos and sin of turn 2π j k / n for j < n, k < count, as two matrices."""
        number = self._xp.number
        which = np.outer(np.arange(n), np.arange(count)) % n
        matrices = []
        for function in (arb.cos_pi_fmpq, arb.sin_pi_fmpq):
            values = [function(fmpq(2 * turn * k, n)) for k in range(n)]
            roots = [number(number.rounded(ball.constant(float(v)) if v.is_exact() else v)) for v in values]
            matrices.append(objects(roots, (n,))[which])
        return matrices


def _scale(n: int, turn: int, norm: str | None) -> Any:
    """The divisor of the sums, or None. Raises ValueError for an unknown norm."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'the norm must be "backward", "ortho" or "forward"; got {norm!r}')
    if norm == "ortho":
        return arb(n).sqrt()
    return ball.constant(n) if (norm == "forward") == (turn < 0) else None
