"""A rule of inference in one file: Laplace's sites, with half of their precision."""

from penchant.gp import RULES, Proposal, Rule, laplace, mode_slopes, no_slopes


def timid(mean, var, sites, likelihood, outcomes):
    proposal = laplace(mean, var, sites, likelihood, outcomes)
    shift = proposal.nu - 0.5 * proposal.tau * mean
    return Proposal(0.5 * proposal.tau, shift, proposal.log_scale)


RULES["timid"] = Rule(timid, mode_slopes, no_slopes)
