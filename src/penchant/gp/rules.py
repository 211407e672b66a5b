"""Local rules: from an edge's marginal to the site that should stand in for its likelihood.

A rule is everything that the rest must know of an approximation: what site it wants, and what
its evidence adds to a gradient. The loop does the rest. `log_scale` is log Z̃ of one copy of the
*current* site: with it the evidence is stationary in the sites, so an error ε in them costs it
only ε².
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from penchant.errors import DataError
from penchant.gp.sites import Sites
from penchant.likelihoods import Gaussian, Likelihood, Outcomes
from penchant.numerics.threads import for_row_blocks
from penchant.numerics.types import BoolArray, FloatArray


class Proposal(NamedTuple):
    """Sites that a rule wants next, one per edge; `valid` is False where it has none."""

    tau: FloatArray
    nu: FloatArray
    log_scale: FloatArray
    valid: BoolArray | None = None


Marginals = tuple[FloatArray, FloatArray]
"""Means and variances of the edges' differences, (m,) each."""


Propose = Callable[[FloatArray, FloatArray, Sites, Likelihood, Outcomes], Proposal]
FEW, BLOCK = 2**15, 2**14
"""Edges that a rule works on at once, and above that the size of its blocks: their temporaries
stay in cache, which saves a third."""


class Rule(NamedTuple):
    """An approximation, whole; one that is added to `RULES` serves every model.

    propose: `(mean, var, sites, likelihood, outcomes)` → the sites wanted next.
    drift: `(mean, var, likelihood, outcomes)` → (m,), how log Z changes with an edge's mean where
    the sites follow it; None where the evidence is stationary in the sites.
    slopes: `(mean, var, sites, likelihood, outcomes)` → (q, m), ∂ log Z / ∂ the likelihood's
    parameters, edge by edge; zeros hold them where they are.
    """

    propose: Propose
    drift: Callable[[FloatArray, FloatArray, Likelihood, Outcomes], FloatArray] | None
    slopes: Callable[[FloatArray, FloatArray, Sites, Likelihood, Outcomes], FloatArray]


class Cavity(NamedTuple):
    """Marginals of g with one copy of the edge's own site removed (paper 000 Eq. 10).

    Of an edge whose count c is below one all of it is removed: c copies.
    """

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

    power: `Outcomes.power`, how much of a copy there is.

    Invalid cavities (possible only when a likelihood is not log-concave) are replaced by the
    marginal itself, so that every number stays finite; the loop holds those sites still.
    """
    precision = 1.0 / var
    tau, nu = precision - _times(power, sites.tau), mean * precision - _times(power, sites.nu)
    valid = tau > 1e-10 * precision
    if not valid.all():
        tau, nu = np.where(valid, tau, precision), np.where(valid, nu, mean * precision)
    return Cavity(tau, nu, valid)


def ep(
    mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> Proposal:
    """Expectation propagation: match the moments of cavity × likelihood (paper 000 Eqs. 9–12)."""
    power = outcomes.power
    cav = cavity(mean, var, sites, power)
    cav_mean, cav_var = cav.mean, cav.var
    log_z, d1, d2 = likelihood.tilted(cav_mean, cav_var, outcomes)
    if power is not None:
        few = np.flatnonzero(power < 1.0)
        log_z[few], d1[few], d2[few] = likelihood.tilted_power(
            power[few], cav_mean[few], cav_var[few], outcomes.part(few)
        )
    # the new sites together are d2/(1 − v d2) of the tilted density; below, each is of one copy
    shrink = 1.0 - cav_var * _times(power, d2)
    with np.errstate(divide="ignore"):  # the loop refuses sites that are not finite
        tau = d2 / shrink
        nu = (d1 + cav_mean * d2) / shrink
    # the cavity times the current site is the marginal: (ν₋+ν)²/(τ₋+τ) = mean²/var
    spread, pull = 0.5 * np.log(var * cav.tau), 0.5 * (mean**2 / var - cav.nu * cav_mean)
    if power is not None:
        spread, pull = spread / power, pull / power
    return Proposal(tau, nu, log_z - spread - pull, None if cav.valid.all() else cav.valid)


def _times(power: FloatArray | None, x: FloatArray) -> FloatArray:
    return x if power is None else power * x


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
    """EP's evidence is stationary in the cavities, so only the tilted normalisers count."""
    power = outcomes.power
    cav = cavity(mean, var, sites, power)
    gradient = likelihood.tilted_gradient(cav.mean, cav.var, outcomes)
    if power is not None and len(gradient):
        few = np.flatnonzero(power < 1.0)
        gradient[:, few] = likelihood.tilted_power_gradient(
            power[few], cav.mean[few], cav.var[few], outcomes.part(few)
        )
    return gradient


def mode_drift(
    mean: FloatArray, var: FloatArray, likelihood: Likelihood, outcomes: Outcomes
) -> FloatArray:
    """Laplace sites sit at the mode, which moves with the prior and takes log|B| along."""
    drift: FloatArray = 0.5 * var * likelihood.log_prob(mean, outcomes).d3
    return drift


def no_slopes(
    mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> FloatArray:
    """The likelihood's parameters stay as given."""
    return np.zeros((len(likelihood.theta), len(mean)))


def blockwise(propose: Propose) -> Propose:
    """The same rule, on many edges a block at a time."""

    def blocked(
        mean: FloatArray, var: FloatArray, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
    ) -> Proposal:
        m = len(mean)
        if m <= FEW:
            return propose(mean, var, sites, likelihood, outcomes)
        tau, nu, log_scale = np.empty((3, m))
        valid = np.ones(m, dtype=bool)

        def work(rows: slice) -> None:
            own, outcome = Sites(sites.tau[rows], sites.nu[rows]), outcomes.part(rows)
            part = propose(mean[rows], var[rows], own, likelihood, outcome)
            tau[rows], nu[rows], log_scale[rows] = part[:3]
            if part.valid is not None:
                valid[rows] = part.valid

        for_row_blocks(work, m, BLOCK)
        return Proposal(tau, nu, log_scale, None if valid.all() else valid)

    return blocked


def propose(
    rule: Rule,
    marginals: Marginals,
    sites: Sites,
    likelihood: Likelihood,
    outcomes: Outcomes,
) -> Proposal:
    """The sites wanted next, of single pairs by the rule and of choices at the current means.

    A choice's site is Laplace's under every rule: its clique of edges follows from a softmax,
    whose moments under a Gaussian have no closed form.
    """
    if outcomes.cliques is None:
        return rule.propose(*marginals, sites, likelihood, outcomes)
    mean, var = marginals
    n = len(mean) - outcomes.cliques.n_edges
    pairs = rule.propose(
        mean[:n], var[:n], Sites(sites.tau[:n], sites.nu[:n]), likelihood, _of_pairs(outcomes)
    )
    g, old = mean[n:], Sites(sites.tau[n:], sites.nu[n:])
    tau, nu, value = outcomes.cliques.sites(g, likelihood.choice_scale or 1.0)
    log_scale = value - (old.nu - 0.5 * old.tau * g) * g
    valid = None
    if pairs.valid is not None:
        valid = np.append(pairs.valid, np.ones(len(g), dtype=bool))
    return Proposal(
        np.append(pairs.tau, tau),
        np.append(pairs.nu, nu),
        np.append(pairs.log_scale, log_scale),
        valid,
    )


def drift(
    rule: Rule, marginals: Marginals, likelihood: Likelihood, outcomes: Outcomes
) -> FloatArray | None:
    """(m,) how log Z changes with the edges' means where their sites follow; None where none do.

    Beside choices the sites of EP's pairs are held: their own means answer as if they were, and
    only what the variances do is left out.
    """
    mean, var = marginals
    cliques = outcomes.cliques
    if cliques is None:
        return None if rule.drift is None else rule.drift(mean, var, likelihood, outcomes)
    n = len(mean) - cliques.n_edges
    pairs = np.zeros(n)
    if rule.drift is not None:
        pairs = rule.drift(mean[:n], var[:n], likelihood, _of_pairs(outcomes))
    choices = cliques.drift(mean[n:], var[n:], likelihood.choice_scale or 1.0)
    return np.concatenate([pairs, choices])


def slopes(
    rule: Rule, marginals: Marginals, sites: Sites, likelihood: Likelihood, outcomes: Outcomes
) -> FloatArray:
    """(q, m) ∂ log Z / ∂ the likelihood's parameters; choices depend on none of them."""
    if outcomes.cliques is None:
        return rule.slopes(*marginals, sites, likelihood, outcomes)
    mean, var = marginals
    n = len(mean) - outcomes.cliques.n_edges
    here = Sites(sites.tau[:n], sites.nu[:n])
    pairs = rule.slopes(mean[:n], var[:n], here, likelihood, _of_pairs(outcomes))
    return np.pad(pairs, ((0, 0), (0, outcomes.cliques.n_edges)))


def _of_pairs(outcomes: Outcomes) -> Outcomes:
    return outcomes._replace(cliques=None)


RULES: dict[str, Rule] = {
    "ep": Rule(blockwise(ep), None, tilted_slopes),
    "laplace": Rule(blockwise(laplace), mode_drift, no_slopes),
    "variational": Rule(blockwise(variational), None, no_slopes),
    "exact": Rule(exact, None, tilted_slopes),
}
