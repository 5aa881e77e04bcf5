"""Operations on numbers: the array API's elementwise functions, special functions, activations of neural networks.

Definitions are written so that their rounding is small, because a library is allowed to lose as many digits.
"""

from __future__ import annotations

import math

from adbench.findings.operations.operation import POSITIVE, REAL, UNIT, Domain, Family
from adbench.vocabulary import FUNCTIONS

F = "torch.nn.functional."
LOG_2 = math.log(2.0)

elementary = Family("elementary functions")
elementary.add_functions("abs atan asinh cos cosh exp exp2 expm1 negative sin sinh square tan tanh")
elementary.add_functions("sinc", Domain(-1e6, 1e6, largest=30.0))
elementary.add_functions("log log10 log2 sqrt acos asin atanh acosh log1p reciprocal cbrt")
elementary.add("degrees", "x * (180.0 / xp.pi)", torch="torch.rad2deg(x)", jax="jnp.degrees(x)")
elementary.add("radians", "x * (xp.pi / 180.0)", torch="torch.deg2rad(x)", jax="jnp.radians(x)")
elementary.add_functions("floor ceil trunc sign")
elementary.add("rsqrt", "1 / xp.sqrt(x)", "()->()", POSITIVE, torch="torch.rsqrt(x)", jax="jax.lax.rsqrt(x)")
elementary.add("cos_and_sin_of_angle", "xp.cos(x) * xp.sin(x)", both="torch.cos(x) * torch.sin(x)")
for power in (0, 1, 2, 3, 5, -1, -2):
    elementary.add(f"integer_power_{power}".replace("-", "minus_"), f"x**{power}", torch=f"torch.pow(x, {power})",
                   jax=f"jax.lax.integer_pow(x, {power})" if power else "jnp.power(x, 0)")  # fmt: skip
for exponent in (0.5, 1.5, 2.0, 3.0, -0.5):
    elementary.add(f"power_{exponent}".replace("-", "minus_"), f"x**{exponent}", "()->()", POSITIVE,
                   torch=f"torch.pow(x, {exponent})", jax=f"jnp.power(x, {exponent})")  # fmt: skip
elementary.add("base_2_power", "xp.exp(x * xp.log(2.0))", torch="torch.pow(2.0, x)", jax="jnp.power(2.0, x)")
elementary.add("float_power", "x**1.5", "()->()", POSITIVE, both="torch.float_power(x, 1.5)")
ABOVE_ZERO = Domain(lower=1e-300)  # the angle of -0 is π
elementary.add("angle", "0.0 * x", "()->()", ABOVE_ZERO, both="torch.angle(x)")
elementary.add("nan_to_num", "x + 0.0", both="torch.nan_to_num(x)")
elementary.add("frac", "x - xp.trunc(x)", torch="torch.frac(x)", jax="x - jnp.trunc(x)")
elementary.add("clip", "xp.clip(x, -0.5, 0.75)", both="torch.clip(x, -0.5, 0.75)")

of_two = Family("functions of two numbers")
of_two.add_functions("maximum minimum logaddexp hypot atan2")
of_two.add("add", "x + y", "(),()->()", both="torch.add(x, y)")
of_two.add("subtract", "x - y", "(),()->()", torch="torch.sub(x, y)", jax="jnp.subtract(x, y)")
of_two.add("multiply", "x * y", "(),()->()", torch="torch.mul(x, y)", jax="jnp.multiply(x, y)")
of_two.add("divide", "x / y", "(),()->()", torch="torch.div(x, y)", jax="jnp.divide(x, y)")
of_two.add("power", "x**y", "(),()->()", POSITIVE, REAL, torch="torch.pow(x, y)", jax="jnp.power(x, y)")
of_two.add("power_of_any_base", "x**y", "(),()->()", REAL,
           Domain(-4.0, 4.0, special=(0.0, 1.0, 2.0, 3.0, -1.0, -2.0), active=False), torch="torch.pow(x, y)",
           jax="jnp.power(x, y)")  # fmt: skip
of_two.add("fmax", "xp.maximum(x, y)", "(),()->()", both="torch.fmax(x, y)")
of_two.add("fmin", "xp.minimum(x, y)", "(),()->()", both="torch.fmin(x, y)")
of_two.add("logaddexp2", f"xp.logaddexp(x * {LOG_2}, y * {LOG_2}) / {LOG_2}", "(),()->()",
           both="torch.logaddexp2(x, y)")  # fmt: skip
of_two.add("copysign", "xp.abs(x)", "(),()->()", REAL, Domain(lower=0.5, active=False), both="torch.copysign(x, y)")
of_two.add("lerp", "x + z * (y - x)", "(),(),()->()", torch="torch.lerp(x, y, z)", jax="x + z * (y - x)")
of_two.add("addcdiv", "x + 0.5 * y / z", "(),(),()->()", torch="torch.addcdiv(x, y, z, value=0.5)",
           jax="x + 0.5 * y / z")  # fmt: skip
of_two.add("addcmul", "x + 0.5 * y * z", "(),(),()->()", torch="torch.addcmul(x, y, z, value=0.5)",
           jax="x + 0.5 * y * z")  # fmt: skip
of_two.add("remainder", "x - xp.floor(x / y) * y", "(),()->()", Domain(0.6, 0.9), Domain(0.1, 0.5),
           both="torch.remainder(x, y)")  # fmt: skip
of_two.add("fmod", "x - xp.floor(x / y) * y", "(),()->()", Domain(0.6, 0.9), Domain(0.1, 0.5), both="torch.fmod(x, y)")
special = Family("special functions")
special.add_functions("erf erfc i0 i1 erfinv logit ndtr log_ndtr expit ndtri lgamma digamma gamma expi exp1 erfcx")
special.add("i0e", "xp.exp(-xp.abs(x)) * xp.i0(x)", both="torch.special.i0e(x)")
special.add("i1e", "xp.exp(-xp.abs(x)) * xp.i1(x)", both="torch.special.i1e(x)")
for order in (1, 2):
    special.add(f"polygamma_{order}", f"xp.polygamma({order}, x)", "()->()", POSITIVE,
                both=f"torch.special.polygamma({order}, x)", tape=f"adbench.tape.polygamma(x, {order})")  # fmt: skip
special.add("multigammaln", "xp.multigammaln(x, 3)", "()->()", Domain(lower=1.0),
            both="torch.special.multigammaln(x, 3)")  # fmt: skip
special.add("entr", "-xp.xlogy(x, x)", "()->()", POSITIVE, both="torch.special.entr(x)")
special.add_functions("xlogy xlog1py")
special.add("rel_entr", "xp.xlogy(x, x) - xp.xlogy(x, y)", "(),()->()", POSITIVE, POSITIVE,
            jax="jax.scipy.special.rel_entr(x, y)")  # fmt: skip
special.add("kl_div", "xp.xlogy(x, x) - xp.xlogy(x, y) - x + y", "(),()->()", POSITIVE, POSITIVE,
            jax="jax.scipy.special.kl_div(x, y)")  # fmt: skip
special.add_functions("betaln")
shape_parameter = Domain(0.0, 30.0, special=(0.5, 1.0, 3.0), active=False)
special.add("gammainc", "xp.gammainc(y, x)", "(),()->()", POSITIVE, shape_parameter,
            both="torch.special.gammainc(y, x)")  # fmt: skip
special.add("gammaincc", "xp.gammaincc(y, x)", "(),()->()", POSITIVE, shape_parameter,
            both="torch.special.gammaincc(y, x)")  # fmt: skip
special.add("betainc", "xp.betainc(y, z, x)", "(),(),()->()", UNIT, shape_parameter, shape_parameter,
            jax="jax.scipy.special.betainc(y, z, x)")  # fmt: skip
special.add("zeta", "xp.zeta(y, x)", "(),()->()", POSITIVE, Domain(1.5, 8.0, active=False),
            both="torch.special.zeta(y, x)")  # fmt: skip

activations = Family("activations")
SELU = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


activations.add("relu", "positive_part(xp, x)", both=F + "relu(x)")
activations.add("relu6", "xp.clip(x, 0.0, 6.0)", both=F + "relu6(x)")
activations.add("leaky_relu", "positive_part(xp, x) + 0.01 * negative_part(xp, x)", both=F + "leaky_relu(x)")
activations.add("elu", "positive_part(xp, x) + xp.expm1(negative_part(xp, x))", both=F + "elu(x)")
activations.add("celu", "positive_part(xp, x) + 2.0 * xp.expm1(negative_part(xp, x) / 2.0)",
                both=F + "celu(x, alpha=2.0)")  # fmt: skip
activations.add("selu", f"{SELU[1]} * (positive_part(xp, x) + {SELU[0]} * xp.expm1(negative_part(xp, x)))",
                both=F + "selu(x)")  # fmt: skip
activations.add("gelu", "x * xp.ndtr(x)", torch=F + "gelu(x)", jax="jax.nn.gelu(x, approximate=False)")
activations.add("gelu_by_tanh", f"x * xp.expit(2.0 * {math.sqrt(2.0 / math.pi)} * (x + 0.044715 * x**3))",
                torch=F + "gelu(x, approximate='tanh')", jax="jax.nn.gelu(x, approximate=True)")  # fmt: skip
activations.add("silu", "x * xp.expit(x)", both=F + "silu(x)")
activations.add("mish", "x * xp.tanh(xp.log1p_exp(x))", both=F + "mish(x)")
activations.add("sigmoid", "xp.expit(x)", torch="torch.sigmoid(x)", jax="jax.nn.sigmoid(x)")
activations.add("softplus", "xp.log1p_exp(x)", both=F + "softplus(x)")
activations.add("log_sigmoid", "-xp.log1p_exp(-x)", torch=F + "logsigmoid(x)", jax="jax.nn.log_sigmoid(x)")
activations.add("softsign", "x / (1.0 + xp.abs(x))", torch=F + "softsign(x)", jax="jax.nn.soft_sign(x)")
activations.add("hard_tanh", "xp.clip(x, -1.0, 1.0)", torch=F + "hardtanh(x)", jax="jax.nn.hard_tanh(x)")
activations.add("hard_sigmoid", "xp.clip(x + 3.0, 0.0, 6.0) / 6.0", torch=F + "hardsigmoid(x)",
                jax="jax.nn.hard_sigmoid(x)")  # fmt: skip
activations.add("hard_silu", "x * xp.clip(x + 3.0, 0.0, 6.0) / 6.0", torch=F + "hardswish(x)",
                jax="jax.nn.hard_silu(x)")  # fmt: skip
activations.add("tanhshrink", "x - xp.tanh(x)", torch=F + "tanhshrink(x)", jax="x - jnp.tanh(x)")
activations.add("softshrink", "x - xp.clip(x, -0.5, 0.5)", torch=F + "softshrink(x)", jax="x - jnp.clip(x, -0.5, 0.5)")
activations.add("squareplus", "(x + xp.sqrt(x * x + 4.0)) / 2.0", jax="jax.nn.squareplus(x)")
activations.add("log1mexp", "xp.log(-xp.expm1(-x))", "()->()", POSITIVE, jax="jax.nn.log1mexp(x)")
activations.add("prelu", "positive_part(xp, x) + y * negative_part(xp, x)", "(),()->()",
                torch="torch.where(x > 0, x, y * x)", jax="jax.nn.leaky_relu(x, y)")  # fmt: skip

NAMED = {operation.name for family in (elementary, of_two, special, activations) for operation in family}
special.add_functions(" ".join(name for name, row in FUNCTIONS.items() if row.is_examined and name not in NAMED))

FAMILIES = (elementary, of_two, special, activations)
