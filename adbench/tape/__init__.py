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
    rule          a function and its gradient functions, one rule for both modes: `function_gradients`
    memory, plain          blocks for large arrays, used again and again; what a plain value is
    elementwise, special, shapes, indexing, reductions, products, fourier      the rules, by family
    compound, gammas       functions that keep their digits: log1p_exp, log_sum_exp, lbeta, …
    solving, determinant, spectrum, factorisations, norms, quadratic, linalg   matrix functions; linalg has them all
    density, continuous, discrete, multivariate    log densities, each one node: `normal_lpdf`, …
    predicates, creation   truth values, observed by those who want to replay a recording; arrays made from nothing
    operand       operators, methods and numpy's protocols of every active value
    recording     `Tape`, records and the cells where adjoints collect
    sweep         the reverse sweep, and what zero times infinity is
    node          `Scalar`, `Array`: the values on a tape
    operators     the same operators again for these two, as quick as Python lets them be
    dual          forward mode
    variable      `Var`, the current tape, `nested`
    trees         nested parameters: dataclasses, arithmetic, shapes, draws
    functionals   gradient, jacobian, …
    compact, compact_forms, compact_mode    compact Jacobians, and forward mode with them
    tracking, own_gradient                  pqR: with_gradient, track_gradient, back_gradient; compute_gradient
    callbacks     custom nodes from Python functions
    checkpoints   a long loop in little memory
    ode_solver, ode_adjoint, ode     differential equations: `odeint`, `rk4`
    notation, explain      a recording as tables and as a drawing
    compiled               the second gear: a function recorded once, and run as machine code (a package of its own)

Imports go down this list's order only. Rules know nothing of tapes: a value function for plain numbers, gradient
functions written with the functions of this package, so that they can themselves be differentiated.

Extend it
---------
An elementwise function: one gradient function for each argument, `(val, adj, *inputs)`, for both modes.

    cube = function_gradients(lambda x: x**3, (lambda val, adj, x: adj * 3.0 * x * x,), name="cube")

A matrix function: `reverse` adds to the argument's adjoint, `forward` gives the result's tangent.

    inverse = function_gradients(np.linalg.inv, reverse=(lambda c, adj, a: -c.T @ adj @ c.T,),
                                                forward=(lambda c, tan, a: -c @ tan @ c,))

Options are keyword arguments; they must be plain data and reach the gradient functions by name. `AllInputs` is for
functions of any number of arguments or with work to share; a parameter named with an underscore in front is not kept
in memory. A node from a plain Python callback: `make_callback_var`, `reverse_pass_callback`.

Conventions
-----------
Everything is float64: integers, booleans and float32 are promoted, complex numbers raise `ComplexError`. A scalar is
a Python float. Where a function has a kink, the derivative taken is written at the head of its module; zero times
infinity is zero along a path of the chain rule (`sweep`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

# Names of the array API that are numpy's own here too: numbers, and what concerns types and shapes alone.
from numpy import (
    broadcast_shapes,
    can_cast,
    e,
    finfo,
    float32,
    float64,
    iinfo,
    inf,
    int32,
    int64,
    isdtype,
    nan,
    newaxis,
    pi,
    result_type,
)

from adbench.tape import linalg
from adbench.tape.callbacks import make_callback_var, reverse_pass_callback
from adbench.tape.checkpoints import checkpointed_loop
from adbench.tape.core.forward import Dual
from adbench.tape.core.functionals import NotScalarError, gradient, hessian, hvp, jacobian, jvp, loop, vjp
from adbench.tape.core.node import Array, Scalar
from adbench.tape.core.numpy_names import UnsupportedError
from adbench.tape.core.recording import ClosedTapeError, Tape
from adbench.tape.core.rule import Active, AllInputs, Rule, RuleError, TapeError, function_gradients
from adbench.tape.core.trees import Tree, normal_nest, random_nest, shape, tree_map
from adbench.tape.core.values import ComplexError, value_of
from adbench.tape.core.variable import (
    ForwardModeError,
    Var,
    current_tape,
    nested,
    recover_memory,
    set_zero_all_adjoints,
)
from adbench.tape.densities.continuous import (
    beta_lpdf,
    cauchy_lpdf,
    exponential_lpdf,
    gamma_lpdf,
    lognormal_lpdf,
    normal_lpdf,
    student_t_lpdf,
)
from adbench.tape.densities.density import Density, DomainError
from adbench.tape.densities.discrete import (
    bernoulli_logit_lpmf,
    bernoulli_lpmf,
    binomial_lpmf,
    categorical_logit_lpmf,
    categorical_lpmf,
    poisson_log_lpmf,
    poisson_lpmf,
)
from adbench.tape.densities.multivariate import (
    dirichlet_lpdf,
    multi_normal_cholesky_lpdf,
    multi_normal_lpdf,
    multi_normal_prec_lpdf,
    wishart_lpdf,
)
from adbench.tape.explain.explanation import Explanation, explain
from adbench.tape.fast import blocks as memory  # noqa: F401  # the name that docs give it: tape.memory
from adbench.tape.fast import written_out  # noqa: F401  # Scalar and Array get their operators from it
from adbench.tape.linalg.determinant import det
from adbench.tape.linalg.factorisations import cholesky, eigh, eigvalsh, qr, svd, svdvals
from adbench.tape.linalg.norms import matrix_norm, norm, vector_norm
from adbench.tape.linalg.quadratic import quad_form, quad_form_sym, trace_quad_form
from adbench.tape.linalg.solving import expm, inv, log_determinant, matrix_power, pinv, slogdet, solve, solve_triangular
from adbench.tape.linalg.spectrum import EqualEigenvaluesError
from adbench.tape.ode.odeint import odeint, rk4
from adbench.tape.ode.solver import OdeError
from adbench.tape.pqr.compact import CompactJacobian, Dense, IdentityMultiple, LazyProduct
from adbench.tape.pqr.compact_forms import Diagonal, Implicit, Kronecker, OneInColumn, OneInRow, Scaled
from adbench.tape.pqr.compact_mode import Compact, compact_jacobian
from adbench.tape.pqr.custom_gradient import compute_gradient
from adbench.tape.pqr.tracking import Tracked, back_gradient, gradient_of, track_gradient, with_gradient
from adbench.tape.rules import fourier as fft
from adbench.tape.rules.compound import (
    Phi,
    Phi_approx,
    erfinv,
    inv_logit,
    inv_Phi,
    log1m,
    log1m_exp,
    log1m_inv_logit,
    log1p_exp,
    log1p_square,
    log_diff_exp,
    log_inv_logit,
    log_softmax,
    log_sum_exp,
    logit,
    multiply_log,
    sinc,
    std_normal_lcdf,
    xlog1py,
    xlogy,
)
from adbench.tape.rules.creation import (
    arange,
    astype,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    zeros,
)
from adbench.tape.rules.elementwise import (
    absolute,
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    cbrt,
    ceil,
    clip,
    copysign,
    cos,
    cosh,
    degrees,
    divide,
    exp,
    exp2,
    expit,
    expm1,
    floor,
    floor_divide,
    hypot,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    maximum,
    minimum,
    multiply,
    negative,
    positive,
    power,
    radians,
    reciprocal,
    remainder,
    rint,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    stop_gradient,
    subtract,
    tan,
    tanh,
    trunc,
    where,
)
from adbench.tape.rules.gammas import binomial_coefficient_log, digamma_rise, lbeta, lgamma, lmgamma, trigamma
from adbench.tape.rules.indexing import (
    argsort,
    cummax,
    diag,
    diagonal,
    getitem,
    put,
    searchsorted,
    set_at,
    sort,
    take,
    take_along_axis,
)
from adbench.tape.rules.predicates import (
    all,
    any,
    count_nonzero,
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    nonzero,
    not_equal,
    signbit,
)
from adbench.tape.rules.products import dot, einsum, inner, kron, matmul, outer, tensordot, vdot, vecdot
from adbench.tape.rules.reductions import (
    argmax,
    argmin,
    cumprod,
    cumsum,
    diff,
    logsumexp,
    max,
    mean,
    min,
    prod,
    softmax,
    std,
    sum,
    trace,
    var,
)
from adbench.tape.rules.shapes import (
    asarray,
    atleast_1d,
    atleast_2d,
    broadcast_arrays,
    broadcast_to,
    concatenate,
    copy,
    expand_dims,
    flip,
    hstack,
    matrix_transpose,
    moveaxis,
    pad,
    ravel,
    repeat,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    swapaxes,
    tile,
    transpose,
    tril,
    triu,
    unstack,
    vstack,
    zeros_like,
)
from adbench.tape.rules.special import digamma, erf, erfc, gammaln, polygamma

if TYPE_CHECKING:
    from adbench.tape.compiled import Compiled


def compile(f: Callable[..., Any], *example: Any, **options: Any) -> Compiled:
    """f as machine code: call(*args) -> (value, gradient), recorded at the first arguments. See `compiled.compile`."""
    from adbench.tape.compiled import compile as make  # LLVM is loaded when it is first needed

    return make(f, *example, **options)


# The array API's names for the same functions.
abs = absolute
amax, amin = max, min
acos, acosh, asin, asinh = arccos, arccosh, arcsin, arcsinh
atan, atan2, atanh = arctan, arctan2, arctanh
concat = concatenate
cumulative_prod, cumulative_sum = cumprod, cumsum
fabs = absolute
flatten = ravel
mod = remainder
permute_dims = transpose
pow = power
round = rint

__all__ = [
    "Active",
    "AllInputs",
    "Array",
    "ClosedTapeError",
    "Compact",
    "CompactJacobian",
    "ComplexError",
    "Dense",
    "Density",
    "Diagonal",
    "DomainError",
    "Dual",
    "EqualEigenvaluesError",
    "Explanation",
    "ForwardModeError",
    "IdentityMultiple",
    "Implicit",
    "Kronecker",
    "LazyProduct",
    "NotScalarError",
    "OdeError",
    "OneInColumn",
    "OneInRow",
    "Phi",
    "Phi_approx",
    "Rule",
    "RuleError",
    "Scalar",
    "Scaled",
    "Tape",
    "TapeError",
    "Tracked",
    "Tree",
    "UnsupportedError",
    "Var",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "amax",
    "amin",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "back_gradient",
    "bernoulli_logit_lpmf",
    "bernoulli_lpmf",
    "beta_lpdf",
    "binomial_coefficient_log",
    "binomial_lpmf",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "categorical_logit_lpmf",
    "categorical_lpmf",
    "cauchy_lpdf",
    "cbrt",
    "ceil",
    "checkpointed_loop",
    "cholesky",
    "clip",
    "compact_jacobian",
    "compile",
    "compute_gradient",
    "concat",
    "concatenate",
    "copy",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cummax",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "current_tape",
    "degrees",
    "det",
    "diag",
    "diagonal",
    "diff",
    "digamma",
    "digamma_rise",
    "dirichlet_lpdf",
    "divide",
    "dot",
    "e",
    "eigh",
    "eigvalsh",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expand_dims",
    "expit",
    "explain",
    "expm",
    "expm1",
    "exponential_lpdf",
    "eye",
    "fabs",
    "fft",
    "finfo",
    "flatten",
    "flip",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "full",
    "full_like",
    "function_gradients",
    "gamma_lpdf",
    "gammaln",
    "getitem",
    "gradient",
    "gradient_of",
    "greater",
    "greater_equal",
    "hessian",
    "hstack",
    "hvp",
    "hypot",
    "iinfo",
    "inf",
    "inner",
    "int32",
    "int64",
    "inv",
    "inv_Phi",
    "inv_logit",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "jacobian",
    "jvp",
    "kron",
    "lbeta",
    "less",
    "less_equal",
    "lgamma",
    "linalg",
    "linspace",
    "lmgamma",
    "log",
    "log1m",
    "log1m_exp",
    "log1m_inv_logit",
    "log1p",
    "log1p_exp",
    "log1p_square",
    "log2",
    "log10",
    "log_determinant",
    "log_diff_exp",
    "log_inv_logit",
    "log_softmax",
    "log_sum_exp",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "lognormal_lpdf",
    "logsumexp",
    "loop",
    "make_callback_var",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "moveaxis",
    "multi_normal_cholesky_lpdf",
    "multi_normal_lpdf",
    "multi_normal_prec_lpdf",
    "multiply",
    "multiply_log",
    "nan",
    "negative",
    "nested",
    "newaxis",
    "nonzero",
    "norm",
    "normal_lpdf",
    "normal_nest",
    "not_equal",
    "odeint",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "permute_dims",
    "pi",
    "pinv",
    "poisson_log_lpmf",
    "poisson_lpmf",
    "polygamma",
    "positive",
    "pow",
    "power",
    "prod",
    "put",
    "qr",
    "quad_form",
    "quad_form_sym",
    "radians",
    "random_nest",
    "ravel",
    "reciprocal",
    "recover_memory",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "reverse_pass_callback",
    "rint",
    "rk4",
    "roll",
    "round",
    "searchsorted",
    "set_at",
    "set_zero_all_adjoints",
    "shape",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "slogdet",
    "softmax",
    "solve",
    "solve_triangular",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "std_normal_lcdf",
    "stop_gradient",
    "student_t_lpdf",
    "subtract",
    "sum",
    "svd",
    "svdvals",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "trace_quad_form",
    "track_gradient",
    "transpose",
    "tree_map",
    "trigamma",
    "tril",
    "triu",
    "trunc",
    "unstack",
    "value_of",
    "var",
    "vdot",
    "vecdot",
    "vector_norm",
    "vjp",
    "vstack",
    "where",
    "wishart_lpdf",
    "with_gradient",
    "xlog1py",
    "xlogy",
    "zeros",
    "zeros_like",
]
