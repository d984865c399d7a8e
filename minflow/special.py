"""Special functions (`flow.special`), implemented in `core/functions/special.py` and `core/ops/special.py`."""

from .core.functions import (
    digamma as digamma,
    erf as erf,
    erfc as erfc,
    erfinv as erfinv,
    exp2 as exp2,
    expm1 as expm1,
    i0 as i0,
    igamma as _igamma,
    igammac as _igammac,
    lgamma as _lgamma,
    log1p as log1p,
    logit as logit,
    logsumexp as logsumexp,
    polygamma as polygamma,
    round as round,
    sigmoid as _sigmoid,
    sinc as sinc,
    xlogy as xlogy,
)
from .core.functions.special import multigammaln as multigammaln, ndtr as ndtr
from .core.messages.suggestions import name_hints as _name_hints
from .core.ops.binary import xlog1py as xlog1py
from .core.ops.polynomials import (
    chebyshev_polynomial_t as chebyshev_polynomial_t,
    chebyshev_polynomial_u as chebyshev_polynomial_u,
    chebyshev_polynomial_v as chebyshev_polynomial_v,
    chebyshev_polynomial_w as chebyshev_polynomial_w,
    hermite_polynomial_h as hermite_polynomial_h,
    hermite_polynomial_he as hermite_polynomial_he,
    laguerre_polynomial_l as laguerre_polynomial_l,
    legendre_polynomial_p as legendre_polynomial_p,
    shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w,
)
from .core.ops.special import (
    airy_ai as airy_ai,
    bessel_j0 as bessel_j0,
    bessel_j1 as bessel_j1,
    bessel_y0 as bessel_y0,
    bessel_y1 as bessel_y1,
    entr as entr,
    erfcx as erfcx,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
    log_ndtr as log_ndtr,
    modified_bessel_k0 as modified_bessel_k0,
    modified_bessel_k1 as modified_bessel_k1,
    ndtri as ndtri,
    scaled_modified_bessel_k0 as scaled_modified_bessel_k0,
    scaled_modified_bessel_k1 as scaled_modified_bessel_k1,
    spherical_bessel_j0 as spherical_bessel_j0,
    zeta as zeta,
)
from .nn.functional import log_softmax as log_softmax, softmax as softmax

expit, gammaln, psi, modified_bessel_i0, modified_bessel_i1 = _sigmoid, _lgamma, digamma, i0, i1
gammainc, gammaincc = _igamma, _igammac

__getattr__ = _name_hints("flow.special", globals())
