"""Linear algebra: determinants, solves, factorisations and functions of matrices.

Where a library reads one triangle of a symmetric matrix, the operation symmetrises its argument, so that conventions
about the other triangle do not count as faults. Signs of vectors are removed by squares. Products of factors are no
operations here: they are smooth where their factors are not, as x = q r is at singular x.
"""

from __future__ import annotations

from adbench.findings.operations.operation import REAL, Domain, Family

SQUARE = "(n,n)->(n,n)"
INVERTIBLE = Domain(kind="invertible")
SYMMETRIC = Domain(kind="symmetric")
DEFINITE = Domain(kind="definite")
TRIANGULAR = Domain(kind="triangular")
T = "torch.linalg."
J = "jnp.linalg."
S = "jax.scipy.linalg."
TORCH_HALF = "(x + x.mT) / 2"
JAX_HALF = "(x + jnp.matrix_transpose(x)) / 2"

systems = Family("linear systems and determinants")
systems.add("det", "xp.linalg.det(x)", "(n,n)->()", INVERTIBLE, both=T + "det(x)")
systems.add("log_abs_det", "xp.linalg.slogdet(x)[1]", "(n,n)->()", INVERTIBLE, both=T + "slogdet(x)[1]")
systems.add("logdet", "xp.linalg.slogdet(x)[1]", "(n,n)->()", DEFINITE, torch="torch.logdet(x)",
            jax=J + "slogdet(x).logabsdet")  # fmt: skip
systems.add("inv", "xp.linalg.inv(x)", SQUARE, INVERTIBLE, both=T + "inv(x)")
systems.add("inv_ex", "xp.linalg.inv(x)", SQUARE, INVERTIBLE, torch=T + "inv_ex(x).inverse", jax=S + "inv(x)")
systems.add("solve", "xp.linalg.solve(x, y)", "(n,n),(n,k)->(n,k)", INVERTIBLE, REAL, both=T + "solve(x, y)")
systems.add("solve_vector", "solve_vector(xp, x, y)", "(n,n),(n)->(n)", INVERTIBLE, REAL, both=T + "solve(x, y)",
            batch=False)  # fmt: skip
systems.add("scipy_solve", "xp.linalg.solve(x, y)", "(n,n),(n,k)->(n,k)", INVERTIBLE, REAL, jax=S + "solve(x, y)",
            torch=T + "solve_ex(x, y).result")  # fmt: skip
systems.add("lu_solve", "xp.linalg.solve(x, y)", "(n,n),(n,k)->(n,k)", INVERTIBLE, REAL,
            torch=T + "lu_solve(*torch.linalg.lu_factor(x), y)",
            jax="jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(x), y)", batch=False)  # fmt: skip
systems.add("solve_lower_triangular", "xp.linalg.solve(xp.tril(x), y)", "(n,n),(n,k)->(n,k)", TRIANGULAR, REAL,
            torch=T + "solve_triangular(torch.tril(x), y, upper=False)",
            jax=S + "solve_triangular(x, y, lower=True)")  # fmt: skip
systems.add("cholesky_solve", "xp.linalg.solve(symmetrised(xp, x), y)", "(n,n),(n,k)->(n,k)", DEFINITE, REAL,
            torch=f"torch.cholesky_solve(y, torch.linalg.cholesky({TORCH_HALF}))",
            jax=f"jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor({JAX_HALF}), y)", batch=False)  # fmt: skip
systems.add("cholesky_inverse", "xp.linalg.inv(symmetrised(xp, x))", SQUARE, DEFINITE,
            torch=f"torch.cholesky_inverse(torch.linalg.cholesky({TORCH_HALF}))", batch=False)  # fmt: skip
systems.add("lstsq", "xp.linalg.lstsq(x, y)", "(3,2),(3,1)->(2,1)", torch=T + "lstsq(x, y).solution",
            jax=J + "lstsq(x, y)[0]", batch=False)  # fmt: skip
systems.add("pinv", "xp.linalg.pinv(x)", "(3,2)->(2,3)", both=T + "pinv(x)", batch=False)
systems.add("multi_dot", "x @ (y @ z)", "(2,3),(3,2),(2,2)->(2,2)", both=T + "multi_dot([x, y, z])", batch=False)
systems.add("matrix_power_3", "x @ (x @ x)", SQUARE, both=T + "matrix_power(x, 3)")
systems.add("matrix_power_minus_2", "xp.linalg.inv(x @ x)", SQUARE, INVERTIBLE, both=T + "matrix_power(x, -2)")
systems.add("expm", "xp.linalg.expm(x)", SQUARE, torch=T + "matrix_exp(x)", jax=S + "expm(x)")
systems.add("quadratic_form", "xp.sum(y * solve_vector(xp, x, y))", "(n,n),(n)->()", INVERTIBLE, REAL,
            both="y @ torch.linalg.solve(x, y)", batch=False)  # fmt: skip
systems.add("tensorinv", "xp.linalg.inv(x)", SQUARE, INVERTIBLE, both=T + "tensorinv(x, 1)", batch=False)

factors = Family("factorisations and spectra")
factors.add("cholesky", "xp.linalg.cholesky(symmetrised(xp, x))", SQUARE, DEFINITE, torch=f"{T}cholesky({TORCH_HALF})",
            jax=f"{J}cholesky({JAX_HALF})")  # fmt: skip
factors.add("cholesky_upper", "xp.matrix_transpose(xp.linalg.cholesky(symmetrised(xp, x)))", SQUARE, DEFINITE,
            torch=f"{T}cholesky({TORCH_HALF}, upper=True)", jax=f"{J}cholesky({JAX_HALF}, upper=True)")  # fmt: skip
factors.add("eigvalsh", "xp.linalg.eigvalsh(symmetrised(xp, x))", "(n,n)->(n)", SYMMETRIC,
            torch=f"{T}eigvalsh({TORCH_HALF})", jax=f"{J}eigvalsh({JAX_HALF})")  # fmt: skip
factors.add("eigh_values", "xp.linalg.eigvalsh(symmetrised(xp, x))", "(n,n)->(n)", SYMMETRIC,
            torch=f"{T}eigh({TORCH_HALF})[0]", jax=f"{J}eigh({JAX_HALF})[0]")  # fmt: skip
factors.add("trace_of_eigenvalue_exponentials", "xp.sum(xp.exp(xp.linalg.eigvalsh(symmetrised(xp, x))))", "(n,n)->()",
            SYMMETRIC, torch=f"torch.linalg.eigvalsh({TORCH_HALF}).exp().sum()",
            jax=f"jnp.exp(jnp.linalg.eigvalsh({JAX_HALF})).sum()", batch=False)  # fmt: skip
factors.add("svdvals", "xp.linalg.svdvals(x)", "(3,2)->(2)", torch=T + "svdvals(x)", jax=J + "svd(x, compute_uv=False)")
factors.add("svd_values", "xp.linalg.svdvals(x)", "(3,2)->(2)", both=T + "svd(x, full_matrices=False)[1]")
factors.add("squares_of_r", "xp.linalg.qr(x)[1] ** 2", "(3,2)->(2,2)", both=T + "qr(x)[1] ** 2", batch=False)

norms = Family("norms of matrices")
norms.add("frobenius_norm", "xp.sqrt(xp.sum(x * x))", "(3,2)->()", torch=T + "matrix_norm(x)", jax=J + "norm(x)",
          batch=False)  # fmt: skip
norms.add("nuclear_norm", "xp.sum(xp.linalg.svdvals(x))", "(3,2)->()", torch=T + 'matrix_norm(x, ord="nuc")',
          jax=J + 'norm(x, ord="nuc")', batch=False)  # fmt: skip
norms.add("spectral_norm", "xp.max(xp.linalg.svdvals(x))", "(3,2)->()", torch=T + "matrix_norm(x, ord=2)",
          jax=J + "norm(x, ord=2)", batch=False)  # fmt: skip
norms.add("matrix_norm_1", "xp.max(xp.sum(xp.abs(x), axis=-2))", "(3,2)->()", torch=T + "matrix_norm(x, ord=1)",
          jax=J + "norm(x, ord=1)", batch=False)  # fmt: skip
norms.add("cond", "(lambda s: s[0] / s[1])(xp.linalg.svdvals(x))", "(3,2)->()", both=T + "cond(x)", batch=False)

FAMILIES = (systems, factors, norms)
