"""The reference engine: automatic differentiation by a tape, in both modes, to any order.

Use it
------
Direct style (Carpenter et al., "The stan::agrad C++ automatic differentiation library", section 2.1):

    mu, sigma = tape.Var(0.5), tape.Var(1.2)
    lp = -0.5 * ((1.3 - mu) / sigma) ** 2 - tape.log(sigma)
    lp.grad()                                  # lp.grad([mu, sigma]) also returns the adjoints
    mu.adj, sigma.adj

Functional style (section 2.3), which nests to any order:

    fx, g = tape.gradient(f, x)                # also jacobian hessian vjp jvp hvp
    tape.gradient(lambda x: tape.gradient(f, x)[1], 7.0)

Read it
-------
    core                   the engine: rule, recording, sweep, node, forward, functionals, in this order
    values, trees, levels  next to the core: plain values, nests of values, the tapes open in a thread
    rules                  functions by family, one row or rule each; `numpy_names` has the tables they fill
    singular, identities   second derivatives at kinks and poles; compositions that are smooth there
    operand, variable      operators, methods and numpy's protocols of every active value; `Var`, callbacks, long loops
                           in little memory
    fast                   the same results, faster: operators and functions without rules, compact records, reused
                           memory, no garbage collection of a growing tape
    machine                the same for scalars in machine code, by LLVM
    linalg, densities, ode, draws      more families
    explain, compiled      a recording as tables and a drawing; a function recorded once, run as machine code
    pqr                    a plug-in, which nothing else here imports: gradients attached to values, compact Jacobians

Each module imports only modules above or next to it in this list. Rules do not know tapes. A rule is a value function
for plain numbers, and gradient functions written with the functions of this package, so that they can be differentiated
too.

Extend it
---------
An elementwise function: one gradient function for each argument, `(val, adj, *inputs)`, for both modes.

    cube = function_gradients(lambda x: x**3, (lambda val, adj, x: adj * 3.0 * x * x,), name="cube")

A matrix function: `reverse` adds to the argument's adjoint, `forward` gives the result's tangent.

    inverse = function_gradients(np.linalg.inv, reverse=(lambda c, adj, a: -c.T @ adj @ c.T,),
                                                forward=(lambda c, tan, a: -c @ tan @ c,))

Options are keyword arguments: plain data, passed on to the gradient functions by name. Use `AllInputs` for functions of
any number of arguments, or if gradients share work. Start the name of an unread parameter with an underscore, and its
value is not kept in memory. `make_callback_var` and `reverse_pass_callback` make nodes from Python callbacks.

Conventions
-----------
Everything is float64: integers, booleans and float32 are promoted, complex numbers raise `ComplexError`. A scalar is
a Python float. Each module's docstring lists the derivatives taken at kinks. Zero times infinity is zero along a path
of the chain rule (`sweep`).
"""

# ruff: noqa: F401, F403, I001, PLE0605  # `__all__` is derived from what is imported and from `PUBLIC`

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Names of the array API that are numpy's own here: constants, functions of types and shapes, and new plain arrays.
from numpy import arange, broadcast_shapes, can_cast, e, eye, finfo, float32, float64, iinfo, inf, int32, int64, isdtype
from numpy import nan, newaxis, ones, pi, result_type, zeros
from numpy import zeros as empty  # so that elements never filled are not noise

from adbench.tape import linalg, operand  # it gives active values their operators
from adbench.tape.variable import make_callback_var, reverse_pass_callback
from adbench.tape.variable import checkpointed_loop
from adbench.tape.core.forward import Dual
from adbench.tape.core.functionals import NotScalarError, gradient, jvp, vjp
from adbench.tape.core.node import Array, Scalar
from adbench.tape.core.recording import Tape
from adbench.tape.core.rule import Active, AllInputs, Rule, RuleError, TapeError, function_gradients
from adbench.tape.densities.continuous import beta_lpdf, cauchy_lpdf, exponential_lpdf, gamma_lpdf, lognormal_lpdf
from adbench.tape.densities.continuous import normal_lpdf, student_t_lpdf
from adbench.tape.densities.density import Density, DomainError
from adbench.tape.densities.discrete import bernoulli_logit_lpmf, bernoulli_lpmf, binomial_lpmf, categorical_logit_lpmf
from adbench.tape.densities.discrete import categorical_lpmf, poisson_log_lpmf, poisson_lpmf
from adbench.tape.densities.multivariate import dirichlet_lpdf, multi_normal_cholesky_lpdf, multi_normal_lpdf
from adbench.tape.densities.multivariate import multi_normal_prec_lpdf
from adbench.tape.explain.explanation import Explanation, explain
from adbench.tape.fast import blocks as memory  # public as tape.memory
from adbench.tape.fast import switch
from adbench.tape.fast.switch import load_machine_code
from adbench.tape.jacobians import hessian, hvp, jacobian
from adbench.tape.levels import ClosedTapeError, ForwardModeError, NotCompilableError, loop, nested
from adbench.tape.linalg import EqualEigenvaluesError, cholesky, det, eigh, eigvalsh, expm, inv, log_determinant
from adbench.tape.linalg import matrix_norm, matrix_power, norm, pinv, qr, quad_form, quad_form_sym, slogdet, solve
from adbench.tape.linalg import solve_triangular, svd, svdvals, trace_quad_form, vector_norm
from adbench.tape.numpy_names import PUBLIC, UnsupportedError
from adbench.tape.ode.odeint import odeint, rk4
from adbench.tape.ode.solver import OdeError
from adbench.tape.rules import fourier as fft
from adbench.tape.trees import Tree, shape, tree_map
from adbench.tape.values import ComplexError, value_of
from adbench.tape.variable import Var, current_tape, recover_memory, set_zero_all_adjoints

if TYPE_CHECKING:  # the names in `PUBLIC`
    from adbench.tape.compiled import Compiled
    from adbench.tape.rules.compound import *
    from adbench.tape.rules.elementwise import *
    from adbench.tape.rules.indexing import *
    from adbench.tape.rules.predicates import *
    from adbench.tape.rules.products import *
    from adbench.tape.rules.reductions import *
    from adbench.tape.rules.shapes import *
    from adbench.tape.rules.special import *

switch.install()


def compile(f: Callable[..., Any], *example: Any, **options: Any) -> Compiled:
    """Compile f to machine code: call(*args) -> (value, gradient). See `compiled.compile`."""
    from adbench.tape.compiled import compile as make  # loads LLVM only when needed

    return make(f, *example, **options)


def sparsity(f: Callable[[Any], Any], x: Any, operator: str = "jacobian") -> Any:
    """The pattern of f's Jacobian at x, or of its Hessian, as a scipy.sparse array of booleans.

    See `compiled.sparse.sparsity`.
    """
    from adbench.tape.compiled.sparse.sparsity import sparsity as of  # loads scipy.sparse only when needed

    return of(f, x, operator)


def __getattr__(name: str) -> Any:
    """A function whose row was added after import; for the type checker, also the aliases of rows."""
    if name in PUBLIC:
        return PUBLIC[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})


globals().update(PUBLIC)
_HERE = {"Any", "Callable", "ModuleType", "PUBLIC", "TYPE_CHECKING", "annotations"}
_MODULES = {name for name, value in globals().items() if isinstance(value, ModuleType)} - {"fft", "linalg"}
__all__ = sorted(name for name in globals().keys() - _HERE - _MODULES if not name.startswith("_"))
