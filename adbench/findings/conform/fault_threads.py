"""Where a fault is discussed: a thread of the library's, or that of a trap with the same function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from adbench.findings.conform.judgement import Fault
from adbench.model.backend import KnownBug, known_bug

TRAPS: Mapping[str, tuple[str, ...]] = {
    "atan2": ("trap_atan2_small", "trap_atan2_large", "trap_square_of_angle"),
    "cumprod": ("trap_cumulative_product_zero",),
    "det": ("trap_det_of_multiple_of_identity", "trap_det_singular", "trap_det_rank_zero", "log_determinant"),
    "eigvalsh": ("trap_equal_eigenvalues", "trap_large_eigenvalues"),
    "eigh_values": ("trap_equal_eigenvalues", "trap_large_eigenvalues"),
    "half_square_of_norm": ("trap_half_square_norm",),
    "log_abs_det": ("log_determinant", "trap_log_abs_det_negative"),
    "logaddexp": ("trap_log_add_exp_far", "trap_log_add_exp_equal_large"),
    "logdet": ("log_determinant",),
    "power": ("trap_power_zero", "trap_power_mixed", "trap_zero_to_a_power", "trap_power_both"),
    "quadratic_form": ("trap_solve_unsymmetric",),
    "sinc": ("trap_second_derivative_of_sinc", "trap_sinc_near_zero"),
    "solve": ("trap_solve_unsymmetric",),
    "solve_vector": ("trap_solve_unsymmetric",),
    "scipy_solve": ("trap_solve_unsymmetric",),
    "spectral_norm": ("trap_square_of_singular_values", "trap_equal_singular_values"),
    "svdvals": ("trap_equal_singular_values", "trap_large_singular_values", "trap_square_of_singular_values"),
    "svd_values": ("trap_equal_singular_values", "trap_large_singular_values", "trap_square_of_singular_values"),
}
"""Operation -> cases with the same function, where a fault of the operation is the case's fault.

Norms, hypot and std are not here: their cases are at 0, where the operation alone has no derivative.
"""


THREADS: Mapping[str, Mapping[str, str]] = {
    "jax": {
        "acosh": "jax-ml/jax#40634",
        "addcdiv gradient jvp": "as tenstorrent/tt-metal#52611",
        "asinh": "jax-ml/jax#40634",
        "atan2 gradient:wrong jvp:wrong": "as pytorch/pytorch#193040",
        "atanh h*": "as jax-ml/jax#39801",
        "attention": "as huggingface/transformers#48459",
        "bernoulli gradient:nan jvp:nan h*:nan": "as jax-ml/jax#15709",
        "betainc gradient:nan jvp:nan": "as jax-ml/jax#7645",
        "betaln h*:wrong": "jax-ml/jax#34353",
        "binary_cross_entropy_with_logits h*:wrong": "as jax-ml/jax#40387",
        "cdist gradient jvp h*": "as jax-ml/jax#3058",
        "cdist value": "as pytorch/pytorch#193006",
        "celu gradient:wrong jvp:wrong h*:wrong third_order:wrong": "as jax-ml/jax#39795",
        "det value": "jax-ml/jax#39905",
        "dist value": "as pytorch/pytorch#193006",
        "divide gradient:wrong jvp:wrong": "as pytorch/pytorch#43414",
        "elu gradient:wrong jvp:wrong h*:wrong third_order:wrong": "jax-ml/jax#39795",
        "exp2": "jax-ml/jax#40382",
        "expit gradient:wrong jvp:wrong h*:wrong third_order:wrong": "jax-ml/jax#40342",
        "expm1": "jax-ml/jax#39794",
        "gammainc gradient jvp": "as jobovy/galpy#1381",
        "gammaincc gradient jvp": "as jobovy/galpy#1381",
        "gelu_by_tanh value": "as tenstorrent/tt-metal#56517",
        "hypot h*:wrong": "as tensorflow/tensorflow#127697",
        "i0 gradient:digits jvp:digits": "jax-ml/jax#39797",
        "i0 gradient:wrong jvp:wrong": "jax-ml/jax#40628",
        "i0 h*:wrong": "jax-ml/jax#40640",
        "i1 h*:wrong third_order:wrong": "jax-ml/jax#40640",
        "log_ndtr h*:wrong h*:digits": "jax-ml/jax#25564",
        "log_sigmoid h*": "jax-ml/jax#40383",
        "log_softmax gradient jvp": "jax-ml/jax#40384",
        "logaddexp gradient:digits jvp:digits jvp:wrong h*:wrong": "as stan-dev/math#1679",
        "logaddexp2 jvp:wrong h*:wrong": "as stan-dev/math#1679",
        "logistic h*": "as jax-ml/jax#40387",
        "logistic_cdf third_order": "as jax-ml/jax#40342",
        "logsumexp_weighted gradient:wrong jvp:wrong h*:wrong": "jax-ml/jax#22398",
        "lp_pool1d gradient jvp h*": "as pytorch/pytorch#6765",
        "normal_log_cdf h*:wrong h*:digits": "jax-ml/jax#25564",
        "normal_log_survival h*": "as jax-ml/jax#25564",
        "power_2.0 third_order": "as HIPS/autograd#116",
        "power_of_any_base": "jax-ml/jax#20574",
        "power_spectrum h*": "as pytorch/functorch#1097",
        "selu gradient:wrong jvp:wrong h*:wrong third_order:wrong": "jax-ml/jax#39796",
        "sigmoid gradient:wrong jvp:wrong h*:wrong third_order:wrong": "jax-ml/jax#40342",
        "silu gradient:wrong jvp:wrong": "jax-ml/jax#39798",
        "silu h*:wrong third_order:wrong": "as pytorch/pytorch#195682",
        "soft_margin_loss h*": "as jax-ml/jax#40387",
        "softmax gradient jvp": "jax-ml/jax#40386",
        "softplus h*": "jax-ml/jax#40387",
        "std gradient h*": "jax-ml/jax#11716",
        "std value": "as pytorch/pytorch#193006",
        "tanh gradient": "jax-ml/jax#40343",
        "tanh h*": "jax-ml/jax#39801",
        "tanh third_order": "as pytorch/pytorch#195527",
        "tanhshrink third_order": "as pytorch/pytorch#195527",
        "trace_of_eigenvalue_exponentials h*:nan": "jax-ml/jax#21896",
        "vander": "as tensorflow/tensorflow#127227",
        "vector_norm value": "as pytorch/pytorch#193006",
        "vector_norm_3 value": "as pytorch/pytorch#193006",
        "vector_norm_4 value": "as pytorch/pytorch#193006",
    },
    "torch": {
        "acosh": "as jax-ml/jax#40634",
        "addcdiv gradient jvp": "as tenstorrent/tt-metal#52611",
        "asinh": "as jax-ml/jax#40634",
        "atan2 gradient:wrong jvp:wrong": "pytorch/pytorch#193040",
        "attention hvp_reverse_over_forward": "as pytorch/pytorch#162350",
        "batch_norm hvp_*_over_forward": "pytorch/pytorch#196699",
        "bernoulli gradient:wrong jvp:wrong h*:wrong": "pytorch/pytorch#191704",
        "bernoulli_logits gradient": "as pytorch/pytorch#195677",
        "bernoulli_logits h*": "as pytorch/pytorch#195530",
        "beta_density h*:digits": "pytorch/pytorch#4399",
        "binary_cross_entropy_with_logits h*:wrong": "as pytorch/pytorch#195530",
        "binomial h*": "pytorch/pytorch#20679",
        "cauchy value": "as scipy/scipy#21347",
        "cdist value": "as pytorch/pytorch#193006",
        "chi2 h*:digits": "pytorch/pytorch#4399",
        "cholesky_inverse jvp hvp_reverse_over_forward hvp_forward_over_reverse": "pytorch/pytorch#196682",
        "cond h*": "as pytorch/pytorch#194705",
        "corrcoef value": "as scipy/scipy#8980",
        "cosine_similarity value": "as pytorch/pytorch#51912",
        "cross_entropy hvp_reverse_over_forward": "pytorch/pytorch#162350",
        "cross_entropy_of_class hvp_reverse_over_forward": "pytorch/pytorch#162350",
        "cumprod": "pytorch/pytorch#196701",
        "digamma gradient jvp": "pytorch/pytorch#4399",
        "dirichlet h*:digits": "pytorch/pytorch#4399",
        "dist value": "as pytorch/pytorch#193006",
        "expit third_order": "pytorch/pytorch#195527",
        "expm1 third_order": "pytorch/pytorch#192406",
        "frobenius_norm value": "pytorch/pytorch#193006",
        "gamma_density h*:digits": "pytorch/pytorch#4399",
        "gammainc gradient": "as tensorflow/tensorflow#123578",
        "gammaincc gradient": "as tensorflow/tensorflow#123578",
        "gaussian_nll_loss value": "as pytorch/pytorch#12269",
        "gelu value": "pytorch/pytorch#187806",
        "group_norm value": "pytorch/pytorch#178123",
        "half_normal value": "as pytorch/pytorch#12269",
        "i1 third_order": "as jax-ml/jax#40640",
        "instance_norm hvp_*_over_forward": "as pytorch/pytorch#196699",
        "inverse_gamma h*:digits": "as pytorch/pytorch#4399",
        "kl_of_normals": "as pytorch/pytorch#68807",
        "label_smoothing hvp_reverse_over_forward": "pytorch/pytorch#162350",
        "layer_norm hvp_*_over_forward": "pytorch/pytorch#196700",
        "layer_norm_affine hvp_*_over_forward": "pytorch/pytorch#196700",
        "layer_norm_without_epsilon hvp_*_over_forward": "pytorch/pytorch#196700",
        "lgamma h*": "pytorch/pytorch#4399",
        "log_ndtr h*:wrong h*:digits": "as jax-ml/jax#25564",
        "log_normal value": "as pytorch/pytorch#12269",
        "log_sigmoid h*": "pytorch/pytorch#195530",
        "log_softmax gradient": "pytorch/pytorch#195680",
        "log_softmax hvp_reverse_over_forward": "pytorch/pytorch#162350",
        "logaddexp h*": "pytorch/pytorch#196704",
        "logaddexp2 h*": "pytorch/pytorch#196704",
        "logcumsumexp gradient:wrong": "as stan-dev/math#1679",
        "logcumsumexp hvp_reverse_over_forward:raises": "as pytorch/pytorch#162350",
        "logcumsumexp jvp hvp_*_over_forward": "pytorch/pytorch#196705",
        "logsumexp hvp_reverse_over_forward": "pytorch/pytorch#162350",
        "logsumexp_weighted gradient:nan jvp:nan h*:nan": "as jax-ml/jax#22398",
        "logsumexp_weighted hvp_reverse_over_forward": "as pytorch/pytorch#162350",
        "lp_pool1d jvp": "pytorch/pytorch#6765",
        "lp_pool1d value": "as pytorch/pytorch#193006",
        "matrix_norm_1 hvp_reverse_over_forward": "as pytorch/pytorch#149804",
        "multigammaln h*": "pytorch/pytorch#4399",
        "ndtr value": "pytorch/pytorch#192295",
        "norm_of_axis value": "as pytorch/pytorch#193006",
        "normal value": "pytorch/pytorch#12269",
        "normal_cdf value": "as pytorch/pytorch#192295",
        "normal_quantile": "as chainer/chainer#5242",
        "nuclear_norm h*": "as pytorch/pytorch#194705",
        "pairwise_distance value": "as pytorch/pytorch#193006",
        "polygamma_1 value": "pytorch/pytorch#4399",
        "polygamma_2 value gradient jvp": "as tenstorrent/tt-metal#55105",
        "power h*:wrong h*:digits": "as jax-ml/jax#12033",
        "power_of_any_base h*": "pytorch/pytorch#95180",
        "power_spectrum h*": "as pytorch/functorch#1097",
        "prod h*": "pytorch/pytorch#193012",
        "scatter_multiply hvp_reverse_over_reverse": "as pytorch/pytorch#193012",
        "scatter_multiply jvp hvp_*forward*": "pytorch/pytorch#196702",
        "segment_prod hvp_reverse_over_reverse": "as pytorch/pytorch#193012",
        "segment_prod jvp hvp_*forward*": "pytorch/pytorch#196702",
        "sigmoid gradient": "pytorch/pytorch#195681",
        "sigmoid third_order": "pytorch/pytorch#195527",
        "silu h*:wrong h*:digits third_order:wrong": "pytorch/pytorch#195682",
        "soft_margin_loss value:nan": "as tracel-ai/burn#5373",
        "softmax gradient": "pytorch/pytorch#195684",
        "softmax hvp_reverse_over_forward": "pytorch/pytorch#162350",
        "softmin hvp_reverse_over_forward": "pytorch/pytorch#162350",
        "softplus h*": "as jax-ml/jax#40387",
        "std value": "as pytorch/pytorch#193006",
        "student_t h*:digits": "as pytorch/pytorch#4399",
        "tanh third_order": "pytorch/pytorch#195527",
        "tanhshrink third_order": "pytorch/pytorch#195527",
        "trace_of_eigenvalue_exponentials h*": "as jax-ml/jax#21896",
        "triplet_margin_loss value": "as pytorch/pytorch#193006",
        "vander": "pytorch/pytorch#60197",
        "vector_norm value": "pytorch/pytorch#193006",
        "vector_norm_1 hvp_reverse_over_forward": "as pytorch/pytorch#149804",
        "vector_norm_3 value": "as pytorch/pytorch#193006",
        "vector_norm_4 value": "as pytorch/pytorch#193006",
    },
}
"""Library -> operation and operators -> a thread about a fault that no trap covers.

An operator can end with a kind of fault, as "h*:nan" does: many threads are about the tail of a function, or about 0,
and say nothing of overflow elsewhere. A thread is here only if its text describes this function at this kind of input;
one about another library or another function with the same fault begins with "as".
"""


def with_thread(fault: Fault, known: Sequence[KnownBug]) -> Fault:
    """The fault with the thread of its function and operator, from here or from the backend's known faults, if any."""
    own = [
        KnownBug(operation, tuple(operators), "wrong", "", thread)
        for key, thread in THREADS.get(fault.library.partition("_")[0], {}).items()
        for operation, *operators in (key.split(),)
    ]
    for operator in (f"{fault.operator}:{fault.kind}", fault.operator):
        if (here := known_bug(own, fault.operation, operator)) is not None:
            return replace(fault, thread=here.thread)
    for trap in TRAPS.get(fault.operation, ()):
        bug = known_bug(known, trap, fault.operator)
        if bug is not None and bug.thread:
            return replace(fault, thread=bug.thread)
    return fault
