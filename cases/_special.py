"""Formulas that several cases need and the array API lacks."""


def log_sum_exp(xp, x, axis=None):
    """log Σ exp x along an axis (all entries for None), shifted by the maximum against overflow."""
    if axis is None:
        largest = xp.max(x)
        return largest + xp.log(xp.sum(xp.exp(x - largest)))
    largest = xp.max(x, axis=axis, keepdims=True)
    return xp.squeeze(largest, axis=axis) + xp.log(xp.sum(xp.exp(x - largest), axis=axis))


def rotation(xp, r):
    """The rotation matrix of the rotation vector r ≠ 0 of shape (3,), by Rodrigues' formula."""
    angle = xp.sqrt(xp.sum(r * r))
    x, y, z = r[0] / angle, r[1] / angle, r[2] / angle
    c, s = xp.cos(angle), xp.sin(angle)
    d = 1 - c
    return xp.stack(
        [
            xp.stack([c + x * x * d, x * y * d - z * s, x * z * d + y * s]),
            xp.stack([x * y * d + z * s, c + y * y * d, y * z * d - x * s]),
            xp.stack([x * z * d - y * s, y * z * d + x * s, c + z * z * d]),
        ]
    )
