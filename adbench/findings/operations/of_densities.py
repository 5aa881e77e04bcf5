"""Logarithms of densities, by the libraries' own distributions."""

from __future__ import annotations

import math

from adbench.findings.operations.operation import POSITIVE, REAL, UNIT, Domain, Family

D = "torch.distributions."
S = "jax.scipy.stats."
LOG_2_PI = math.log(2.0 * math.pi)
SCALE = Domain(lower=0.0, special=(1.0,))
PAIR, THREE = "(),()->()", "(),(),()->()"
COUNT = Domain(lower=0.0, upper=9.0, special=(0.0, 1.0, 3.0), active=False)


def _log_prob(distribution: str, at: str = "x") -> str:
    """The logarithm of torch's density, without its checks of arguments."""
    return f"{D}{distribution.removesuffix(')')}, validate_args=False).log_prob({at})"


densities = Family("log densities")
densities.add("normal", f"-0.5 * ((x - y) / z) ** 2 - xp.log(z) - 0.5 * {LOG_2_PI}", THREE, REAL, REAL, SCALE,
              torch=_log_prob("Normal(y, z)"), jax=S + "norm.logpdf(x, y, z)")  # fmt: skip
densities.add("log_normal", f"-0.5 * ((xp.log(x) - y) / z) ** 2 - xp.log(z) - 0.5 * {LOG_2_PI} - xp.log(x)", THREE,
              POSITIVE, REAL, SCALE, torch=_log_prob("LogNormal(y, z)"))  # fmt: skip
densities.add("half_normal", f"-0.5 * (x / y) ** 2 - xp.log(y) - 0.5 * {LOG_2_PI} + {math.log(2.0)}", PAIR, POSITIVE,
              SCALE, torch=_log_prob("HalfNormal(y)"))  # fmt: skip
densities.add("cauchy", f"-{math.log(math.pi)} - xp.log(z) - xp.log1p(((x - y) / z) ** 2)", THREE, REAL, REAL, SCALE,
              torch=_log_prob("Cauchy(y, z)"), jax=S + "cauchy.logpdf(x, y, z)")  # fmt: skip
densities.add("student_t", f"xp.lgamma((y + 1.0) / 2.0) - xp.lgamma(y / 2.0) - 0.5 * xp.log(y * {math.pi}) - (y + 1.0) "
              "/ 2.0 * xp.log1p(x * x / y)", PAIR, REAL, SCALE, torch=_log_prob("StudentT(y)"),
              jax=S + "t.logpdf(x, y)")  # fmt: skip
densities.add("laplace", "-xp.abs(x - y) / z - xp.log(2.0 * z)", THREE, REAL, REAL, SCALE,
              torch=_log_prob("Laplace(y, z)"), jax=S + "laplace.logpdf(x, y, z)")  # fmt: skip
densities.add("logistic", "-x - 2.0 * xp.log1p_exp(-x)", jax=S + "logistic.logpdf(x)")
densities.add("gumbel", "-x - xp.exp(-x)", torch=_log_prob("Gumbel(torch.tensor(0.0), torch.tensor(1.0))"),
              jax=S + "gumbel_r.logpdf(x)")  # fmt: skip
densities.add("exponential", "xp.log(y) - x * y", PAIR, POSITIVE, SCALE, torch=_log_prob("Exponential(y)"),
              jax=S + "expon.logpdf(x, scale=1 / y)")  # fmt: skip
densities.add("gamma_density", "xp.xlogy(y - 1.0, x) - x - xp.lgamma(y)", PAIR, POSITIVE, SCALE,
              torch=_log_prob("Gamma(y, torch.tensor(1.0))"), jax=S + "gamma.logpdf(x, y)")  # fmt: skip
densities.add("inverse_gamma", "-xp.lgamma(y) - (y + 1.0) * xp.log(x) - 1.0 / x", PAIR, POSITIVE, SCALE,
              torch=_log_prob("InverseGamma(y, torch.tensor(1.0))"))  # fmt: skip
densities.add("chi2", f"xp.xlogy(y / 2.0 - 1.0, x) - x / 2.0 - xp.lgamma(y / 2.0) - y / 2.0 * {math.log(2.0)}", PAIR,
              POSITIVE, SCALE, torch=_log_prob("Chi2(y)"), jax=S + "chi2.logpdf(x, y)")  # fmt: skip
densities.add("beta_density", "xp.xlogy(y - 1.0, x) + xp.xlog1py(z - 1.0, -x) - xp.betaln(y, z)", THREE, UNIT, SCALE,
              SCALE, torch=_log_prob("Beta(y, z)"), jax=S + "beta.logpdf(x, y, z)")  # fmt: skip
densities.add("pareto", "xp.log(y) - (y + 1.0) * xp.log(x)", PAIR, Domain(lower=1.0), SCALE,
              torch=_log_prob("Pareto(torch.tensor(1.0), y)"), jax=S + "pareto.logpdf(x, y)")  # fmt: skip
densities.add("weibull", "xp.log(y) + (y - 1.0) * xp.log(x) - x**y", PAIR, POSITIVE, SCALE,
              torch=_log_prob("Weibull(torch.tensor(1.0), y)"))  # fmt: skip
densities.add("von_mises", f"y * xp.cos(x) - {math.log(2.0 * math.pi)} - xp.log(xp.i0(y))", PAIR, REAL,
              Domain(lower=0.01, upper=300.0), torch=_log_prob("VonMises(torch.tensor(0.0), y)"),
              jax=S + "vonmises.logpdf(x, y)")  # fmt: skip
densities.add("poisson", "xp.xlogy(xp.floor(x), y) - y - xp.lgamma(xp.floor(x) + 1.0)", PAIR, COUNT, SCALE,
              torch=_log_prob("Poisson(y)", "torch.floor(x)"), jax=S + "poisson.logpmf(jnp.floor(x), y)")  # fmt: skip
densities.add("bernoulli_logits", "-xp.log1p_exp(-x)", torch=_log_prob("Bernoulli(logits=x)", "torch.tensor(1.0)"))
densities.add("bernoulli", "xp.log(x)", "()->()", UNIT, torch=_log_prob("Bernoulli(x)", "torch.tensor(1.0)"),
              jax=S + "bernoulli.logpmf(1, x)")  # fmt: skip
densities.add("geometric", "3.0 * xp.log1p(-x) + xp.log(x)", "()->()", UNIT,
              torch=_log_prob("Geometric(x)", "torch.tensor(3.0)"), jax=S + "geom.logpmf(4, x)")  # fmt: skip
densities.add("binomial", f"{math.log(10.0)} + 2.0 * xp.log(x) + 3.0 * xp.log1p(-x)", "()->()", UNIT,
              torch=_log_prob("Binomial(5, x)", "torch.tensor(2.0)"), jax=S + "binom.logpmf(2, 5, x)")  # fmt: skip
densities.add("negative_binomial", f"{math.log(10.0)} + 3.0 * xp.log1p(-x) + 3.0 * xp.log(x)", "()->()", UNIT,
              torch=_log_prob("NegativeBinomial(3, x)", "torch.tensor(3.0)"),
              jax=S + "nbinom.logpmf(3, 3, 1 - x)")  # fmt: skip
densities.add("dirichlet",
              "xp.lgamma(xp.sum(x)) - xp.sum(xp.lgamma(x)) + xp.sum((x - 1.0) * xp.log(xp.asarray([0.2, 0.3, 0.5])))",
              "(3)->()", SCALE, batch=False, torch=_log_prob("Dirichlet(x)", "torch.tensor([0.2, 0.3, 0.5])"),
              jax=S + "dirichlet.logpdf(jnp.array([0.2, 0.3, 0.5]), x)")  # fmt: skip
densities.add("multivariate_normal", "-0.5 * (xp.sum(x * xp.linalg.solve( (y + xp.matrix_transpose(y)) / 2.0, "
              "xp.expand_dims(x, axis=-1))[..., 0]) + xp.linalg.slogdet((y + xp.matrix_transpose(y)) / 2.0)[1] + 3.0 "
              f"* {LOG_2_PI})", "(3),(3,3)->()", REAL, Domain(kind="definite"),
              torch=_log_prob("MultivariateNormal(torch.zeros(3), (y + y.mT) / 2)"),
              jax=S + "multivariate_normal.logpdf(x, jnp.zeros(3), (y + y.T) / 2)", batch=False)  # fmt: skip
densities.add("normal_log_cdf", "xp.log_ndtr(x)", jax=S + "norm.logcdf(x)")
densities.add("normal_cdf", "xp.ndtr(x)", jax=S + "norm.cdf(x)",
              torch=D + "Normal(torch.tensor(0.0), torch.tensor(1.0)).cdf(x)")  # fmt: skip
densities.add("normal_log_survival", "xp.log_ndtr(-x)", jax=S + "norm.logsf(x)")
densities.add("normal_quantile", "xp.ndtri(x)", "()->()", UNIT, jax=S + "norm.ppf(x)",
              torch=D + "Normal(torch.tensor(0.0), torch.tensor(1.0), validate_args=False).icdf(x)")  # fmt: skip
densities.add("logistic_cdf", "xp.expit(x)", jax=S + "logistic.cdf(x)")
densities.add("kl_of_normals", "-xp.log(x / y) + 0.5 * ((x / y) ** 2 - 1.0)", PAIR, SCALE, SCALE,
              torch=D + "kl_divergence(torch.distributions.Normal(torch.tensor(0.0), x), "
              "torch.distributions.Normal(torch.tensor(0.0), y))")  # fmt: skip
densities.add("categorical_entropy", "-xp.sum(xp.xlogy(x / xp.sum(x), x / xp.sum(x)))", "(3)->()", POSITIVE,
              batch=False, torch=D + "Categorical(x, validate_args=False).entropy()")  # fmt: skip

FAMILIES = (densities,)
