"""Sites and local rules: from a row's marginal to the site that stands in for its likelihood.

A rule is all that the engine knows of an approximation: the site that it proposes, and what its
evidence adds to a gradient. `log_scale` is log Z̃ of one copy of the *current* site: with it the
evidence is stationary in the sites, so that an error ε in them changes it by ε² only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penchant.errors import DataError
from penchant.likelihoods import Gaussian, Likelihood, Outcomes
from penchant.numerics.threads import for_row_blocks
from penchant.numerics.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Sites:
    """One Gaussian exp(−½ τ g² + ν g) a row and copy, in place of the likelihood.

    Sites are one-dimensional and in natural parameters: the two-dimensional site covariance of
    paper 000 Eq. 12 has rank one and no inverse. A row of count c carries c equal sites.
    """

    tau: FloatArray
    nu: FloatArray

    @classmethod
    def zeros(cls, m: int) -> "Sites":
        """Return sites without information: the posterior is the prior."""
        return cls(np.zeros(m), np.zeros(m))

    def towards(self, tau: FloatArray, nu: FloatArray, step: float) -> "Sites":
        """Return the sites a share `step` of the way to the proposed ones (damping)."""
        if step == 1.0:
            return Sites(tau, nu)
        return Sites(self.tau + step * (tau - self.tau), self.nu + step * (nu - self.nu))

    def part(self, rows: slice | IntArray) -> "Sites":
        """Return the sites of some rows."""
        return Sites(self.tau[rows], self.nu[rows])


class Proposal(NamedTuple):
    """The sites that a rule proposes, one a row; `valid` is False where it has none."""

    tau: FloatArray
    nu: FloatArray
    log_scale: FloatArray
    valid: BoolArray | None = None


Marginals = tuple[FloatArray, FloatArray]
"""Means and variances of the rows' g, (m,) each."""
Propose = Callable[[FloatArray, FloatArray, Sites, Likelihood, Outcomes], Proposal]
BLOCK = 2**14
"""Rows that a rule works on at once: temporaries stay in cache, and blocks go to all threads."""


class Rule(NamedTuple):
    """An approximation; one that is added to `RULES` serves every model.

    propose: `(mean, var, sites, likelihood, outcomes)` → the next sites.
    mean_slopes: `(mean, var, likelihood, outcomes)` → (m,) slope of log Z in a row's mean where the
    sites follow the mean; None where the evidence is stationary in the sites.
    parameter_slopes: `(mean, var, sites, likelihood, outcomes)` → (q, m) ∂ log Z / ∂ the
    likelihood's parameters, row by row; zeros keep the parameters as they are.
    """

    propose: Propose
    mean_slopes: Callable[[FloatArray, FloatArray, Likelihood, Outcomes], FloatArray] | None
    parameter_slopes: Callable[[FloatArray, FloatArray, Sites, Likelihood, Outcomes], FloatArray]


class Cavity(NamedTuple):
    """Marginals of g with one copy of the row's own site removed (paper 000 Eq. 10)."""

    tau: FloatArray
    nu: FloatArray
    valid: BoolArray

    @property
    def mean(self) -> FloatArray:
        """(m,) cavity means."""
        return self.nu / self.tau

    @property
    def var(self) -> FloatArray:
        """(m,) cavity variances."""
        return 1.0 / self.tau


def cavity(
    mean: FloatArray, var: FloatArray, sites: Sites, power: FloatArray | None = None
) -> Cavity:
    """Divide one site copy out of the marginal; invalid where no proper Gaussian is left.

    power: `Outcomes.power`, the share of a copy that a row of count below one has.

    Invalid cavities (possible only when a likelihood is not log-concave) are replaced by the
    marginal itself, so that every number stays finite; the loop keeps those sites.
    """
    precision, share = 1.0 / var, 1.0 if power is None else power
    tau, nu = precision - share * sites.tau, mean * precision - share * sites.nu
    valid = tau > 1e-10 * precision
    if not valid.all():
        tau, nu = np.where(valid, tau, precision), np.where(valid, nu, mean * precision)
    return Cavity(tau, nu, valid)


def ep(
    mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> Proposal:
    """Expectation propagation: match the moments of cavity × likelihood (paper 000 Eqs. 9–12)."""
    power, share = outcomes.power, 1.0 if outcomes.power is None else outcomes.power
    cav = cavity(mean, var, sites, power)
    cav_mean, cav_var = cav.mean, cav.var
    log_z, d1, d2 = likelihood.tilted(cav_mean, cav_var, outcomes)
    if power is not None:
        few = np.flatnonzero(power < 1.0)
        log_z[few], d1[few], d2[few] = likelihood.tilted_power(
            power[few], cav_mean[few], cav_var[few], outcomes.part(few)
        )
    # the copies together have precision d2/(1 − v d2); below is that of one copy
    shrink = 1.0 - cav_var * (share * d2)
    with np.errstate(divide="ignore"):  # the loop raises where a site is not finite
        tau = d2 / shrink
        nu = (d1 + cav_mean * d2) / shrink
    # the cavity times the current site is the marginal: (ν₋+ν)²/(τ₋+τ) = mean²/var
    spread, fit = 0.5 * np.log(var * cav.tau), 0.5 * (mean**2 / var - cav.nu * cav_mean)
    log_scale = log_z - spread / share - fit / share
    return Proposal(tau, nu, log_scale, None if cav.valid.all() else cav.valid)


def laplace(
    mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> Proposal:
    """Laplace: second-order expansion of the log likelihood at the current mean (Newton)."""
    value, d1, d2, _ = likelihood.log_prob(mean, outcomes)
    tau = -d2
    nu = d1 + tau * mean
    return Proposal(tau, nu, value - (sites.nu - 0.5 * sites.tau * mean) * mean)


def variational(
    mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> Proposal:
    """Gaussian variational bound: natural-gradient step on E_q[log p]."""
    value, d_mean, d_var = likelihood.expected(mean, var, outcomes)
    tau = -2.0 * d_var
    nu = d_mean + tau * mean
    return Proposal(tau, nu, value - (sites.nu * mean - 0.5 * sites.tau * (mean**2 + var)))


def exact(
    mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> Proposal:
    """The Gaussian likelihood is its own site."""
    if not isinstance(likelihood, Gaussian) or outcomes.margin is None:
        raise DataError(
            f"inference='exact' got {likelihood!r}: it needs likelihood='gaussian' on score "
            "differences; use inference='ep' for wins and losses"
        )
    tau = np.full_like(mean, 1.0 / likelihood.noise)
    value = likelihood.log_prob(np.zeros_like(mean), outcomes).value
    return Proposal(tau, likelihood.margin(outcomes) * tau, value)


def tilted_slopes(
    mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> FloatArray:
    """Slopes of the tilted normalisers alone: EP's evidence is stationary in the cavities."""
    power = outcomes.power
    cav = cavity(mean, var, sites, power)
    gradient = likelihood.tilted_gradient(cav.mean, cav.var, outcomes)
    if power is not None and len(gradient):
        few = np.flatnonzero(power < 1.0)
        gradient[:, few] = likelihood.tilted_power_gradient(
            power[few], cav.mean[few], cav.var[few], outcomes.part(few)
        )
    return gradient


def mode_slopes(
    mean: FloatArray, var: FloatArray, likelihood: Likelihood, outcomes: Outcomes
) -> FloatArray:
    """½ v d³: Laplace's sites follow the mode, and log|B| with them."""
    return 0.5 * var * likelihood.log_prob(mean, outcomes).d3


def no_slopes(
    mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> FloatArray:
    """Zeros: the likelihood's parameters are not learned."""
    return np.zeros((len(likelihood.theta), len(mean)))


def blockwise(propose: Propose) -> Propose:
    """Return the same rule, on many rows a block at a time."""

    def blocked(
        mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
    ) -> Proposal:
        m = len(mean)
        if m <= 2 * BLOCK:
            return propose(mean, var, sites, likelihood, outcomes)
        found, valid = np.empty((3, m)), np.ones(m, dtype=bool)

        def work(rows: slice) -> None:
            own = sites.part(rows)
            *numbers, part = propose(mean[rows], var[rows], own, likelihood, outcomes.part(rows))
            found[:, rows] = numbers
            valid[rows] = True if part is None else part

        for_row_blocks(work, m, BLOCK)
        tau, nu, log_scale = found
        return Proposal(tau, nu, log_scale, None if valid.all() else valid)

    return blocked


# Rows of single pairs and, after them, edges of choices. The sites of choices are Laplace's under
# every rule: the moments of a softmax under a Gaussian have no closed form.


def propose(
    rule: Rule, marginals: Marginals, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> Proposal:
    """Propose sites: of single pairs by the rule, of choices by Laplace at the current means."""
    cliques = outcomes.cliques
    if cliques is None:
        return rule.propose(*marginals, sites, likelihood, outcomes)
    n, (mean, var) = len(marginals[0]) - cliques.n_edges, marginals
    of_pairs, here = outcomes._replace(cliques=None), sites.part(slice(n))
    pairs = rule.propose(mean[:n], var[:n], here, likelihood, of_pairs)
    g, old = mean[n:], sites.part(slice(n, None))
    tau, nu, value = cliques.sites(g, likelihood.choice_scale or 1.0)
    return Proposal(
        np.append(pairs.tau, tau),
        np.append(pairs.nu, nu),
        np.append(pairs.log_scale, value - (old.nu - 0.5 * old.tau * g) * g),
        None if pairs.valid is None else np.append(pairs.valid, np.ones(len(g), dtype=bool)),
    )


def mean_slopes(
    rule: Rule, marginals: Marginals, likelihood: Likelihood, outcomes: Outcomes
) -> FloatArray | None:
    """(m,) slopes of log Z in the rows' means where sites follow the means; None where none do.

    Beside choices EP's sites of pairs are taken as fixed: only the change of variances is left out.
    """
    slopes, cliques, (mean, var) = rule.mean_slopes, outcomes.cliques, marginals
    if cliques is None:
        return None if slopes is None else slopes(mean, var, likelihood, outcomes)
    n, of_pairs = len(mean) - cliques.n_edges, outcomes._replace(cliques=None)
    pairs = np.zeros(n) if slopes is None else slopes(mean[:n], var[:n], likelihood, of_pairs)
    return np.append(pairs, cliques.drift(mean[n:], var[n:], likelihood.choice_scale or 1.0))


def parameter_slopes(
    rule: Rule, marginals: Marginals, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> FloatArray:
    """(q, m) ∂ log Z / ∂ the likelihood's parameters; choices depend on none of them."""
    if outcomes.cliques is None:
        return rule.parameter_slopes(*marginals, sites, likelihood, outcomes)
    n, (mean, var) = len(marginals[0]) - outcomes.cliques.n_edges, marginals
    of_pairs, here = outcomes._replace(cliques=None), sites.part(slice(n))
    pairs = rule.parameter_slopes(mean[:n], var[:n], here, likelihood, of_pairs)
    return np.pad(pairs, ((0, 0), (0, outcomes.cliques.n_edges)))


RULES: dict[str, Rule] = {
    "ep": Rule(blockwise(ep), None, tilted_slopes),
    "laplace": Rule(blockwise(laplace), mode_slopes, no_slopes),
    "variational": Rule(blockwise(variational), None, no_slopes),
    "exact": Rule(exact, None, tilted_slopes),
}
